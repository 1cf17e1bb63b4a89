"""RQ's queues in Redis or Valkey.

A poll is two or three round trips, however many queues there are: the keys of all queues, a longer tail of those that
much entered, then the records of jobs and workers that may be new. Within a poll keys are read in the direction in
which jobs move (waiting, running, ended), so that a job on its way is seen twice rather than not at all.

Of a job's record only ``rq_record.FIELDS`` are read, never its data, meta or result: those are pickles.
"""

import logging
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import redis

from headway.collect.job_memory import WAITING_KEPT
from headway.collect.redis_client import SCHEMES, connect, refusals, unavailable
from headway.collect.rq.queue_reading import Answers, EndedSpans, QueueReading, RecordRequests
from headway.collect.rq.queue_tracker import TrackedQueue
from headway.collect.rq.rq_record import FIELDS, job_of, record_from
from headway.collect.source import EXACT, Cursor, Figure, FoundQueue, Library, Reading, bounded
from headway.connections import Connection, as_text
from headway.errors import Misconfigured
from headway.scaling.model import JobEvent, QueueSample, WorkerActivity

PREFIX = "rq"
PREFIX_CHARS = re.compile(r"[A-Za-z0-9_.:{}-]+")  # RQ takes no others
WORKER_FIELDS = ("state", "pid", "hostname", "current_job", "successful_job_count", "failed_job_count")

HEAD_JOBS = 4
TAIL_JOBS = 200  # 400 jobs a second enter before a longer tail is asked for
DEEP_JOBS = 50_000  # of more that enter between two polls, the first are reported when a worker takes them
RUNNING_MAX = 5_000
ENDED_MAX = 5_000
RECORDS_MAX = 1_500  # some 0.2 s of work, and at most 7,500 events: ingest takes 10,000 things at once
PID_MAX = 2**31
GONE_MAX = 1_000  # queues that were deleted; whoever names one after a customer or a date deletes them without end
SAMPLED_EACH_POLLS = 20
SAMPLED_JOBS = 3

_Worker = tuple[list[str | None], set[str]]
"""The fields of a worker, and the executions that it has under way."""

log = logging.getLogger(__name__)


class RqSource:
    """The queues of one connection, reported up to a point. One thread polls."""

    def __init__(self, connection: Connection, cursor: Cursor | None) -> None:
        """Go on from ``cursor``; without one, report what waits and runs now, and not what ended before."""
        self._client = connect(connection)
        self._connection = connection
        self._keys = _Keys(connection.prefix or PREFIX)
        self._polls = 0
        self._polled_at_s: float | None = cursor["looked_at_s"] if cursor else None
        states = cursor["queues"] if cursor else {}
        self._queues = {
            queue: TrackedQueue.from_state(self._connection.queue(queue), state)
            for queue, state in states.items()
            if connection.reads(queue)
        }
        # Deleted while the broker answers, as by FLUSHALL: nothing waits there, which is known, unlike silence.
        gone = cursor.get("gone", ()) if cursor else ()
        self._gone = dict.fromkeys(queue for queue in gone if connection.reads(queue))
        """The queues that were reported and are no more, the one that went first, first."""
        self._unreadable: dict[str, str] = {}
        self._missing: set[str] = set()
        """Those that are tracked, and which the broker does not name any more."""

    def cursor(self) -> dict[str, Any]:
        """How far everything was reported."""
        return {
            "looked_at_s": self._polled_at_s,
            "queues": {queue: tracked.to_state() for queue, tracked in self._queues.items()},
            "gone": list(self._gone),
        }

    def discover(self) -> tuple[FoundQueue, ...]:
        """The queues that RQ has named here, by name."""
        try:
            named = [str(key).removeprefix(self._keys.list) for key in self._client.smembers(self._keys.queues)]
            names = sorted(name for name in named if self._connection.reads(name))
            with self._client.pipeline(transaction=False) as pipe:
                for name in names:
                    pipe.llen(self._keys.list + name)
                    pipe.scard(f"{self._keys.workers}:{name}")
                counts = iter(pipe.execute())
        except (redis.RedisError, OSError) as error:
            raise unavailable(self._connection, error) from error
        return tuple(FoundQueue(name=name, waiting_jobs=next(counts), workers=next(counts)) for name in names)

    def poll(self, at_s: float) -> Reading:
        """Everything as it is now, and what is new since the poll before."""
        try:
            return self._poll(at_s)
        except (redis.RedisError, OSError) as error:
            if isinstance(error, redis.AuthenticationError):
                self._log_in_anew()
            raise unavailable(self._connection, error) from error

    def _started_s(self, jobs: Collection[str]) -> Iterator[float]:
        """When those of ``jobs`` started that are known to run."""
        for tracked in self._queues.values() if jobs else ():
            yield from (at_s for job in jobs if (at_s := tracked.jobs.started_at_s(job)) is not None)

    def _log_in_anew(self) -> None:
        """Take the password from its file once more: it may have been changed."""
        with suppress(Misconfigured):  # while the file is being replaced
            client = connect(self._connection)
            self._client.close()
            self._client = client

    def close(self) -> None:
        """Let the broker go."""
        self._client.close()

    # --- the trips ----------------------------------------------------------------------------------------------------

    def _poll(self, at_s: float) -> Reading:
        worker_keys, readings = self._read_queues(at_s)
        self._poll_deeper(readings, at_s)
        asked = self._asks(readings)
        answers, workers = self._read_records(asked, worker_keys)
        # Nothing is raised from here on: what is reported and what is remembered as reported stay one.
        events: list[JobEvent] = []
        for queue, reading in readings.items():
            events += self._queues[queue].take(
                reading, asked[queue], answers[queue], at_s=at_s, polled_at_s=self._polled_at_s
            )
        self._polled_at_s = at_s
        self._polls += 1
        samples = [self._queues[queue].sample(reading, at_s=at_s) for queue, reading in readings.items()]
        self._let_go(readings)
        return Reading(
            at_s=at_s,
            events=tuple(events),
            samples=(*samples, *self._empty(readings, at_s=at_s)),
            activities=tuple(self._activities(workers)),
            has_more=any(_has_more(reading, asked[queue]) for queue, reading in readings.items()),
        )

    def _read_queues(self, at_s: float) -> tuple[list[str], dict[str, QueueReading]]:
        """First trip. A queue seen for the first time costs another."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.smembers(self._keys.queues)
            pipe.smembers(self._keys.workers)
            plans = [self._plan(pipe, queue, at_s) for queue in self._queues]
            queues, workers, *replies = pipe.execute(raise_on_error=False)
        for reply in (queues, workers):
            if isinstance(reply, Exception):
                raise reply
        present = {queue for key in queues if self._connection.reads(queue := key.removeprefix(self._keys.list))}
        readings = dict(self._readings(plans, replies))
        self._missing = self._queues.keys() - present
        for queue in present:
            self._gone.pop(queue, None)
        fresh = sorted(present - self._queues.keys())
        if fresh:
            begins_at_s = at_s if self._polled_at_s is None else self._polled_at_s
            self._queues |= {
                queue: TrackedQueue(self._connection.queue(queue), begins_at_s=begins_at_s) for queue in fresh
            }
            with self._client.pipeline(transaction=False) as pipe:
                plans = [self._plan(pipe, queue, at_s) for queue in fresh]
                readings |= self._readings(plans, pipe.execute(raise_on_error=False))
        return sorted(workers), readings

    def _let_go(self, readings: Mapping[str, QueueReading]) -> None:
        """Track no further those that were deleted, once nothing of them is left: no job that still runs, either."""
        for queue in sorted(self._missing & readings.keys()):
            if not self._queues[queue].is_left(readings[queue]):
                del self._queues[queue]
                self._gone[queue] = None
        for queue in list(self._gone)[: max(0, len(self._gone) - GONE_MAX)]:
            del self._gone[queue]

    def _empty(self, readings: Mapping[str, QueueReading], *, at_s: float) -> Iterator[QueueSample]:
        """Readings of those that are no more; one that went in this poll has been read."""
        for queue in self._gone.keys() - readings.keys():
            yield QueueSample(
                queue=self._connection.queue(queue),
                at_s=at_s,
                waiting_jobs=0,
                in_flight_jobs=0,
                delayed_jobs=0,
                oldest_age_s=0.0,
            )

    def _plan(self, pipe: Any, queue: str, at_s: float) -> "_Plan":
        tracked = self._queues[queue]
        plan = _Plan(queue=queue, is_sampled=self._polls % SAMPLED_EACH_POLLS == 0)
        pipe.llen(self._keys.list + queue)
        pipe.lrange(self._keys.list + queue, 0, HEAD_JOBS - 1)
        pipe.lrange(self._keys.list + queue, -TAIL_JOBS, -1)
        pipe.zrange(self._keys.wip + queue, 0, RUNNING_MAX - 1)
        pipe.zcard(self._keys.wip + queue)
        pipe.zcard(self._keys.scheduled + queue)
        for registry, endings in ((self._keys.finished, tracked.finished), (self._keys.failed, tracked.failed)):
            spans = endings.spans(at_s)
            plan.spans.append(len(spans))
            for low, high in spans:
                pipe.zrangebyscore(registry + queue, low, high, start=0, num=ENDED_MAX, withscores=True)
            if plan.is_sampled:
                # Unparsed: what redis-py makes of this reply differs between its versions.
                pipe.execute_command("ZRANDMEMBER", registry + queue, SAMPLED_JOBS, "WITHSCORES")
        return plan

    def _readings(self, plans: "list[_Plan]", replies: list[Any]) -> Iterator[tuple[str, QueueReading]]:
        rest = iter(replies)
        for plan in plans:
            try:
                reading = plan.reading([next(rest) for _ in range(plan.commands)])
            except redis.ResponseError as error:
                if self._unreadable.get(plan.queue) != str(error):
                    log.warning("queue unreadable queue=%s: %s", self._connection.queue(plan.queue), error)
                self._unreadable[plan.queue] = str(error)
            else:
                self._unreadable.pop(plan.queue, None)
                yield plan.queue, reading

    def _poll_deeper(self, readings: dict[str, QueueReading], at_s: float) -> None:
        """Second trip, rarely: longer tails."""
        deep = [queue for queue, reading in readings.items() if self._queues[queue].must_poll_deeper(reading)]
        if not deep:
            return
        is_beginning = self._polled_at_s is None
        with self._client.pipeline(transaction=False) as pipe:
            for queue in deep:
                pipe.lrange(self._keys.list + queue, -(WAITING_KEPT if is_beginning else DEEP_JOBS), -1)
            for queue, tail in zip(deep, pipe.execute(), strict=True):
                self._queues[queue].poll_deeper(tail, entries_reported_until_s=at_s if is_beginning else None)

    def _asks(self, readings: dict[str, QueueReading]) -> dict[str, RecordRequests]:
        room, asked = RECORDS_MAX, {}
        first = self._polls % max(len(readings), 1)  # every queue is first at times: none starves behind another
        queues = list(readings)
        for queue in queues[first:] + queues[:first]:
            asked[queue] = self._queues[queue].asks(readings[queue], room=room)
            room -= len(asked[queue].jobs)
        return asked

    def _read_records(
        self, asked: dict[str, RecordRequests], worker_keys: list[str]
    ) -> "tuple[dict[str, Answers], list[_Worker]]":
        """Last trip, where anything may be new or workers are there."""
        with self._client.pipeline(transaction=False) as pipe:
            for queue, each in asked.items():
                for job_id in each.jobs:
                    pipe.hmget(self._keys.job + job_id, FIELDS)
                    if job_id in each.ended:
                        pipe.zscore(self._keys.finished + queue, job_id)
                        pipe.zscore(self._keys.failed + queue, job_id)
            for key in worker_keys:
                pipe.hmget(key, WORKER_FIELDS)
                pipe.smembers(f"{key}:executions")  # from RQ 3 on; before, current_job named the one job
            replies = iter(pipe.execute(raise_on_error=False))
        answers = {queue: _answers(each, replies) for queue, each in asked.items()}
        workers = zip(replies, replies, strict=True)
        return answers, [each for each in workers if not any(isinstance(reply, Exception) for reply in each)]

    def _activities(self, workers: "list[_Worker]") -> Iterator[WorkerActivity]:
        for (state, pid, host, job_id, *ended), executions in workers:
            if not host or not pid or not pid.isdecimal() or not 0 < int(pid) <= PID_MAX:
                continue  # gone without a goodbye: its key has expired, its name is still in the set
            is_busy = state == "busy"
            jobs = {job_of(member) for member in executions} | ({job_id} if job_id else set())
            since_s = min(self._started_s(jobs), default=None)
            yield WorkerActivity(
                host=as_text(host),
                pid=int(pid),
                is_busy=is_busy,
                busy_since_s=since_s if is_busy else None,
                # RQ writes a count with the first job of its kind.
                ended_jobs=sum(int(count) for count in ended if count and count.isdecimal()),
            )


class _Keys:
    """Where RQ keeps what, by what its keys begin with (``RQ_KEY_PREFIX``)."""

    def __init__(self, prefix: str) -> None:
        self.queues, self.workers = f"{prefix}:queues", f"{prefix}:workers"
        self.list, self.wip, self.scheduled = f"{prefix}:queue:", f"{prefix}:wip:", f"{prefix}:scheduled:"
        self.finished, self.failed, self.job = f"{prefix}:finished:", f"{prefix}:failed:", f"{prefix}:job:"


@dataclass(slots=True)
class _Plan:
    """What is asked about one queue, in this order."""

    queue: str
    is_sampled: bool
    spans: list[int] = field(default_factory=list)
    """How many of the finished and of the failed registry."""

    @property
    def commands(self) -> int:
        return 6 + sum(self.spans) + 2 * self.is_sampled

    def reading(self, replies: list[Any]) -> QueueReading:
        """The contents of the replies. Raises ``ResponseError`` where one is an error."""
        waiting_jobs, head, tail, members, in_flight_jobs, delayed_jobs, *registries = replies
        rest = iter(registries)
        finished, failed = (self._ends(rest, spans) for spans in self.spans)
        for reply in (waiting_jobs, head, tail, members, in_flight_jobs, delayed_jobs):
            if isinstance(reply, Exception):
                raise reply
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

    def _ends(self, replies: Iterator[Any], spans: int) -> EndedSpans:
        scores: dict[str, float] = {}
        stops: list[float | None] = []
        for _ in range(spans):
            reply = next(replies)
            if isinstance(reply, Exception):
                raise reply
            scores |= dict(reply)
            stops.append(reply[-1][1] if len(reply) == ENDED_MAX else None)
        sampled = next(replies) if self.is_sampled else []
        if isinstance(sampled, Exception):  # a server before 6.2 knows no ZRANDMEMBER: it does without
            sampled = []
        return EndedSpans(
            scores=scores, stops=stops, sampled=dict(zip(sampled[::2], map(float, sampled[1::2]), strict=True))
        )


def _answers(asked: RecordRequests, replies: Iterator[Any]) -> Answers:
    answers = Answers(records={}, finished={}, failed={})
    for job_id in asked.jobs:
        answers.records[job_id] = record_from(_checked(next(replies)) or [None] * len(FIELDS))
        if job_id in asked.ended:
            for scores in (answers.finished, answers.failed):
                score = _checked(next(replies))
                if score is not None:
                    scores[job_id] = score
    return answers


def _checked(reply: Any) -> Any:
    """``reply``, None of a key that holds something else. Any other error is raised: it is not about the job."""
    if isinstance(reply, Exception):
        if str(reply).startswith("WRONGTYPE"):
            return None
        raise reply
    return reply


def _has_more(reading: QueueReading, asked: RecordRequests) -> bool:
    is_stopped = any(stop is not None for ends in (reading.finished, reading.failed) for stop in ends.stops)
    return asked.is_behind or is_stopped or len(asked.jobs) >= asked.room


def _refusals(connection: Connection) -> Iterator[str]:
    yield from refusals(connection)
    if connection.prefix is not None and not PREFIX_CHARS.fullmatch(connection.prefix):
        yield f"prefix {connection.prefix!r}: RQ_KEY_PREFIX has letters, digits and _ . : - {{ }} only"


RQ = Library(
    name="rq",
    title="RQ",
    schemes=SCHEMES,
    is_first_choice=True,  # what a redis:// URL alone has always meant
    refusals=_refusals,
    open=RqSource,
    accuracy={
        Figure.WAITING: EXACT,
        Figure.IN_FLIGHT: EXACT,
        Figure.DELAYED: EXACT,
        Figure.OLDEST_AGE: EXACT,
        Figure.ENTRIES: EXACT,
        Figure.STARTS: EXACT,
        Figure.ENDS: bounded("one poll where result_ttl is 0", remedy="keep results for a minute"),
        Figure.BUSY_WORKERS: EXACT,
    },
)
