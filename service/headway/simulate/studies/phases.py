"""The same rehearsal at several tick phases: where bursts fall between two ticks is chance, and no figure of a policy.

What a short workload comes to may differ by a third from one phase to another. Medians say what to expect, and the
least and the most what may come.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from statistics import median, median_low
from typing import Any

from headway.errors import Invalid
from headway.scaling.fields import taken_from
from headway.simulate.engine.results import Phase, Result
from headway.simulate.studies.single_pool import Setting

PHASES = 8
PHASES_MAX = 64
PHASE_SEEDS_APART = 1_000_003  # chance is another at each phase, and none of them is that of a seed nearby


def phased(setting: Setting, phases: int) -> tuple[Setting, ...]:
    """``setting`` at so many phases, evenly spread over a tick; the first is ``setting`` itself."""
    if not 1 <= phases <= PHASES_MAX:
        raise Invalid(f"--phases={phases} must lie in 1..{PHASES_MAX}")
    return tuple(
        replace(
            setting,
            tick_phase_s=(setting.tick_phase_s + number * setting.tick_s / phases) % setting.tick_s,
            seed=setting.seed + number * PHASE_SEEDS_APART,
        )
        for number in range(phases)
    )


def middle(results: Sequence[Result], settings: Sequence[Setting]) -> Result:
    """One result for all phases: the median of every figure. What is drawn over time is one that was kept over time.

    Counts are of one of the phases, never a half. Of a single phase it is the very result.
    """
    if len(results) == 1:
        return results[0]
    by_cost = sorted(results, key=lambda each: each.worker_hours)
    middle_first = (by_cost[(len(results) - 1) // 2], *results)
    drawn = next((each for each in middle_first if each.points), results[0])
    figures: dict[str, Any] = {name: _middle(getattr(each, name) for each in results) for name in _FIGURES}
    return replace(
        drawn,
        **figures,
        attainment_by_day_percent=tuple(
            _middle(of_day) for of_day in zip(*(each.attainment_by_day_percent for each in results), strict=True)
        ),
        phases=tuple(
            taken_from(Phase, each, tick_phase_s=setting.tick_phase_s)
            for each, setting in zip(results, settings, strict=True)
        ),
    )


_FIGURES = tuple(
    each.name
    for each in fields(Result)
    if each.name not in {"pool", "phases", "points", "unplaced", "attainment_by_day_percent"}
)


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return median_low(known) if all(isinstance(value, int) for value in known) else median(known)
