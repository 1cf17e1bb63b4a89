"""What a poll asks about one queue of RQ, prepared as bytes, and what the replies mean."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from headway.collect.prepared_commands import Prepared, beginning, ending, prepared, scores_of, sound, together
from headway.collect.rq.ended_jobs import EndedJobs
from headway.collect.rq.queue_reading import EndedSpans, QueueReading
from headway.collect.rq.rq_record import job_of

HEAD_JOBS = 4
TAIL_JOBS = 200  # 400 jobs a second enter before a longer tail is asked for
RUNNING_MAX = 5_000
TAKEN_MAX = 1_000  # of those that have not begun: one per worker, as long as workers live
ENDED_MAX = 5_000
SAMPLED_JOBS = 3
SPAN_WORDS = 8
JOB_COMMANDS = 7


class RqKeys:
    """Where RQ keeps what, by what its keys begin with (``RQ_KEY_PREFIX``)."""

    def __init__(self, prefix: str) -> None:
        self.queues, self.workers = f"{prefix}:queues", f"{prefix}:workers"
        self.list, self.wip, self.scheduled = f"{prefix}:queue:", f"{prefix}:wip:", f"{prefix}:scheduled:"
        self.finished, self.failed, self.job = f"{prefix}:finished:", f"{prefix}:failed:", f"{prefix}:job:"


class Spans:
    """The bytes of the spans of one poll: those of a thousand idle queues are alike."""

    def __init__(self, at_s: float) -> None:
        self._at_s = at_s
        self._endings: dict[tuple[float, ...], list[bytes]] = {}

    def endings(self, registry: EndedJobs) -> list[bytes]:
        """For each span of ``registry``, what ends the command that asks for it."""
        key = registry.place()
        known = self._endings.get(key)
        if known is None:
            spans = registry.spans(self._at_s)
            known = self._endings[key] = [ending((*span, "WITHSCORES", "LIMIT", 0, ENDED_MAX)) for span in spans]
        return known


class Asked(NamedTuple):
    """What was asked about one queue."""

    queue: str
    commands: Prepared
    is_whole: bool
    """Whether all of it was asked for; else whether it has a job that has not ended, and what has ended."""
    spans: tuple[int, int]
    """How many of the finished and of the failed registry."""
    is_sampled: bool

    @property
    def opening(self) -> int:
        """How many replies come before those of the registries of ended jobs."""
        return JOB_COMMANDS if self.is_whole else 1


class TrackedEnds(Protocol):
    """The registries of the ended jobs of a queue, as far as they were read."""

    finished: EndedJobs
    failed: EndedJobs


class QueueCommands:
    """The commands about one queue."""

    __slots__ = ("_ends", "_is_there", "_jobs", "_queue", "_samples")

    def __init__(self, keys: RqKeys, queue: str) -> None:
        at_list, running, scheduled = keys.list + queue, keys.wip + queue, keys.scheduled + queue
        registries = (keys.finished + queue, keys.failed + queue)
        taken = f"{at_list}:intermediate"
        self._queue = queue
        self._is_there = prepared("EXISTS", at_list, taken, running, scheduled).packed
        self._jobs = together(
            prepared("LLEN", at_list),
            prepared("LRANGE", at_list, 0, HEAD_JOBS - 1),
            prepared("LRANGE", at_list, -TAIL_JOBS, -1),
            prepared("LRANGE", taken, 0, TAKEN_MAX - 1),
            prepared("ZRANGE", running, 0, RUNNING_MAX - 1),
            prepared("ZCARD", running),
            prepared("ZCARD", scheduled),
        ).packed
        self._ends = [beginning(("ZRANGEBYSCORE", key), words_in_all=SPAN_WORDS) for key in registries]
        self._samples = [prepared("ZRANDMEMBER", key, SAMPLED_JOBS, "WITHSCORES").packed for key in registries]

    def asked(self, ends: TrackedEnds, spans: Spans, *, is_whole: bool, is_sampled: bool = False) -> Asked:
        """Asks in the direction in which jobs move. Of an empty list or registry there is no key, so one is enough."""
        finished, failed = spans.endings(ends.finished), spans.endings(ends.failed)
        in_finished, in_failed = self._ends
        packed = [self._jobs if is_whole else self._is_there, in_finished, in_finished.join(finished)]
        if is_sampled:
            packed.append(self._samples[0])
        packed += (in_failed, in_failed.join(failed))
        if is_sampled:
            packed.append(self._samples[1])
        count = (JOB_COMMANDS if is_whole else 1) + len(finished) + len(failed) + (2 if is_sampled else 0)
        return Asked(self._queue, Prepared(b"".join(packed), count), is_whole, (len(finished), len(failed)), is_sampled)


def reading_from(asked: Asked, replies: Sequence[Any]) -> QueueReading:
    """What the replies say, of a queue that was asked for as a whole or has no job that has not ended.

    Raises ``ResponseError`` where a reply is an error.
    """
    rest = iter(replies)
    opening = [next(rest) for _ in range(asked.opening)]
    finished, failed = (_ends(rest, spans, is_sampled=asked.is_sampled) for spans in asked.spans)
    sound(opening)
    jobs: list[Any] = opening if asked.is_whole else [0, [], [], [], [], 0, 0]
    waiting_jobs, head, tail, taken, members, running_jobs, scheduled_jobs = jobs
    begun = {job_of(member): member for member in members}
    taken = [job for job in taken if job not in begun]  # for a moment, one that begins is in both
    return QueueReading(
        waiting_jobs=waiting_jobs,
        in_flight_jobs=running_jobs + len(taken),
        scheduled_jobs=scheduled_jobs,
        head=head,
        tail=tail,
        taken=taken,
        members=begun,
        finished=finished,
        failed=failed,
    )


def _ends(replies: Iterator[Any], spans: int, *, is_sampled: bool) -> EndedSpans:
    scores: dict[str, float] = {}
    stops: list[float | None] = []
    for _ in range(spans):
        (reply,) = sound([next(replies)])
        found = scores_of(reply)
        scores |= found
        stops.append(found[next(reversed(found))] if len(found) == ENDED_MAX else None)
    sampled = next(replies) if is_sampled else ()
    # A server before 6.2 knows no ZRANDMEMBER: it does without.
    return EndedSpans(scores=scores, stops=stops, sampled={} if isinstance(sampled, Exception) else scores_of(sampled))
