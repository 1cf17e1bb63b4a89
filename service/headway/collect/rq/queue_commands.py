"""What a poll asks about one queue of RQ, prepared as bytes, and what the replies mean."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from headway.collect.prepared_commands import Prepared, beginning, ending, prepared, together
from headway.collect.rq.ended_jobs import EndedJobs
from headway.collect.rq.queue_reading import EndedSpans, QueueReading
from headway.collect.rq.rq_record import job_of

HEAD_JOBS = 4
TAIL_JOBS = 200  # 400 jobs a second enter before a longer tail is asked for
RUNNING_MAX = 5_000
ENDED_MAX = 5_000
SAMPLED_JOBS = 3
SPAN_WORDS = 8
JOB_COMMANDS = 6


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
        self._endings: dict[tuple[int, int], bytes] = {}

    def endings(self, registry: EndedJobs) -> list[bytes]:
        """For each span of ``registry``, what ends the command that asks for it."""
        return [self._endings.get(span) or self._ending(span) for span in registry.spans(self._at_s)]

    def _ending(self, span: tuple[int, int]) -> bytes:
        self._endings[span] = ending((*span, "WITHSCORES", "LIMIT", 0, ENDED_MAX))
        return self._endings[span]


class Asked(NamedTuple):
    """What was asked about one queue."""

    queue: str
    commands: Prepared
    has_jobs: bool
    """Whether its list and the registries of jobs that have not ended were asked for; else they are empty."""
    spans: tuple[int, int]
    """How many of the finished and of the failed registry."""
    is_sampled: bool


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
        self._queue = queue
        self._is_there = prepared("EXISTS", at_list, running, scheduled)
        self._jobs = together(
            prepared("LLEN", at_list),
            prepared("LRANGE", at_list, 0, HEAD_JOBS - 1),
            prepared("LRANGE", at_list, -TAIL_JOBS, -1),
            prepared("ZRANGE", running, 0, RUNNING_MAX - 1),
            prepared("ZCARD", running),
            prepared("ZCARD", scheduled),
        )
        self._ends = [beginning(("ZRANGEBYSCORE", key), words_in_all=SPAN_WORDS) for key in registries]
        self._samples = [prepared("ZRANDMEMBER", key, SAMPLED_JOBS, "WITHSCORES") for key in registries]

    @property
    def is_there(self) -> Prepared:
        """Asks whether a job of it waits, runs or is scheduled: of an empty list or registry there is no key."""
        return self._is_there

    def asked(self, ends: TrackedEnds, spans: Spans, *, has_jobs: bool, is_sampled: bool) -> Asked:
        """Asks for all of it, in the direction in which jobs move."""
        finished, failed = spans.endings(ends.finished), spans.endings(ends.failed)
        packed = [self._jobs.packed] if has_jobs else []
        for begins, sample, endings in zip(self._ends, self._samples, (finished, failed), strict=True):
            for each in endings:
                packed += (begins, each)
            if is_sampled:
                packed.append(sample.packed)
        count = (JOB_COMMANDS if has_jobs else 0) + len(finished) + len(failed) + (2 if is_sampled else 0)
        commands = Prepared(b"".join(packed), count)
        return Asked(self._queue, commands, has_jobs, (len(finished), len(failed)), is_sampled)


def reading_from(asked: Asked, replies: Sequence[Any]) -> QueueReading:
    """What the replies say. Raises ``ResponseError`` where one is an error."""
    rest = iter(replies)
    jobs: list[Any] = [next(rest) for _ in range(JOB_COMMANDS)] if asked.has_jobs else [0, [], [], [], 0, 0]
    finished, failed = (_ends(rest, spans, is_sampled=asked.is_sampled) for spans in asked.spans)
    for reply in jobs:
        if isinstance(reply, Exception):
            raise reply
    waiting_jobs, head, tail, members, in_flight_jobs, delayed_jobs = jobs
    return QueueReading(
        waiting_jobs=waiting_jobs,
        in_flight_jobs=in_flight_jobs,
        delayed_jobs=delayed_jobs,
        head=head,
        tail=tail,
        members={job_of(member): member for member in members},
        finished=finished,
        failed=failed,
    )


def _ends(replies: Iterator[Any], spans: int, *, is_sampled: bool) -> EndedSpans:
    scores: dict[str, float] = {}
    stops: list[float | None] = []
    for _ in range(spans):
        reply = next(replies)
        if isinstance(reply, Exception):
            raise reply
        found = _scored(reply)
        scores |= found
        stops.append(found[next(reversed(found))] if len(found) == ENDED_MAX else None)
    sampled = next(replies) if is_sampled else ()
    # A server before 6.2 knows no ZRANDMEMBER: it does without.
    return EndedSpans(scores=scores, stops=stops, sampled={} if isinstance(sampled, Exception) else _scored(sampled))


def _scored(reply: Sequence[Any]) -> dict[str, float]:
    """Job -> score, of a reply in which they alternate, as RESP2 has it, or are pairs, as RESP3 has it."""
    if reply and isinstance(reply[0], list):
        return dict(reply)
    each = iter(reply)
    return {job: float(score) for job, score in zip(each, each, strict=True)}
