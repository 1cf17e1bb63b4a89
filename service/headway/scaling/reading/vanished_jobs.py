"""Jobs that leave a pool without a start: expired, purged, revoked, trimmed or flushed. They teach nothing.

What came is learned from as it comes, before anybody knows what becomes of it. So what was known before a backlog is
kept beside it, and is what is known again where most of the backlog vanishes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headway.scaling.arithmetic import HOUR_S
from headway.scaling.metrics.flush_detection import FLUSH_LOST_FRACTION_MIN, FLUSH_SETTLED_S, LOST_JOBS_MIN
from headway.scaling.model import Backlog, BacklogSample, Memory, Note, NoteKind, PoolDepths, QueueMetrics
from headway.scaling.reading.depth_only import can_show_service
from headway.scaling.view import PoolView, copied

BACKLOG_SAMPLES_S = 50.0  # less than the window of rates, so that each start since the oldest sample is in the rate
BACKLOG_LEARNED_S = HOUR_S  # of a pool whose jobs always wait, what was known longer ago is worth less than the news
LEARNED = ("guard", "periods")
"""What strategies learn from what came, by its key in their state."""


def backlog_of(view: PoolView, memory: Memory, *, now_s: float) -> Backlog | None:
    """What is remembered of the jobs of a pool while so many wait that they may vanish; ``None`` while fewer do.

    ``vanished_jobs`` of it are those that are found to have vanished now.
    """
    before = memory.backlog
    is_anybody_there = bool(
        view.running_workers or view.starting_workers or view.unknown_workers or view.leaving_workers
    )
    sample = _sample(view.queues, is_anybody_there=is_anybody_there)
    kept = () if before is None else before.samples
    if sample is not None and (not kept or sample.at_s > kept[-1].at_s):
        kept = (*kept, sample)
    samples = tuple(each for each in kept if each.at_s > now_s - BACKLOG_SAMPLES_S)
    if not any(each.waiting_jobs >= LOST_JOBS_MIN for each in samples):
        return None
    if before is None or now_s - before.since_s > BACKLOG_LEARNED_S:
        learned = {name: memory.strategy_state[name] for name in LEARNED if name in memory.strategy_state}
        return Backlog(
            since_s=now_s, samples=samples, learned=learned, depths=_at_rest(memory.depths), service=memory.service
        )
    vanished_jobs, samples = _vanished(
        samples, _left_jobs(view.queues, do_workers_report=view.do_workers_report), now_s=now_s
    )
    return copied(before, samples=samples, vanished_jobs=vanished_jobs)


def without_vanished(memory: Memory, backlog: Backlog | None, queues: tuple[QueueMetrics, ...]) -> Memory:
    """``memory`` without what was learned of a backlog of ``queues`` that has vanished; itself where none has.

    A service time by reported ends is of jobs that ran, and stays.
    """
    if backlog is None or not backlog.vanished_jobs:
        return memory
    others = {name: value for name, value in memory.strategy_state.items() if name not in LEARNED}
    return replace(
        memory,
        strategy_state={**others, **backlog.learned},
        depths=_depths_of_before(memory.depths, backlog.depths),
        service=backlog.service if can_show_service(queues) else memory.service,
    )


def note(backlog: Backlog | None) -> tuple[Note, ...]:
    """What a decision says of them."""
    if backlog is None or not backlog.vanished_jobs:
        return ()
    text = f"{backlog.vanished_jobs} jobs left without having been started: nothing is learned from them"
    return (Note(kind=NoteKind.VANISHED_JOBS, text=text),)


def _sample(queues: Sequence[QueueMetrics], *, is_anybody_there: bool) -> BacklogSample | None:
    """The jobs of the pool by the newest samples of its queues; ``None`` where they are not known."""
    if any(queue.waiting_jobs is None for queue in queues):
        return None
    is_known = not is_anybody_there or all(queue.in_flight_jobs is not None for queue in queues)
    waiting_jobs = sum(queue.waiting_jobs or 0 for queue in queues)
    in_flight_jobs = sum(queue.in_flight_jobs or 0 for queue in queues) if is_known else None
    at_s = min((queue.sampled_at_s for queue in queues if queue.sampled_at_s is not None), default=None)
    return None if at_s is None else BacklogSample(at_s=at_s, waiting_jobs=waiting_jobs, in_flight_jobs=in_flight_jobs)


def _left_jobs(queues: Iterable[QueueMetrics], *, do_workers_report: bool) -> float | None:
    """Jobs of the rates' window that began or ended, at most; ``None`` where nobody reports them."""
    left_jobs = 0.0
    for queue in queues:
        per_s = _greatest_per_s(queue)
        if per_s is None and not do_workers_report:
            return None
        left_jobs += (per_s or 0.0) * queue.window_s
    return left_jobs


def _greatest_per_s(queue: QueueMetrics) -> float | None:
    if queue.start_rate_per_s is None:
        return None
    return max(queue.start_rate_per_s, queue.completion_rate_per_s or 0.0)


def _vanished(
    samples: tuple[BacklogSample, ...], left_jobs: float | None, *, now_s: float
) -> tuple[int, tuple[BacklogSample, ...]]:
    """How many of the jobs that were there most are gone without a start, and the samples that are still news.

    Starts of the last moments may not be counted yet: the newest samples wait for them.
    """
    settled = [each for each in samples if each.at_s <= now_s - FLUSH_SETTLED_S]
    if left_jobs is None or not settled or settled[-1].in_flight_jobs is None:
        return 0, samples
    most_jobs, now_jobs = max(each.least_jobs for each in settled), settled[-1].least_jobs
    lost_jobs = int(most_jobs - now_jobs - left_jobs)
    if lost_jobs < max(LOST_JOBS_MIN, FLUSH_LOST_FRACTION_MIN * most_jobs):
        return 0, samples
    return lost_jobs, samples[len(settled) - 1 :]


def _at_rest(depths: PoolDepths | None) -> PoolDepths | None:
    return None if depths is None else copied(depths, queues=())


def _depths_of_before(now: PoolDepths | None, before: PoolDepths | None) -> PoolDepths | None:
    """``now`` with the ages of the jobs that wait, and with the pace that depths had shown ``before``."""
    if now is None:
        return None
    nothing: Mapping[str, Any] = {
        "arrived_jobs": 0,
        "arrival_rate_per_s": 0.0,
        "start_rate_per_s": 0.0,
        "late_rate_per_s": 0.0,
    }
    pace = before or PoolDepths()
    return copied(
        now,
        queues=tuple(copied(each, **nothing) for each in now.queues),
        cycle_s=pace.cycle_s,
        ended_jobs=pace.ended_jobs,
        busy_slot_s=pace.busy_slot_s,
    )
