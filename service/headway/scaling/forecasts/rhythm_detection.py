"""Bursts that come by a clock of their own, however short its period: cron jobs, square waves, a job each minute.

A rhythm of 20 s to an hour or so is found in the last arrivals and predicts the next. Nothing is used on trust (see
`rhythm.hit` and `rhythm.judged`). A pool keeps one ``Periods``. Time that passes counts when ``expected`` is asked.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from headway.scaling.forecasts.rhythm import (
    BINS,
    LOST,
    RHYTHM_BELIEVED,
    Rhythm,
    expected_jobs,
    found,
    hit,
    is_due,
    is_near,
    judged,
    with_burst,
)
from headway.scaling.view import copied

RATE_MEMORY_S = 600.0  # of the mean that a burst must exceed
DETECTION_CHANCE_SIGMAS = (
    2.5  # what exceeds the mean by so much is a burst; a single job is one where one comes in 40 s
)
SILENT_LOG = 4.0  # so is whatever comes after a silence that chance makes once in fifty times
ENDS_AFTER_TICKS = 2  # without more than the mean
DETECTED_BURSTS_KEPT = 24  # that no rhythm explains: two hours of one each 5 min
DENSITY_BURSTS = (8, 16)  # so many say how often bursts come at all, which is what chance makes a rhythm of
AGAIN_TIMES = 4  # as much as all of a burst before is a burst of its own: a job that came just before is no part of it
RHYTHMS_MAX = 4
PERIOD_MIN_TICKS = 4  # what comes more often the recent rate covers
SLACK = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """More jobs than chance makes of the mean, at once or for some ticks."""

    began_at_s: float
    """The end of its first span."""
    at_s: float
    """The end of its newest span."""
    counts: tuple[int, ...]
    """What it brought, tick by tick, as far as ticks are counted one by one."""
    rhythm: int | None = None
    """Which rhythm it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """What has been learned of a queue's bursts. Some kilobytes at most."""

    began_at_s: float
    at_s: float
    """The end of the newest span that brought a job."""
    jobs: float = 0.0
    """Arrivals up to then; older ones weigh less."""
    others_since_s: float | None = None
    """Since when jobs beside rhythms are counted: since the newest rhythm was found."""
    others: float = 0.0
    """Arrivals since then, up to ``at_s``, that belong to no rhythm; older ones weigh less."""
    bursts_s: tuple[float, ...] = ()
    """When the newest bursts began, whoever explains them."""
    burst: Burst | None = None
    """The newest."""
    unexplained_s: tuple[float, ...] = ()
    """When the newest bursts began that no rhythm explains."""
    rhythms: tuple[Rhythm, ...] = ()


def periods_of(stored: Any) -> Periods | None:
    """The value that a state holds: itself, or the mapping that storing made of it."""
    if stored is None or isinstance(stored, Periods):
        return stored
    burst = stored["burst"]
    return Periods(
        **{
            **stored,
            "burst": None if burst is None else Burst(**{**burst, "counts": tuple(burst["counts"])}),
            "bursts_s": tuple(stored["bursts_s"]),
            "unexplained_s": tuple(stored["unexplained_s"]),
            "rhythms": tuple(_rhythm_of(each) for each in stored["rhythms"]),
        }
    )


def _rhythm_of(stored: Mapping[str, Any]) -> Rhythm:
    hits = tuple((int(beat), float(at_s)) for beat, at_s in stored["hits"])
    bursts = tuple(tuple(burst) for burst in stored["bursts"])
    return Rhythm(**{**stored, "hits": hits, "bursts": bursts, "jobs": tuple(stored["jobs"])})


def seen(before: Periods | None, arrived_jobs: int | None, *, at_s: float | None, tick_s: float) -> Periods | None:
    """``before`` with the ``arrived_jobs`` of the span of a tick that ended at ``at_s``; the same where it has none."""
    if not arrived_jobs or at_s is None or (before is not None and at_s <= before.at_s):
        return before
    known = before or Periods(began_at_s=at_s - tick_s, at_s=at_s - tick_s)
    mean_jobs = _mean_jobs(known, at_s, tick_s)
    jobs = known.jobs * math.exp((known.at_s - at_s) / RATE_MEMORY_S) + arrived_jobs
    stands_out = _stands_out(known, arrived_jobs, at_s, tick_s, mean_jobs=mean_jobs)
    if _goes_on(known.burst, arrived_jobs, at_s, tick_s):
        after = _longer(known, arrived_jobs, at_s, tick_s) if arrived_jobs >= mean_jobs else known
    elif stands_out:
        after = _begun(known, arrived_jobs, at_s, tick_s)
    else:
        after = known
    burst = after.burst
    is_of_rhythm = burst is not None and burst.at_s == at_s and burst.rhythm is not None
    others = after.others * math.exp((known.at_s - at_s) / RATE_MEMORY_S) + (0 if is_of_rhythm else arrived_jobs)
    return copied(after, at_s=at_s, jobs=jobs, others=others)


def _mean_jobs(known: Periods, at_s: float, tick_s: float) -> float:
    """Jobs that a tick brought on average, before the one that ends at ``at_s``."""
    jobs = known.jobs * math.exp((known.at_s - at_s) / RATE_MEMORY_S)
    return jobs * tick_s / max(tick_s, _watched_s(at_s - known.began_at_s))


def _watched_s(since_s: float) -> float:
    """The time that arrivals were counted in, as it weighs where older ones weigh less."""
    return -math.expm1(-since_s / RATE_MEMORY_S) * RATE_MEMORY_S


def _goes_on(burst: Burst | None, jobs: int, at_s: float, tick_s: float) -> bool:
    if burst is None or at_s - burst.at_s > (ENDS_AFTER_TICKS + SLACK) * tick_s:
        return False
    return jobs <= AGAIN_TIMES * sum(burst.counts)


def _stands_out(known: Periods, jobs: int, at_s: float, tick_s: float, *, mean_jobs: float) -> bool:
    silent_jobs = mean_jobs * (at_s - tick_s - known.at_s) / tick_s  # that the silence would have brought
    return jobs > mean_jobs + DETECTION_CHANCE_SIGMAS * math.sqrt(mean_jobs) or silent_jobs >= SILENT_LOG


def _longer(known: Periods, jobs: int, at_s: float, tick_s: float) -> Periods:
    """With the burst that goes on."""
    burst = known.burst
    assert burst is not None
    ticks = round((at_s - burst.began_at_s) / tick_s)
    if ticks >= BINS:
        return copied(known, burst=copied(burst, at_s=at_s))
    idle = (0,) * (ticks - len(burst.counts))
    longer = copied(burst, at_s=at_s, counts=(*burst.counts, *idle, jobs))
    return _learned(copied(known, burst=longer))


def _learned(known: Periods) -> Periods:
    """With what its rhythm learns of the newest burst."""
    burst = known.burst
    if burst is None or burst.rhythm is None:
        return known
    rhythms = [*known.rhythms]
    rhythms[burst.rhythm] = with_burst(rhythms[burst.rhythm], burst.counts)
    return copied(known, rhythms=tuple(rhythms))


def _begun(known: Periods, jobs: int, at_s: float, tick_s: float) -> Periods:
    """With the burst that begins: the next beat of a rhythm, else perhaps the end of a new one."""
    began_s = at_s - tick_s / 2
    per_s = _bursts_per_s(known, at_s)
    judged_now = (
        judged(each, until_s=began_s, after_s=each.near_s(tick_s), tick_s=tick_s, bursts_per_s=per_s)
        for each in known.rhythms
    )
    rhythms = sorted(judged_now, key=lambda each: -each.evidence)
    lost = (each_s for each in rhythms if each.evidence <= LOST for _, each_s in each.hits)
    unexplained_s, own = tuple(sorted((*known.unexplained_s, *lost)))[-DETECTED_BURSTS_KEPT:], None
    rhythms = [each for each in rhythms if each.evidence > LOST]
    as_great = [each for each in enumerate(rhythms) if each[1].is_as_great(jobs)]
    its = [each for test in (is_due, is_near) for each in as_great if test(each[1], began_s, tick_s=tick_s)]
    if its:
        own, rhythm = its[0]
        rhythms[own] = hit(rhythm, began_s, tick_s=tick_s, bursts_per_s=per_s)
    else:
        unexplained_s = (*unexplained_s, began_s)[-DETECTED_BURSTS_KEPT:]
        new = found(unexplained_s, tick_s=tick_s, period_min_s=PERIOD_MIN_TICKS * tick_s, bursts_per_s=per_s)
        if new is not None:
            known = replace(known, others_since_s=at_s, others=0.0)
            rhythms, own = [*rhythms[: RHYTHMS_MAX - 1], new], min(len(rhythms), RHYTHMS_MAX - 1)
            its_own = {each_s for _, each_s in new.hits}
            unexplained_s = tuple(each_s for each_s in unexplained_s if each_s not in its_own)
    return _learned(
        replace(
            known,
            bursts_s=(*known.bursts_s, began_s)[-max(DENSITY_BURSTS) :],
            burst=Burst(began_at_s=at_s, at_s=at_s, counts=(jobs,), rhythm=own),
            unexplained_s=unexplained_s,
            rhythms=tuple(rhythms),
        )
    )


def _bursts_per_s(known: Periods, now_s: float) -> float:
    """How often bursts came of late, at the least favourable: where they come often, any rhythm is met by chance."""
    since = (known.bursts_s[-count:] for count in DENSITY_BURSTS)
    return max((len(bursts_s) / max(1.0, now_s - bursts_s[0]) for bursts_s in since if len(bursts_s) > 1), default=1.0)


def _believed(periods: Periods | None, now_s: float, tick_s: float) -> list[Rhythm]:
    """The rhythms that are believed in now: beats that were due since, and brought nothing, speak against them."""
    if periods is None:
        return []
    per_s = _bursts_per_s(periods, now_s) if periods.rhythms else 0.0
    now = (
        judged(each, until_s=now_s, after_s=each.half_s(tick_s), tick_s=tick_s, bursts_per_s=per_s)
        for each in periods.rhythms
    )
    return [each for each in now if each.evidence >= RHYTHM_BELIEVED]


def expected(periods: Periods | None, *, now_s: float, ahead_s: float, tick_s: float) -> float | None:
    """The jobs of bursts that come within ``ahead_s`` from now; ``None``: no rhythm is known that is believed.

    Each burst is expected as early as it may come, and until it is too late for it.
    """
    rhythms = _believed(periods, now_s, tick_s)
    if not rhythms:
        return None
    return sum(expected_jobs(each, now_s=now_s, ahead_s=ahead_s, tick_s=tick_s) for each in rhythms)


def steady_per_s(periods: Periods | None, *, now_s: float, tick_s: float) -> float | None:
    """The arrivals a second beside the rhythms, of late; ``None`` unless one is believed.

    It is what ``expected`` does not cover: the recent rate holds bursts that are over, and would expect them again.
    """
    if periods is None or periods.others_since_s is None or not _believed(periods, now_s, tick_s):
        return None
    now_s = max(now_s, periods.at_s)  # a clock that was set back: without an upper bound, the factor overflows
    others = periods.others * math.exp((periods.at_s - now_s) / RATE_MEMORY_S)
    return others / max(tick_s, _watched_s(now_s - periods.others_since_s))


def rhythm_alone(periods: Periods, *, now_s: float, tick_s: float) -> tuple[Rhythm, float] | None:
    """The rhythm that is believed and the arrivals a second beside it; ``None`` without one, or with several."""
    if not periods.rhythms:
        return None
    rhythms, beside_per_s = _believed(periods, now_s, tick_s), steady_per_s(periods, now_s=now_s, tick_s=tick_s)
    return (rhythms[0], beside_per_s) if len(rhythms) == 1 and beside_per_s is not None else None
