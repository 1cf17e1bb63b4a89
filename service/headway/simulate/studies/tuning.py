"""Whether another way to run a pool is clearly better: chosen on one part of its past, shown on a later one."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from headway.simulate.report.rows import Row
from headway.simulate.studies.candidates import AS_IT_IS, Candidate, grid

TUNED_KEYS = (
    "strategy",
    "strategy_options",
    "risk",
    "forecast",
    "hold_up_s",
    "hold_down_s",
    "step_up_workers",
    "step_up_fraction",
    "step_down_workers",
    "step_down_fraction",
    "tolerance_fraction",
)
"""What may be suggested: the pace of deciding. Objective, bounds, budget and schedules are the operator's choice."""
TUNING_JOBS_MIN = 50  # in either part; with fewer a single late job is two per cent
ROOM = 0.8  # of the late jobs that an objective allows: a candidate that just keeps it on one day breaks it on the next
TUNING_SAVING_MIN = 0.05  # of the cost; less is no reason to change what runs
TUNING_SAVING_SHOWN_MIN = 0.025  # on the later part
TUNING_LATE_FEWER_MIN = 0.25  # of the late jobs, where no candidate meets the objective
TUNING_FINALISTS = 4  # that are tried at every tick phase: chance of one phase ranks near ones either way
TUNING_FIRST_ROUND_SHARE = 0.25  # of the tick phases, for all candidates
SPAWN_WORKER_S = 30.0  # what a spawn weighs: a burst of processor, memory and connections, which hours do not show
TUNING_COST_MORE_MAX = 0.5  # of the cost, for fewer late jobs where no candidate meets the objective

DEFAULT_GRID = grid({"risk": [0.5, 0.7, 1.0, 1.4, 2.0, 4.0], "hold_down_s": [None, 30.0, 120.0, 600.0]})
"""The two numbers that move `hybrid`: what it stakes on luck, and how long it keeps workers that are idle."""


class Verdict(StrEnum):
    """What was found for a pool."""

    CHANGE = "change"
    KEEP = "keep"
    UNKNOWN = "unknown"
    """There is too little to judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """What to do with a pool's profile, why, and what speaks for it."""

    pool: str
    verdict: Verdict
    why: str
    candidate: Candidate = AS_IT_IS
    trained: tuple[Row, ...] = ()
    """The earlier part under every candidate."""
    before: Row | None = None
    """The later part under the profile as it is."""
    after: Row | None = None
    """The later part under the candidate."""


def finalists(rows: Sequence[Row]) -> tuple[str, ...]:
    """Of one pool's candidates, tried at few tick phases, those that are worth all of them: the profile as it is, which
    is the first, and the few that come nearest to being ``chosen``.
    """
    before, *others = rows
    best = sorted(others, key=lambda row: (0, cost_hours(row)) if row.is_kept else (1, late(row)))[:TUNING_FINALISTS]
    return (before.strategy, *(row.strategy for row in best))


def chosen(rows: Sequence[Row]) -> Row | None:
    """Of one pool's rehearsals of the earlier part, the first being the profile as it is, the one that is clearly
    better; ``None``: what is there is best, or as good.
    """
    before, *others = rows
    if not others:
        return None
    if before.is_kept:
        kept = [row for row in others if _has_room(row) and saving(before, row) >= TUNING_SAVING_MIN]
        return min(kept, key=cost_hours, default=None)
    kept = [row for row in others if _has_room(row)]
    if kept:
        return min(kept, key=cost_hours)
    better = [
        row
        for row in others
        if late(row) <= (1 - TUNING_LATE_FEWER_MIN) * late(before)
        and cost_hours(row) <= (1 + TUNING_COST_MORE_MAX) * cost_hours(before)
    ]
    return min(better, key=lambda row: (late(row), cost_hours(row)), default=None)


def judged(pool: str, rows: Sequence[Row], candidate: Candidate, before: Row, after: Row) -> Suggestion:
    """Whether what was ``chosen`` on the earlier part is better on the later one, too."""
    is_shown, why = _shown(before, after)
    return Suggestion(
        pool=pool,
        verdict=Verdict.CHANGE if is_shown else Verdict.KEEP,
        why=why,
        candidate=candidate if is_shown else AS_IT_IS,
        trained=tuple(rows),
        before=before,
        after=after,
    )


def _shown(before: Row, after: Row) -> tuple[bool, str]:
    if before.is_kept:
        if not after.is_kept:
            return False, f"{after.strategy} was cheaper at first and breached the objective later"
        saved = saving(before, after)
        if saved < TUNING_SAVING_SHOWN_MIN:
            return False, f"{after.strategy} was cheaper at first and saved nothing to speak of later"
        return True, f"meets the objective for {100 * saved:.0f} % less"
    if after.is_kept:
        return True, f"meets the objective, which {before.strategy} does not"
    if late(after) <= ROOM * late(before):
        fewer = 100 * (1 - late(after) / late(before))
        return True, f"has {fewer:.0f} % fewer late jobs; no candidate meets the objective"
    return False, f"{after.strategy} had fewer late jobs at first and not later"


def why_kept(rows: Sequence[Row]) -> str:
    """Why nothing was ``chosen``."""
    if rows[0].is_kept:
        return "meets its objective, and no candidate does so for clearly less"
    return "breaches its objective, and no candidate comes clearly closer: check its bounds, start-up and template"


def cost_hours(row: Row) -> float:
    """Worker-hours, and for each spawn what it weighs."""
    return row.result.worker_hours + row.result.spawns * SPAWN_WORKER_S / 3600


def saving(before: Row, after: Row) -> float:
    """The part of the cost that is saved; negative where it is greater."""
    hours = cost_hours(before)
    return 1 - cost_hours(after) / hours if hours else 0.0


def late(row: Row) -> float:
    """The share of late jobs, in per cent."""
    return 100 - row.result.attainment_percent


def _has_room(row: Row) -> bool:
    return late(row) <= ROOM * (100 - row.percentile) and row.is_kept
