"""The demands of ``hybrid``, each calculated from its terms alone: a decision keeps all that it takes to do it again.

Source: docs/why/demand.md, "Recompute a decision".
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from headway.scaling.demands.needs import Deadline, Need
from headway.scaling.demands.rhythm_capacity import Enough
from headway.scaling.model import Demand

Terms = Mapping[str, float]
"""Names, which end with their unit, and numbers."""

Formula = Callable[[Terms], float]

KEPT, NEW = "kept_", "new_"
"""Before the terms of two deadlines: of the jobs that idle slots stay for, and of those that new ones are for."""

NAMES = MappingProxyType({each: tuple(f"{each}{name}" for name in Deadline._fields) for each in ("", KEPT, NEW)})
"""What a deadline's terms are called, by the prefix."""
UNSAID = tuple(Deadline._field_defaults.get(name, math.inf) for name in Deadline._fields)  # values without a term


def demand(formula: Formula, terms: Terms) -> Demand:
    """The demand of the formula's name, with the slots that follow from ``terms``."""
    return Demand(name=formula.__name__, slots=formula(terms), terms=terms)


def terms_of(need: Need) -> dict[str, float]:
    """What ``need`` follows from; nothing where no job needs a slot."""
    if need.kept_for is need.new_for or need.kept_for is None:
        return _named("", need.new_for)
    return {**_named(KEPT, need.kept_for), **_named(NEW, need.new_for)}


def _named(prefix: str, deadline: Deadline | None) -> dict[str, float]:
    """The terms of ``deadline``; without a cycle that is not known, and without jobs in front where there are none."""
    if deadline is None:
        return {}
    terms = zip(NAMES[prefix], deadline, UNSAID, strict=True)
    return {name: value for name, value, unsaid in terms if value != unsaid}


def needed_slots(terms: Terms) -> tuple[int, int]:
    """The idle slots that must stay for the jobs in ``terms``, and the new ones for them."""
    if "jobs" in terms:
        return _deadline(terms, "").needed_slots
    kept_slots = _deadline(terms, KEPT).needed_slots[0] if f"{KEPT}jobs" in terms else 0
    new_slots = _deadline(terms, NEW).needed_slots[1] if f"{NEW}jobs" in terms else 0
    return kept_slots, new_slots


def _deadline(terms: Terms, prefix: str) -> Deadline:
    return Deadline._make(map(terms.get, NAMES[prefix], UNSAID))


def work_in_progress(terms: Terms) -> float:
    """Slots in use: those that have a job or come, and one at least while it serves jobs all the time."""
    return max(_in_use(terms) + terms["begun_jobs"], terms["serving_slots"])


def _in_use(terms: Terms) -> float:
    return terms["busy_slots"] + terms["coming_slots"]


def _beside(new_slots: float, terms: Terms) -> float:
    """The slots that run jobs of other pools' queues, beside which new ones come; 0 where none do."""
    return terms.get("helping_slots", 0) if new_slots else 0


def backlog_drain(terms: Terms) -> float:
    """Slots in use, and those that start the waiting jobs in time: no more new ones than still help."""
    kept_slots, new_slots = needed_slots(terms)
    room_slots = max(0.0, terms.get("helpful_slots", math.inf) - terms["coming_slots"])
    started_slots = min(new_slots, room_slots)
    drain_slots = max(kept_slots, terms["taking_slots"]) + started_slots + _beside(started_slots, terms)
    return max(work_in_progress(terms), _in_use(terms) + drain_slots)


def wake(terms: Terms) -> float:
    """One slot while jobs wait and nobody is there."""
    return float(terms["waiting_jobs"] > 0 and not terms["running_workers"] + terms["starting_workers"])


def due_work(terms: Terms) -> float:
    """Slots in use, and those for jobs that are due later; one at least once the first is due soon."""
    kept_slots, new_slots = needed_slots(terms)
    due_slots = kept_slots + new_slots + _beside(new_slots, terms)
    return max(work_in_progress(terms), _in_use(terms) + due_slots, terms["first_slots"])


def standing(terms: Terms) -> float:
    """Slots in use or about to be, and those for jobs that may come before a worker asked for later is up."""
    return max(work_in_progress(terms), _in_use(terms) + terms["taken_slots"] + sum(needed_slots(terms)))


def rhythm(terms: Terms) -> float:
    """Slots that start each burst of a rhythm in time, what comes beside it, and what one burst leaves to the next."""
    return float(Enough(**terms).slots)  # type: ignore[arg-type]


def steady_state(terms: Terms) -> float:
    """Slots that arrivals keep busy, beside those that are busy with what came before."""
    return terms["present_slots"] + terms["arrival_rate_per_s"] * terms["service_time_s"]


def less_help(terms: Terms) -> float:
    """Slots as if the pool ran all jobs in flight, less those jobs that workers of other pools run."""
    return max(0.0, terms["alone_slots"] - terms["helped_jobs"])


def named(*formulas: Formula) -> Mapping[str, Formula]:
    """Each formula by its name, which is that of its demand."""
    return MappingProxyType({each.__name__: each for each in formulas})


FORMULAS = named(work_in_progress, backlog_drain, wake, due_work, standing, rhythm, steady_state)
