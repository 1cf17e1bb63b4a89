"""The rounds of a tuning: all candidates on the earlier part, the best of them again, and the one that was chosen shown
on the later part.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.cli.backtesting.backtest import doing
from headway.cli.backtesting.spark_runs import Bench, rehearsed, rows_of
from headway.scaling.arithmetic import DAY_S
from headway.simulate.report.rows import Row
from headway.simulate.studies.candidates import AS_IT_IS
from headway.simulate.studies.tuning import (
    TUNING_FINALISTS,
    TUNING_FIRST_ROUND_SHARE,
    TUNING_JOBS_MIN,
    Suggestion,
    Verdict,
    chosen,
    finalists,
    judged,
    why_kept,
)
from headway_spark.studies.backtest import Size, Work

TUNING_WHOLE_DAYS_FROM = 3  # days of history from which on the parts are whole days: a night is no test of a day


def tuned(on: Bench, work: Work, *, trained_fraction: float) -> tuple[list[Suggestion], dict[str, str], bool]:
    """What is suggested for each pool, why others could not be rehearsed, and whether that is all of them."""
    parts = {size.pool: split_s(size, trained_fraction) for size in on.sizes}
    unknown = [
        Suggestion(pool=pool, verdict=Verdict.UNKNOWN, why="it is pinned to a number of workers")
        for pool, profile in work.profiles.items()
        if profile.pinned is not None
    ]
    pinned = {each.pool for each in unknown}
    bench_ = replace(on, sizes=tuple(size for size in on.sizes if size.pool not in pinned))
    earlier = replace(work, parts={pool: (0.0, cut_s) for pool, cut_s in parts.items()}, drawn=frozenset())
    trained, failures, is_whole = _trained(bench_, earlier)
    complete = {pool: rows for pool, rows in trained.items() if rows.finals[0].strategy == AS_IT_IS.name and is_whole}
    picks = {pool: pick.strategy for pool, rows in complete.items() if (pick := chosen(rows.finals)) is not None}
    shown: dict[str, list[Row]] = {}
    if is_whole:
        later = replace(
            work,
            parts={pool: (cut_s, float("inf")) for pool, cut_s in parts.items()},
            chosen={pool: (AS_IT_IS.name, *([picks[pool]] if pool in picks else [])) for pool in parts},
        )
        outcomes, is_whole = rehearsed(bench_, later, doing="showing")
        shown, odd = rows_of(outcomes, work)
        failures |= {pool: why for pool, why in odd.items() if pool not in failures}
    found = [
        _suggestion(pool, rows, picks.get(pool), shown.get(pool, []), work)
        for pool, rows in complete.items()
        if is_whole or len(shown.get(pool, [])) == 1 + (pool in picks)
    ]
    return sorted([*unknown, *found], key=lambda each: each.pool), failures, is_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trained:
    """One pool's rehearsals of the earlier part."""

    finals: Sequence[Row]
    """At every tick phase, the profile as it is first."""
    others: Sequence[Row] = ()
    """At few phases, of candidates that were left behind there."""


def _trained(on: Bench, work: Work) -> tuple[dict[str, _Trained], dict[str, str], bool]:
    """The earlier part under all candidates: of many, all at few tick phases, then the best of them at every phase."""
    what = doing(on, work.candidates)
    first_phases = math.ceil(work.phases * TUNING_FIRST_ROUND_SHARE)
    if first_phases == work.phases or len(work.candidates) <= 1 + TUNING_FINALISTS:
        outcomes, is_whole = rehearsed(on, work, doing=f"choosing, {what}")
        rows, failures = rows_of(outcomes, work)
        return {pool: _Trained(finals=each) for pool, each in rows.items()}, failures, is_whole
    first = replace(work, phases=first_phases)
    outcomes, is_whole = rehearsed(on, first, doing=f"choosing, {what}")
    rows, failures = rows_of(outcomes, first)
    if not is_whole or not rows:
        return {pool: _Trained(finals=each) for pool, each in rows.items()}, failures, is_whole
    final = replace(work, chosen={pool: finalists(each) for pool, each in rows.items()})
    there = replace(on, sizes=tuple(size for size in on.sizes if size.pool in rows))
    outcomes, is_whole = rehearsed(there, final, doing="choosing among the best")
    finals, odd = rows_of(outcomes, final)
    left = {
        pool: tuple(row for row in rows[pool] if row.strategy not in {final.strategy for final in each})
        for pool, each in finals.items()
    }
    return {pool: _Trained(finals=each, others=left[pool]) for pool, each in finals.items()}, failures | odd, is_whole


def split_s(size: Size, trained_fraction: float) -> float:
    """Where the earlier part ends, in whole seconds from the beginning; after whole days where there are enough."""
    cut_s = size.length_s * trained_fraction
    if size.length_s >= TUNING_WHOLE_DAYS_FROM * DAY_S:
        midnight_s = -size.begins_at_s % DAY_S
        days = max(1, round((cut_s - midnight_s) / DAY_S))
        cut_s = midnight_s + days * DAY_S
    return float(int(cut_s))


def _suggestion(pool: str, trained: _Trained, pick: str | None, shown: Sequence[Row], work: Work) -> Suggestion:
    rows, every = trained.finals, (*trained.finals, *trained.others)
    before = next((row for row in shown if row.strategy == AS_IT_IS.name), None)
    after = next((row for row in shown if row.strategy == pick), None)
    jobs = (rows[0].result.jobs, before.result.jobs if before else 0)
    if min(jobs) < TUNING_JOBS_MIN:
        why = f"{jobs[0]} jobs in the earlier part and {jobs[1]} in the later one; {TUNING_JOBS_MIN} in each are needed"
        return Suggestion(pool=pool, verdict=Verdict.UNKNOWN, why=why, trained=every, before=before)
    if pick is None or before is None or after is None:
        return Suggestion(pool=pool, verdict=Verdict.KEEP, why=why_kept(rows), trained=every, before=before)
    (candidate,) = (each for each in work.candidates if each.name == pick)
    return judged(pool, every, candidate, before, after)
