"""A decision in sentences. They are read off the decided value: nothing is told that it does not hold."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType

from headway.scaling.model import Decision, Demand, Mode, QueueMetrics, Step
from headway.scaling.view import is_seen, pooled

Sentences = tuple[str, ...]
HOUR_S = 3600.0

LEAST_SHARE = 0.005  # less would read as none


def explained(decision: Decision, *, previous_workers: int | None = None) -> Sentences:
    """Why ``decision`` is what it is, for a reader who wants to sleep: the outcome first, then what led to it.

    In order: the number, what was seen, every demand, each limit that moved the count, the day's budget, the
    prediction, the notes.
    """
    return (
        *_outcome(decision, previous_workers),
        *_seen(decision),
        *_recalled(decision),
        *_demands(decision),
        *_limits(decision),
        *_day_budget(decision),
        *_prediction(decision),
        *(_sentence(note) for note in decision.notes),
    )


def _outcome(decision: Decision, previous_workers: int | None) -> Sentences:
    target = counted(decision.target_workers, "worker")
    told = [f"Pool {decision.pool} should have {target}{_before(decision, previous_workers)}."]
    if decision.burst_workers:
        told.append(f"{decision.burst_workers} of them are burst: they leave by themselves when the queue is empty.")
    told.append(_there(decision))
    if decision.unknown_workers:
        told.append(
            f"{counted(decision.unknown_workers, 'more worker')} may still run on hosts that went silent: "
            "they are neither counted on nor forgotten."
        )
    if decision.mode is Mode.RECOMMEND:
        told.append("The pool's mode is recommend: this is advice, and nothing is started or stopped for it.")
    return tuple(told)


def _before(decision: Decision, previous_workers: int | None) -> str:
    if previous_workers is None:
        return ""
    if previous_workers == decision.target_workers:
        return ", as before"
    return f"; before, it was {previous_workers}"


def _there(decision: Decision) -> str:
    running, starting = decision.running_workers, decision.starting_workers
    there = f"{running or 'None'} {'runs' if running == 1 else 'run'}"
    if starting:
        there += f" and {starting} {'is' if starting == 1 else 'are'} starting"
    missing = decision.target_workers - running - starting
    if missing > 0:
        return f"{there}, so {missing} more {_are(missing)} wanted."
    if missing < 0:
        return f"{there}, so {-missing} {_are(-missing)} to leave, idle ones first."
    return f"{there}: nothing is to change."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _seen(decision: Decision) -> Sentences:
    """What was known of the queues, together first and then one by one where there are several."""
    known = [queue for queue in decision.metrics if is_seen(queue)]
    if not known:
        return ("Nothing is known of its queues yet.",)
    freshness = () if decision.is_fresh else (f"These figures are out of date{_age(decision.metrics_age_s)}.",)
    together = (_queue(pooled(decision.metrics), "In its queues together" if len(known) > 1 else "In its queue"),)
    apart = tuple(_queue(queue, f"In {queue.queue}") for queue in known) if len(known) > 1 else ()
    return (*together, *apart, *freshness)


def _age(age_s: float | None) -> str:
    return "" if age_s is None else f": the oldest of them are of {duration(float(round(age_s)))} before the decision"


def _recalled(decision: Decision) -> Sentences:
    """What the past tells of this time: weeks whatever it is, because it may be why nobody stands; days if anything."""
    jobs, weeks = decision.recalled_jobs, decision.recalled_weeks
    if jobs is None or (weeks is None and round(jobs) == 0):
        return ()
    told = "no more than comes" if round(jobs) == 0 else f"{counted(round(jobs), 'job')} yet to come"
    if weeks is None:
        return (f"This minute of earlier days tells of {told}.",)
    return (f"This hour of the week, known from {counted(weeks, 'earlier week')}, tells of {told}.",)


def _queue(queue: QueueMetrics, where: str) -> str:
    told = [f"{where} {_waiting(queue)}"]
    if queue.in_flight_jobs is not None:
        told.append(f"{counted(queue.in_flight_jobs, 'job')} {_are(queue.in_flight_jobs)} at work")
    if queue.arrival_rate_per_s is not None:
        is_timed = queue.service_time_s is not None and queue.arrival_rate_per_s > 0
        each = f", each for {duration(queue.service_time_s or 0.0)} of work" if is_timed else ""
        told.append(f"{_rate(queue.arrival_rate_per_s)}{_again(queue)}{each}")
    return f"{', '.join(told[:-1])} and {told[-1]}." if len(told) > 1 else f"{told[0]}."


def _again(queue: QueueMetrics) -> str:
    """How many of those that arrive came back for another attempt, where any did."""
    share = (queue.retry_rate_per_s or 0.0) / (queue.arrival_rate_per_s or 1.0)
    return f", {100 * share:.0f} % of them for another attempt" if share >= LEAST_SHARE else ""


def _waiting(queue: QueueMetrics) -> str:
    if queue.waiting_jobs is None:
        return "it is not known how many jobs wait"
    if not queue.waiting_jobs:
        return "no job waits"
    oldest = "" if queue.oldest_age_s is None else f" (the oldest for {duration(queue.oldest_age_s)})"
    return f"{counted(queue.waiting_jobs, 'job')} {'waits' if queue.waiting_jobs == 1 else 'wait'}{oldest}"


def _rate(rate_per_s: float) -> str:
    if rate_per_s <= 0:
        return "none arrives"
    if rate_per_s < 1:
        return f"one arrives every {duration(1 / rate_per_s)}"
    return f"{_number(rate_per_s)} a second arrive"


DEMANDS: Mapping[str, str] = MappingProxyType(
    {
        "steady_state": "what arrives keeps {slots} busy",
        "trend": "arrivals are rising, and by the time a new worker is ready they will keep {slots} busy",
        "forecast": "what is forecast to arrive by the time a new worker is ready will keep {slots} busy",
        "backlog_drain": "starting every waiting job in time takes {slots}",
        "work_in_progress": "what is at work or starting has {slots}",
        "wake": "jobs wait and nobody is there: waking takes {slots}",
        "standing": "workers start too slowly to react in time, so {slots} are to stand",
        "rhythm": "bursts keep a rhythm with short pauses, and to keep {slots} costs less than to follow them",
        "saturation": "every worker is busy, and the strategy then wants one more: {slots}",
        "smoother": "while throughput is steady the strategy comes down one by one, now to {slots}",
        "first_worker": "jobs wait and nothing works on them: {slots} for a first worker",
        "jobs_per_worker": "the strategy's workers for so many waiting jobs make {slots}",
        "balance": "the strategy's balance of the queues is at {slots}",
        "fixed": "the profile's floor is {slots}",
        "time_of_day": "the crew of this hour has {slots}",
    }
)
"""A demand's name and what it says, with its slots to be filled in; one that is not here is told by its name."""


def _demands(decision: Decision) -> Sentences:
    ranked = sorted(decision.demands, key=lambda demand: -demand.slots)
    asking = [demand for demand in ranked if demand.slots > 0]
    if not asking:
        return ("Nothing asks for a worker.",) if decision.demands else ()
    wanted = decision.steps[0].workers if decision.steps else None
    winner = f"The greatest demand decides: {_demand(asking[0])}"
    if wanted is not None:
        winner += f"; that is {counted(wanted, 'worker')}"
    told = [f"{winner}."]
    if len(asking) > 1:
        told.append(f"Less is asked for otherwise: {'; '.join(_demand(demand) for demand in asking[1:])}.")
    silent = [_words(demand.name) for demand in ranked if demand.slots <= 0]
    if silent:
        told.append(f"Nothing is asked for by {_listed(silent)}.")
    return tuple(told)


def _demand(demand: Demand) -> str:
    slots = f"{_number(demand.slots)} {'slot' if demand.slots == 1 else 'slots'}"
    return DEMANDS.get(demand.name, f"{_words(demand.name)} wants {{slots}}").format(slots=slots)


Tell = Callable[[Step, Step, Decision], str]


def _limits(decision: Decision) -> Sentences:
    """One sentence for each limit that moved the count, in their order."""
    moved = [(before, after) for before, after in pairwise(decision.steps) if before.workers != after.workers]
    if not moved:
        return ("No limit changes that.",) if decision.steps else ()
    return tuple(_limit(before, after, decision) for before, after in moved)


def _limit(before: Step, after: Step, decision: Decision) -> str:
    tell = LIMITS.get(after.name)
    if tell is None:
        way = "raises" if after.workers > before.workers else "lowers"
        return f"The limit “{_words(after.name)}” {way} the count from {before.workers} to {after.workers}."
    return tell(before, after, decision)


def _capacity(before: Step, after: Step, decision: Decision) -> str:
    if any(note.startswith("no known host") for note in decision.notes):
        return f"No host that could run them is known: what runs is held, which is {after.workers}."
    short = before.workers - after.workers
    return f"The hosts have room for {after.workers} only: {counted(short, 'worker')} short, until a host has room."


def _workers_max(before: Step, after: Step, decision: Decision) -> str:
    others = []
    if decision.unknown_workers:
        others.append(f"{counted(decision.unknown_workers, 'worker')} may still run on hosts that went silent")
    if decision.leaving_workers:
        others.append(f"{counted(decision.leaving_workers, 'worker')} asked to stop have not ended yet")
    if others:
        why = " and ".join(others)
        return f"The profile's ceiling leaves {after.workers} of {before.workers}, because {why}."
    return f"The profile allows at most {after.workers}, so {before.workers} become {after.workers}."


LIMITS: Mapping[str, Tell] = MappingProxyType(
    {
        "hold_stale": lambda before, after, _: (
            f"The figures are too old to go down on: {after.workers} are kept where {before.workers} would do."
        ),
        "hold_overdue": lambda before, after, _: (
            f"{_fewer(before)} would do by the figures, but a job waits that has no time left: "
            f"{after.workers} are kept."
        ),
        "hold_down": lambda before, after, _: (
            f"{_fewer(before)} would do now, but not yet for long enough: {after.workers} are kept."
        ),
        "crash_loop": lambda _, after, __: (
            f"Its workers only end too early wherever they are started: no more than {after.workers} until one stays."
        ),
        "activation": lambda before, _, __: (
            f"Too few jobs have come to wake the pool from zero: none of {before.workers} is started yet."
        ),
        "cooldown": lambda before, after, _: (
            f"{before.workers} are wanted, but the strategy's cooldown allows no change yet: {after.workers} are kept."
        ),
        "anti_flapping": lambda before, after, _: (
            f"{before.workers} are wanted; the strategy turns only after its cooldown and comes down by a share at a "
            f"time: {after.workers} for now."
        ),
        "tolerance": lambda before, after, _: (
            f"{_fewer(before)} would be right, which differs too little from {after.workers} to make a change."
        ),
        "hold_up": lambda before, after, _: (
            f"{before.workers} are wanted, but not yet for long enough: {after.workers} for now."
        ),
        "step": lambda before, after, _: (
            f"{_fewer(before)} would be right; the profile's steps lead to {after.workers} for now."
        ),
        "fallback": lambda _, after, __: (
            f"Figures have been missing for long: the profile falls back on {after.workers}."
        ),
        "pause": lambda before, after, _: (
            f"The pool is paused: {after.workers} are kept where {before.workers} would be right."
        ),
        "override": lambda before, after, _: (
            f"An operator has set {after.workers} for a while, where {before.workers} would be right."
        ),
        "schedule": lambda before, after, _: f"The schedule of this hour makes {after.workers} of {before.workers}.",
        "workers_min": lambda _, after, __: f"The profile keeps at least {after.workers}.",
        "workers_max": _workers_max,
        "pinned": lambda _, after, __: f"The pool is pinned to {after.workers}.",
        "rate_limit": lambda before, after, _: (
            f"The service that the jobs call allows {after.workers}, so {before.workers} would only wait for it."
        ),
        "budget": lambda before, after, _: f"The budget pays for {after.workers}, not for {before.workers}.",
        "share": lambda before, after, _: (
            f"Room is scarce: the pool's share of it is {after.workers} of the {before.workers} that it wants."
        ),
        "capacity": _capacity,
    }
)


def _fewer(step: Step) -> str:
    return "None" if not step.workers else f"{step.workers}"


def _day_budget(decision: Decision) -> Sentences:
    """What is paid of it; that it is passed, a note tells."""
    spent = decision.day_budget
    if spent is None:
        return ()
    paid_h, budget_h = spent.paid_worker_s / HOUR_S, spent.budget_worker_s / HOUR_S
    return (f"Of the {_number(budget_h)} worker-hours that the budget of {spent.day} pays for, {paid_h:.2f} are paid.",)


def _prediction(decision: Decision) -> Sentences:
    seconds = decision.predicted_pickup_s
    if decision.is_failing:
        return ("How long a new job will wait is not known: workers of its template only end too early.",)
    if seconds is None and not decision.target_workers and not decision.running_workers:
        return ("A job that arrives now waits until a worker has been started for it.",)
    if seconds is None:
        return ("How long a new job will wait cannot be told.",)
    when = "at once" if seconds < 0.05 else f"after about {duration(seconds)}"
    if decision.objective is None:
        return (f"A job that arrives now should start {when}.",)
    target_s, percentile = decision.objective.target_s, decision.objective.percentile
    verdict = "in time" if seconds <= target_s else "too late"
    promise = f"{percentile:g} % are to start within {duration(target_s)}"
    return (f"A job that arrives now should start {when}, {verdict}: {promise}.",)


def _sentence(note: str) -> str:
    text = note[:1].upper() + note[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def counted(number: int, noun: str) -> str:
    """``number`` and ``noun``: ``1 worker``, ``2 workers``, ``no workers``."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """``seconds`` in the unit that a reader thinks in, in round numbers: two digits tell enough."""
    if seconds < 0.9995:
        return f"{float(f'{seconds * 1000:.2g}'):.0f} ms"
    if seconds < 9.95:
        return f"{_number(seconds)} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{_number(seconds / 60)} min" if seconds < 7200 else f"{_number(seconds / 3600)} h"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}".removesuffix(".0")


def _words(name: str) -> str:
    return name.replace("_", " ")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
