"""What a slot takes between two jobs, learned while jobs wait: fetching, forking, acknowledging, all but the job.

While a job has been waiting for the whole of a span, no slot had reason to rest in it. What the slots had of time, less
what the jobs that ended took, is the overhead of those jobs. Spans that follow one another make a run: what its jobs in
flight at the end had taken by then is in no job that ended, so a run counts once it is long, less its unfinished work.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headway.scaling.measure import BUCKET_S, SERVICE_WINDOW_S, BucketRow, bucket_start_s, sketch_value_s
from headway.scaling.view import PoolView

DISPATCH_KEPT = 0.98  # of what was learned, at each further span: the last five minutes of waiting count most
DISPATCH_ROUNDS_MIN = 10.0  # jobs per slot in one run: its unfinished work is then about a tenth of a job per job
SAMPLES_KEPT = 12
DISPATCH_SETTLES_S = 5.0  # what happened in a span is counted this long after its end
DISPATCH_DIGITS = 3  # that differ: noise below must not pass for news


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One sample of a pool."""

    sampled_at_s: float
    oldest_age_s: float
    """0 where nothing waits."""
    slots: int | None
    """That took jobs; ``None`` where workers came or went, or others than ours may have worked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Spans without a gap in which the same slots took one job after the other. Sums over its spans."""

    slots: int = 0
    slot_s: float = 0.0
    service_s: float = 0.0
    service_s2: float = 0.0
    """Squares of service times."""
    jobs: float = 0.0

    @property
    def rounds(self) -> float:
        """Jobs per slot."""
        return self.jobs / self.slots if self.slots else 0.0

    @property
    def rest_s(self) -> float:
        """What the slots had of time beyond their jobs, those in flight at the end included; 0 before any job ended.

        Seen at one moment, a job in flight has taken E[S²] / 2E[S] so far. The work before the run of those in flight
        at its beginning counts as its own: the more such work, the less the rest.

        Source: D. R. Cox, "Renewal Theory" (1962), section 5.1 (backward recurrence time).
        """
        unfinished_s = self.slots * self.service_s2 / (2 * self.service_s) if self.service_s else 0.0
        return self.slot_s - self.service_s - unfinished_s if self.jobs else 0.0

    def with_span(self, rows: Sequence[BucketRow], *, slots: int, jobs: int, timed_jobs: int) -> "Run":
        """This, and one span more, in which ``jobs`` ended; of ``timed_jobs`` is known how long they took."""
        share = jobs / timed_jobs if jobs else 0.0  # those whose start is not known take as long as the others
        squares_s2 = sum(
            count * sketch_value_s(index) ** 2 for row in rows for index, count in row.service_sketch.items()
        )
        return Run(
            slots=slots,
            slot_s=self.slot_s + slots * BUCKET_S,
            service_s=self.service_s + sum(row.service_sum_s for row in rows) * share,
            service_s2=self.service_s2 + squares_s2 * share,
            jobs=self.jobs + jobs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """What was learned of one pool. Sums fade."""

    rest_s: float = 0.0
    jobs: float = 0.0
    rounds: float = 0.0
    """Jobs per slot."""
    run: Run = Run()
    """The newest; it counts from ``DISPATCH_ROUNDS_MIN`` on."""
    until_s: float = 0.0
    """The end of the last span that counts."""

    @property
    def overhead_s(self) -> float | None:
        """Seconds per job, rather too few than too many; ``None`` until a run was long enough."""
        if not self.jobs:
            return None
        return float(f"{max(0.0, self.rest_s) / self.jobs:.{DISPATCH_DIGITS}g}")

    def with_span(self, rows: Iterable[BucketRow], *, bucket_s: float, slots: int) -> "Dispatch":
        """This, and a span in which ``slots`` took one job after the other."""
        rows = tuple(rows)
        jobs = sum(row.ended_jobs for row in rows)
        timed_jobs = sum(sum(row.service_sketch.values()) for row in rows)
        if jobs and not timed_jobs:
            return self  # of none of them is known how long it took
        before = self.run if bucket_s == self.until_s else Run()
        run = before.with_span(rows, slots=slots, jobs=jobs, timed_jobs=timed_jobs)
        until_s = bucket_s + BUCKET_S
        if run.rounds < DISPATCH_ROUNDS_MIN:
            return replace(self, run=run, until_s=until_s)
        counted = before if before.rounds >= DISPATCH_ROUNDS_MIN else Run()
        rounds = run.rounds - counted.rounds
        kept = max(DISPATCH_KEPT, 1.0 - rounds / DISPATCH_ROUNDS_MIN)  # of long jobs, at least so many rounds count
        return Dispatch(
            rest_s=self.rest_s * kept + run.rest_s - counted.rest_s,
            jobs=self.jobs * kept + run.jobs - counted.jobs,
            rounds=self.rounds * kept + rounds,
            run=run,
            until_s=until_s,
        )


def seen_of(view: PoolView, *, at_s: float) -> Seen:
    """What one evaluation of a pool shows, by samples as new as ``at_s``."""
    waits = [
        queue.sampled_at_s - queue.oldest_age_s
        for queue in view.queues
        if queue.waiting_jobs and queue.sampled_at_s is not None and queue.oldest_age_s is not None
    ]
    slots = view.running_workers * view.slots_per_worker
    at_work = sum(queue.running_jobs or 0 for queue in view.queues)
    is_alone = not (view.starting_workers or view.leaving_workers or view.unknown_workers or view.is_shared)
    is_steady = is_alone and at_work <= slots
    return Seen(
        sampled_at_s=at_s,
        oldest_age_s=max(0.0, at_s - min(waits, default=at_s)),
        slots=slots if is_steady else None,
    )


def with_samples(known: Dispatch, samples: Sequence[Seen], rows: Iterable[BucketRow], *, now_s: float) -> Dispatch:
    """``known`` and what the last samples and the buckets show since; the very value where that is nothing.

    Args:
        known: What was learned before.
        samples: The last ones, ``SAMPLES_KEPT`` at most, in their order.
        rows: Buckets in which something happened.
        now_s: What happened in a span is counted some time after its end.
    """
    if not samples[-1].oldest_age_s and not samples[0].oldest_age_s:
        return known
    by_bucket = _by_bucket(rows)
    # Rows of older spans are not kept: that they show no job does not mean that there was none.
    from_s = max(samples[0].sampled_at_s, now_s - SERVICE_WINDOW_S + BUCKET_S)
    bucket_s = max(known.until_s, bucket_start_s(from_s))
    while bucket_s + BUCKET_S <= now_s - DISPATCH_SETTLES_S:
        slots = busy_slots(tuple(samples), bucket_s=bucket_s)
        if slots:
            known = known.with_span(by_bucket.get(bucket_s, ()), bucket_s=bucket_s, slots=slots)
        bucket_s += BUCKET_S
    return known


def _by_bucket(rows: Iterable[BucketRow]) -> dict[float, list[BucketRow]]:
    found: dict[float, list[BucketRow]] = {}
    for row in rows:
        found.setdefault(row.bucket_s, []).append(row)
    return found


def busy_slots(seen: Sequence[Seen], *, bucket_s: float) -> int | None:
    """The slots that had jobs to take throughout the span that begins at ``bucket_s``; ``None`` where that is not sure.

    Args:
        seen: samples, in their order.
        bucket_s: the span's beginning.
    """
    until_s = bucket_s + BUCKET_S
    first = max((number for number, sample in enumerate(seen) if sample.sampled_at_s <= bucket_s), default=None)
    last = min((number for number, sample in enumerate(seen) if sample.sampled_at_s >= until_s), default=None)
    if first is None or last is None:
        return None
    samples = seen[first : last + 1]
    slots = {sample.slots for sample in samples}
    if len(slots) > 1 or None in slots or 0 in slots:
        return None
    covered_s = bucket_s
    for sample in samples:
        if sample.sampled_at_s - sample.oldest_age_s <= covered_s:
            covered_s = max(covered_s, sample.sampled_at_s)  # somebody has been waiting ever since
    return samples[0].slots if covered_s >= until_s else None
