"""One rhythm that bursts of arrivals keep: its period, how far bursts stray from it, and what each brings.

A rhythm is found in bursts that were already there, and is used only once bursts that came afterwards, each where it
was due, are far likelier under it than by chance. Each burst that stays away speaks against it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.scaling.arithmetic import HOUR_S, ROUNDING

RHYTHM_BURSTS = 5  # of so many, one may be odd
ODD_BURSTS = 3
RHYTHM_FITTED_BEATS = 8  # the period is fitted to the newest; older ones are of a clock that has drifted since
BINS = 12  # ticks of a burst that are counted one by one: a minute; what goes on for longer the recent rate covers
RHYTHM_TOGETHER_BINS = 2  # a burst so short may have come all at once, and have been cut in two by a tick
RHYTHM_KEPT_FRACTION = 0.9  # of the beats of a true rhythm bring a burst where it is due
RHYTHM_BELIEVED = 5.0  # the logarithm of how much likelier the rhythm is than chance: about 150 times
RHYTHM_SURE = 10.0  # no more is kept, so that three beats in a row without a burst end the belief in any rhythm
RHYTHM_AHEAD_S_MAX = HOUR_S  # farther ahead nobody plans a worker
LOST = -2.0  # a rhythm so much less likely than chance is forgotten
RHYTHM_STRAYS = 0.75  # of the farthest stray, beyond half a tick: most of a stray is the rounding to ticks
RHYTHM_ODD_TIMES = 4  # fewer jobs than usual are no burst of the rhythm
NEAR_TICKS = 1.5
UNSURE_TICKS = 0.75  # so far from the next beat may a line through three bursts lie that were each seen to a tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """Bursts that come a period apart."""

    period_s: float
    at_s: float
    """When the newest beat was due."""
    beat: int
    """The number of the newest beat that is judged."""
    hits: tuple[tuple[int, float], ...]
    """Number and time of the newest beats that brought a burst, in order."""
    stray_s: float
    """How far from its beat the farthest of ``hits`` is."""
    evidence: float = 0.0
    """The logarithm of how much likelier what came is under this rhythm than by chance."""
    right: int = 0
    """Of the beats that were predicted, those that brought a burst."""
    predicted: int = 0
    bursts: tuple[tuple[int, ...], ...] = ()
    """What the newest bursts brought up to each tick of them, in order."""
    jobs: tuple[int, ...] = ()
    """What a burst brings up to each of its ticks: of the newest bursts the second most."""

    def half_s(self, tick_s: float) -> float:
        """How far from its beat a burst counts as its own: its time is known to half a tick."""
        return min(self.period_s / 2, tick_s / 2 + RHYTHM_STRAYS * self.stray_s + self._unsure_s(tick_s))

    def near_s(self, tick_s: float) -> float:
        """How far from its beat a burst is still likelier to be its own, strayed farther than any before."""
        half_s = self.half_s(tick_s)
        return max(half_s, min(self.period_s / 4, half_s + NEAR_TICKS * tick_s))

    def lead_s(self, tick_s: float) -> float:
        """How long before its beat the first job of a burst may come."""
        return max(tick_s / 2, self.stray_s) + self._unsure_s(tick_s)

    def is_as_great(self, jobs: int) -> bool:
        """Whether a burst that begins with so many jobs can be its own: a single job is no beat of a rush of fifty."""
        return not self.jobs or jobs * RHYTHM_ODD_TIMES >= self.jobs[0]

    def _unsure_s(self, tick_s: float) -> float:
        return UNSURE_TICKS * tick_s * (ODD_BURSTS / len(self.hits)) ** 2


def judged(rhythm: Rhythm, *, until_s: float, after_s: float, tick_s: float, bursts_per_s: float) -> Rhythm:
    """``rhythm`` after the beats that were due ``after_s`` before ``until_s``, or earlier, and brought nothing."""
    missed = math.floor((until_s - after_s - rhythm.at_s) / rhythm.period_s - ROUNDING)
    if missed < 1:
        return rhythm
    against = missed * _of_miss(rhythm, tick_s, bursts_per_s)
    return replace(
        rhythm,
        at_s=rhythm.at_s + missed * rhythm.period_s,
        beat=rhythm.beat + missed,
        evidence=rhythm.evidence + against,
        predicted=rhythm.predicted + missed,
    )


def is_due(rhythm: Rhythm, at_s: float, *, tick_s: float) -> bool:
    """Whether a burst at ``at_s`` is where the next beat has it; ``rhythm`` was judged until then."""
    return abs(at_s - rhythm.at_s - rhythm.period_s) <= rhythm.half_s(tick_s)


def is_near(rhythm: Rhythm, at_s: float, *, tick_s: float) -> bool:
    """Whether it is so near that the rhythm may stray farther than was seen: then it must learn that it does."""
    return abs(at_s - rhythm.at_s - rhythm.period_s) <= rhythm.near_s(tick_s)


def hit(rhythm: Rhythm, at_s: float, *, tick_s: float, bursts_per_s: float) -> Rhythm:
    """``rhythm`` with the burst of its next beat, which began at ``at_s``: right where it was due, wrong if near."""
    beat = rhythm.beat + 1
    hits = (*rhythm.hits, (beat, at_s))[-RHYTHM_FITTED_BEATS:]
    period_s, due_s = _fitted(hits, beat)
    is_right = is_due(rhythm, at_s, tick_s=tick_s)
    of_hit = math.log(RHYTHM_KEPT_FRACTION / _chance(bursts_per_s, rhythm.half_s(tick_s)))
    more = of_hit if is_right else _of_miss(rhythm, tick_s, bursts_per_s)
    return replace(
        rhythm,
        period_s=period_s,
        at_s=due_s,
        beat=beat,
        hits=hits,
        stray_s=_farthest(hits, beat, period_s, due_s),
        evidence=min(RHYTHM_SURE, rhythm.evidence + more),
        right=rhythm.right + is_right,
        predicted=rhythm.predicted + 1,
        bursts=(*rhythm.bursts, ())[-RHYTHM_BURSTS:],
    )


def _of_miss(rhythm: Rhythm, tick_s: float, bursts_per_s: float) -> float:
    """What one beat without a burst where it was due says; never for the rhythm."""
    return min(0.0, math.log((1 - RHYTHM_KEPT_FRACTION) / (1 - _chance(bursts_per_s, rhythm.half_s(tick_s)))))


def with_burst(rhythm: Rhythm, counts: Sequence[int]) -> Rhythm:
    """``rhythm`` whose newest burst has brought ``counts`` so far, tick by tick."""
    total, sums = 0, []
    for count in counts[:BINS]:
        total += count
        sums.append(total)
    bursts = (*rhythm.bursts[:-1], tuple(sums))
    return replace(rhythm, bursts=bursts, jobs=_agreed(bursts))


def _agreed(bursts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The second most that any burst had brought by each tick, the most of fewer than three; without an idle end."""
    rank = 1 if len(bursts) >= ODD_BURSTS else 0
    known = [burst for burst in bursts if burst]
    length = max(map(len, known), default=0)
    sums = [
        sorted((burst[min(tick, len(burst) - 1)] for burst in known), reverse=True)[min(rank, len(known) - 1)]
        for tick in range(length)
    ]
    while len(sums) > 1 and sums[-1] == sums[-2]:
        sums.pop()
    return tuple(sums)


def expected_jobs(rhythm: Rhythm, *, now_s: float, ahead_s: float, tick_s: float) -> float:
    """The jobs of bursts within ``ahead_s`` from now, each as early as it may come; ``rhythm`` is judged until now.

    A burst that may have been due already and has not come is expected at once.
    """
    lead_s, end_s = rhythm.lead_s(tick_s), now_s + min(ahead_s, RHYTHM_AHEAD_S_MAX)
    jobs = _left_jobs(rhythm, now_s, end_s, tick_s)
    due_s = rhythm.at_s + rhythm.period_s
    while due_s - lead_s < end_s:
        jobs += brought(rhythm.jobs, end_s - max(now_s, due_s - lead_s), tick_s=tick_s)
        due_s += rhythm.period_s
    return jobs


def _left_jobs(rhythm: Rhythm, now_s: float, end_s: float, tick_s: float) -> float:
    """What the newest burst still brings by ``end_s``, where it belongs to the newest beat."""
    if rhythm.hits[-1][0] != rhythm.beat or not rhythm.jobs:
        return 0.0
    began_s = rhythm.hits[-1][1] - tick_s / 2
    if len(rhythm.jobs) > RHYTHM_TOGETHER_BINS:
        by_now, by_end = (brought(rhythm.jobs, at_s - began_s, tick_s=tick_s) for at_s in (now_s, end_s))
        return by_end - by_now
    is_over = now_s - began_s > (RHYTHM_TOGETHER_BINS + 1) * tick_s
    return 0.0 if is_over else float(max(0, rhythm.jobs[-1] - max(rhythm.bursts[-1], default=0)))


def brought(sums: Sequence[int], since_s: float, *, tick_s: float) -> float:
    """What a burst that brings ``sums`` has brought ``since_s`` after it began."""
    if since_s <= 0 or not sums:
        return 0.0
    if len(sums) <= RHYTHM_TOGETHER_BINS:
        return float(sums[-1])
    most = max(later - earlier for earlier, later in zip((0, *sums), sums, strict=False))
    first_s = tick_s * sums[0] / most  # a tick that the burst began within: a part of it, at the burst's own pace
    if since_s <= first_s:
        return sums[0] * since_s / first_s
    whole, part_s = divmod(since_s - first_s, tick_s)
    if whole >= len(sums) - 1:
        return float(sums[-1])
    at = int(whole)
    return sums[at] + (sums[at + 1] - sums[at]) * part_s / tick_s


def found(bursts_s: Sequence[float], *, tick_s: float, period_min_s: float, bursts_per_s: float) -> Rhythm | None:
    """The rhythm that the newest of ``bursts_s`` ends, if they keep one; they are in order.

    Every earlier burst is tried as the one before. Since the likeliest of so many is taken, it must be likelier by as
    many times.
    """
    if len(bursts_s) < ODD_BURSTS:
        return None
    newest_s = bursts_s[-1]
    tried = [each for each in bursts_s[:-1] if newest_s - each >= period_min_s]
    rhythms = (_followed(bursts_s, newest_s - each, tick_s=tick_s, bursts_per_s=bursts_per_s) for each in tried)
    likeliest = max((each for each in rhythms if each is not None), key=lambda each: each.evidence, default=None)
    if likeliest is None:
        return None
    evidence = likeliest.evidence - math.log(len(tried))
    return replace(likeliest, evidence=min(evidence, RHYTHM_SURE)) if evidence > 0 else None


def _followed(bursts_s: Sequence[float], period_s: float, *, tick_s: float, bursts_per_s: float) -> Rhythm | None:
    """The rhythm of about ``period_s`` as far back as bursts keep it; two beats in a row without one end it."""
    half_s = min(1.5 * tick_s, period_s / 5)  # both ends of the first period were seen to a tick
    chance = _chance(bursts_per_s, half_s)
    for_hit, against_miss = math.log(RHYTHM_KEPT_FRACTION / chance), math.log((1 - RHYTHM_KEPT_FRACTION) / (1 - chance))
    newest_s, evidence = bursts_s[-1], 0.0
    hits = [(0, newest_s)]
    at, beat, missed = len(bursts_s) - 2, -1, 0
    while missed < 2 and len(hits) < RHYTHM_FITTED_BEATS:
        due_s = newest_s + beat * period_s
        while at >= 0 and bursts_s[at] > due_s + half_s:
            at -= 1
        if at < 0:
            break
        if bursts_s[at] >= due_s - half_s:
            hits.append((beat, bursts_s[at]))
            period_s = (newest_s - bursts_s[at]) / -beat
            evidence += for_hit if len(hits) > 2 else 0.0  # the first made the period
            missed = 0
        else:
            missed += 1
            evidence += min(0.0, against_miss)
        beat -= 1
    if len(hits) < ODD_BURSTS:
        return None
    hits.reverse()
    fitted_s, due_s = _fitted(hits, 0)
    return Rhythm(
        period_s=fitted_s,
        at_s=due_s,
        beat=0,
        hits=tuple(hits),
        stray_s=_farthest(hits, 0, fitted_s, due_s),
        evidence=evidence,
        bursts=((),),
    )


def _fitted(hits: Sequence[tuple[int, float]], beat: int) -> tuple[float, float]:
    """The period and the time of ``beat`` by the line of least squares through ``hits``."""
    mean_beat = sum(number for number, _ in hits) / len(hits)
    mean_s = sum(each_s for _, each_s in hits) / len(hits)
    around = sum((number - mean_beat) ** 2 for number, _ in hits)
    period_s = sum((number - mean_beat) * (each_s - mean_s) for number, each_s in hits) / around
    return period_s, mean_s + (beat - mean_beat) * period_s


def _farthest(hits: Sequence[tuple[int, float]], beat: int, period_s: float, due_s: float) -> float:
    return max(abs(each_s - due_s - (number - beat) * period_s) for number, each_s in hits)


def _chance(bursts_per_s: float, half_s: float) -> float:
    """How likely a burst falls within ``half_s`` of a moment by chance."""
    return min(0.99, max(1e-6, -math.expm1(-bursts_per_s * 2 * half_s)))
