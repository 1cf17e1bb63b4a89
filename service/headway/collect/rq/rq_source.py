"""RQ's queues in Redis or Valkey.

A poll is one to six round trips, however many queues there are: the keys of all queues; those of queues that are new
or were at rest and have a job; a longer tail of those that much entered; when jobs are due, of those that have
scheduled ones; then the records of jobs and workers that may be new, and of the job of each queue that waits longest;
rarely, of others at the list's edges. Within a poll keys are
read in the direction in which jobs move (waiting, running, ended), so that a job on its way is seen twice rather than
not at all.

Most queues are at rest: nothing waits, runs or is scheduled. Such a queue costs three commands and no reading.

Of a job's record only ``rq_record.FIELDS`` are read, never its data, meta or result: those are pickles.
"""

import logging
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import redis

from headway.collect.job_memory import WAITING_KEPT
from headway.collect.prepared_commands import exchange, prepared, sound, together
from headway.collect.redis_client import CLUSTER, SCHEMES, connect, is_about_a_key, log_in_anew, refusals, unavailable
from headway.collect.rq.queue_commands import Asked, QueueCommands, RqKeys, Spans, reading_from
from headway.collect.rq.queue_reading import Answers, QueueReading, RecordRequests
from headway.collect.rq.queue_tracker import TrackedQueue
from headway.collect.rq.rq_record import record_commands, record_from, score_commands
from headway.collect.rq.rq_workers import activities_of, served_by, worker_commands
from headway.collect.rq.scheduled_jobs import DUE_COMMANDS, compared_jobs, due_commands, scheduled_from
from headway.collect.rq.shared_keys import SharedKeys
from headway.collect.rq.stuck_jobs import StuckJobs
from headway.collect.rq.unseen_ends import UnseenEnds
from headway.collect.source import EXACT, Cursor, Figure, FoundQueue, Library, Reading, bounded
from headway.connections import Connection
from headway.scaling.model import EventKind, JobEvent, QueueSample, Redelivery

PREFIX = "rq"
PREFIX_CHARS = re.compile(r"[A-Za-z0-9_.:{}-]+")  # RQ takes no others

DEEP_JOBS = 50_000  # of more that enter between two polls, the first are reported when a worker takes them
RECORDS_MAX = 1_500  # some 0.2 s of work, and at most 7,500 events: ingest takes 10,000 things at once
GONE_FOR_S = 86_400.0  # a deleted queue counts as empty for a day: its jobs are known to be none
GONE_MAX = 1_000  # queues that were deleted; whoever names one after a customer or a date deletes them without end
SAMPLED_EACH_POLLS = 20
SAMPLED_QUEUES_MAX = 10  # a poll; of more queues, each is sampled less often

log = logging.getLogger(__name__)


class RqSource:
    """The queues of one connection, reported up to a point. One thread polls."""

    def __init__(self, connection: Connection, cursor: Cursor | None) -> None:
        """Go on from ``cursor``; without one, report what waits and runs now, and not what ended before."""
        self._client = connect(connection)
        self._connection = connection
        self._keys = RqKeys(connection.prefix or PREFIX)
        self._shared = SharedKeys(is_cluster=connection.scheme.endswith(CLUSTER))
        names = prepared("SMEMBERS", self._keys.queues), prepared("SMEMBERS", self._keys.workers)
        self._opening = together(*names, *self._shared.commands)
        self._polls = 0
        self._polled_at_s: float | None = cursor["looked_at_s"] if cursor else None
        states = cursor["queues"] if cursor else {}
        self._queues = {
            queue: TrackedQueue.from_state(self._connection.queue(queue), state)
            for queue, state in states.items()
            if connection.reads(queue)
        }
        self._unseen_ends = UnseenEnds(cursor.get("ends_counted") if cursor else None)
        # Deleted while the broker answers, as by FLUSHALL: nothing waits there, which is known, unlike silence.
        gone = _gone_from(cursor) if cursor else {}
        self._gone = {queue: gone_s for queue, gone_s in gone.items() if connection.reads(queue)}
        """The queues that were reported and are no more -> since when, the one that went first, first."""
        self._unreadable: dict[str, str] = {}
        self._stuck = StuckJobs()
        self._commands: dict[str, QueueCommands] = {}
        self._present_keys: list[str] = []
        self._present: set[str] = set()
        """The queues that the broker names, and as what it named them."""
        self._missing: set[str] = set()
        """Those that are tracked, and which the broker does not name any more."""

    def cursor(self) -> dict[str, Any]:
        """How far everything was reported."""
        return {
            "looked_at_s": self._polled_at_s,
            "queues": {queue: tracked.to_state() for queue, tracked in self._queues.items()},
            "gone": dict(self._gone),
            "ends_counted": self._unseen_ends.counted,
        }

    def discover(self) -> tuple[FoundQueue, ...]:
        """The queues that RQ has named here, by name."""
        try:
            named = [str(key).removeprefix(self._keys.list) for key in self._client.smembers(self._keys.queues)]
            names = sorted(name for name in named if self._connection.reads(name))
            waiting = sound(exchange(self._client, [prepared("LLEN", self._keys.list + name) for name in names]))
            listed = sound(
                exchange(self._client, [prepared("SCARD", f"{self._keys.workers}:{name}") for name in names])
            )
        except (redis.RedisError, OSError) as error:
            raise unavailable(self._connection, error) from error
        found = zip(names, waiting, listed, strict=True)
        return tuple(FoundQueue(name=name, waiting_jobs=jobs, workers=workers) for name, jobs, workers in found)

    def poll(self, at_s: float) -> Reading:
        """Everything as it is now, and what is new since the poll before."""
        try:
            return self._poll(at_s)
        except (redis.RedisError, OSError) as error:
            log_in_anew(self._client, self._connection, error)
            raise unavailable(self._connection, error) from error

    def _started(self, jobs: Collection[str]) -> Iterator[tuple[str, float]]:
        """The queues of those of ``jobs`` that are known to run, and when they started."""
        for tracked in self._queues.values() if jobs else ():
            yield from ((tracked.queue, at_s) for job in jobs if (at_s := tracked.jobs.started_at_s(job)) is not None)

    def close(self) -> None:
        """Let the broker go."""
        self._client.close()

    # --- the trips ----------------------------------------------------------------------------------------------------

    def _poll(self, at_s: float) -> Reading:
        worker_keys, readings, resting = self._read_queues(at_s)
        self._poll_deeper(readings, at_s)
        self._read_scheduled(readings, at_s)
        asked = self._asks(readings)
        answers, workers = self._read_records(asked, worker_keys)
        listed = Counter(queue for fields, _ in workers if fields is not None for queue in served_by(fields))
        self._read_edges(readings, asked, answers)
        # Nothing is raised from here on: what is reported and what is remembered as reported stay one.
        events: list[JobEvent] = []
        for queue, reading in readings.items():
            events += self._queues[queue].take(
                reading, asked[queue], answers[queue], at_s=at_s, polled_at_s=self._polled_at_s
            )
        self._unseen_ends.take(
            {key: fields for key, (fields, _) in zip(worker_keys, workers, strict=True) if fields is not None}
        )
        events += self._unseen_runs(readings, Counter(each.queue for each in events if each.kind is EventKind.FINISHED))
        self._polled_at_s = at_s
        self._polls += 1
        samples = [
            self._queues[queue].sample(reading, at_s=at_s, listed_workers=listed.get(queue, 0), shared=self._shared)
            for queue, reading in readings.items()
        ]
        for queue in resting:
            self._queues[queue].rest(at_s=at_s)
        samples += self._empty(resting, listed, at_s=at_s)
        self._stuck.see({self._queues[queue].queue: each.taken for queue, each in readings.items()}, at_s=at_s)
        self._let_go(readings, at_s=at_s)
        return Reading(
            at_s=at_s,
            events=tuple(events),
            # One that went in this poll has been read.
            samples=(*samples, *self._empty(self._gone.keys() - readings.keys(), listed, at_s=at_s)),
            activities=activities_of(workers, self._started),
            has_more=any(_has_more(reading, asked[queue]) for queue, reading in readings.items()),
        )

    def _unseen_runs(self, queues: Collection[str], ended_jobs: Mapping[str, int]) -> Iterator[JobEvent]:
        """The runs of jobs that have left no record, where their workers count more ends than polls have seen."""
        tracked = {queue: self._queues[queue] for queue in queues}
        for queue, each in tracked.items():
            self._unseen_ends.explain(queue, ended_jobs.get(each.queue, 0))
        for queue, each in tracked.items():
            yield from each.unseen_runs(self._unseen_ends.explain(queue, len(each.gone)))
        if not any(each.gone for each in tracked.values()):
            self._unseen_ends.forget()

    def _read_queues(self, at_s: float) -> tuple[list[str], dict[str, QueueReading], list[str]]:
        """The keys of workers, the readings of queues, and the queues that are still at rest.

        A first trip, and a second for queues that are new or have woken.
        """
        spans, sampled = Spans(at_s), self._sampled()
        asked = [
            self._commands_of(queue).asked(tracked, spans, is_whole=not tracked.is_at_rest, is_sampled=queue in sampled)
            for queue, tracked in self._queues.items()
        ]
        keys, workers, *replies = exchange(self._client, [self._opening, *(each.commands for each in asked)])
        sound((keys, workers))
        self._shared.take([replies.pop(0) for _ in self._shared.commands])
        again = self._name(keys, at_s)
        readings: dict[str, QueueReading] = {}
        resting: list[str] = []
        rest = iter(replies)
        for each in asked:
            of_queue = list(islice(rest, each.commands.commands))
            if not each.is_whole and not any(of_queue) and each.queue not in self._missing:
                resting.append(each.queue)
                self._unreadable.pop(each.queue, None)
            elif not each.is_whole and of_queue[0]:
                again.append(each.queue)
            else:
                self._read(each, of_queue, readings)
        asked = [self._commands_of(queue).asked(self._queues[queue], spans, is_whole=True) for queue in again]
        rest = iter(exchange(self._client, [each.commands for each in asked]))
        for each in asked:
            self._read(each, list(islice(rest, each.commands.commands)), readings)
        return sorted(workers), readings, resting

    def _name(self, keys: list[str], at_s: float) -> list[str]:
        """Take the queues that the broker names. Returns the new ones."""
        if keys != self._present_keys:
            names = (key.removeprefix(self._keys.list) for key in keys)
            self._present_keys, self._present = keys, {name for name in names if self._connection.reads(name)}
        self._missing = self._queues.keys() - self._present
        fresh = sorted(self._present - self._queues.keys())
        begins_at_s = at_s if self._polled_at_s is None else self._polled_at_s
        for queue in fresh:
            self._gone.pop(queue, None)
            self._queues[queue] = TrackedQueue(self._connection.queue(queue), begins_at_s=begins_at_s)
        return fresh

    def _commands_of(self, queue: str) -> QueueCommands:
        if queue not in self._commands:
            self._commands[queue] = QueueCommands(self._keys, queue)
        return self._commands[queue]

    def _sampled(self) -> set[str]:
        """The queues whose turn it is to have some of their ended jobs drawn by lot."""
        parts = max(SAMPLED_EACH_POLLS, math.ceil(len(self._queues) / SAMPLED_QUEUES_MAX))
        first = self._polls % parts * SAMPLED_QUEUES_MAX
        return set(islice(self._queues, first, first + SAMPLED_QUEUES_MAX))

    def _read(self, asked: Asked, replies: list[Any], readings: dict[str, QueueReading]) -> None:
        """Take the reading of a queue, none of one that cannot be read, which is logged when it changes."""
        try:
            readings[asked.queue] = reading_from(asked, replies)
        except redis.ResponseError as error:
            if not is_about_a_key(error):
                raise
            if self._unreadable.get(asked.queue) != str(error):
                log.warning("queue unreadable queue=%s: %s", self._connection.queue(asked.queue), error)
            self._unreadable[asked.queue] = str(error)
        else:
            self._unreadable.pop(asked.queue, None)

    def _let_go(self, readings: Mapping[str, QueueReading], *, at_s: float) -> None:
        """Track no further those that were deleted, once nothing of them is left: no job that still runs, either.

        Those of long ago are forgotten, but for the ones that the connection names.
        """
        for queue in sorted(self._missing & readings.keys()):
            if not self._queues[queue].is_left(readings[queue]):
                del self._queues[queue]
                self._commands.pop(queue, None)
                self._gone[queue] = at_s
        named = self._connection.named_queues
        for queue, gone_s in list(self._gone.items()):
            if at_s - gone_s > GONE_FOR_S and queue not in named:
                del self._gone[queue]
        for queue in list(self._gone)[: max(0, len(self._gone) - GONE_MAX)]:
            del self._gone[queue]

    def _empty(self, queues: Iterable[str], listed: Mapping[str, int], *, at_s: float) -> Iterator[QueueSample]:
        """The state of ``queues``, which have no job or are no more."""
        empty = partial(
            QueueSample,
            at_s=at_s,
            waiting_jobs=0,
            in_flight_jobs=0,
            delayed_jobs=self._shared.delayed_jobs(0),
            oldest_age_s=0.0,
            suspension=self._shared.suspension,
            redelivery=Redelivery.CLEAN_UP,
        )
        for queue in queues:
            tracked = self._queues.get(queue)
            name = self._connection.queue(queue) if tracked is None else tracked.queue
            yield empty(queue=name, listed_workers=listed.get(queue, 0))

    def _poll_deeper(self, readings: dict[str, QueueReading], at_s: float) -> None:
        """A trip more, rarely: longer tails."""
        deep = [queue for queue, reading in readings.items() if self._queues[queue].must_poll_deeper(reading)]
        if not deep:
            return
        is_beginning = self._polled_at_s is None
        jobs = WAITING_KEPT if is_beginning else DEEP_JOBS
        tails = exchange(self._client, [prepared("LRANGE", self._keys.list + queue, -jobs, -1) for queue in deep])
        for queue, tail in zip(deep, sound(tails), strict=True):
            self._queues[queue].poll_deeper(tail, entries_reported_until_s=at_s if is_beginning else None)

    def _read_scheduled(self, readings: dict[str, QueueReading], at_s: float) -> None:
        """A trip more, where jobs are scheduled: when they are due."""
        queues = [queue for queue, reading in readings.items() if reading.scheduled_jobs]
        compared, keys = compared_jobs(len(queues)), (self._keys.scheduled + queue for queue in queues)
        replies = iter(exchange(self._client, [due_commands(key, at_s=at_s, compared_jobs=compared) for key in keys]))
        for queue in queues:
            of_queue, jobs = list(islice(replies, DUE_COMMANDS)), readings[queue].scheduled_jobs
            scheduled = scheduled_from(of_queue, at_s=at_s, scheduled_jobs=jobs, compared_jobs=compared)
            readings[queue] = replace(readings[queue], scheduled=scheduled)

    def _asks(self, readings: dict[str, QueueReading]) -> dict[str, RecordRequests]:
        room, asked = RECORDS_MAX, {}
        first = self._polls % max(len(readings), 1)  # every queue is first at times: none starves behind another
        queues = list(readings)
        for queue in queues[first:] + queues[:first]:
            asked[queue] = self._queues[queue].asks(readings[queue], room=room)
            room -= asked[queue].within_room
        return asked

    def _read_records(
        self, asked: dict[str, RecordRequests], worker_keys: list[str]
    ) -> tuple[dict[str, Answers], list[tuple[Any, Any]]]:
        """Last trip, where anything may be new or waits, or workers are there."""
        batch = []
        for queue, each in asked.items():
            for job_id in each.jobs:
                batch.append(record_commands(self._keys.job + job_id))
                if job_id in each.ended:
                    batch.append(score_commands(job_id, self._keys.finished + queue, self._keys.failed + queue))
        batch += [worker_commands(key) for key in worker_keys]
        replies = iter(exchange(self._client, batch))
        answers = {queue: _answers(each, replies) for queue, each in asked.items()}
        workers = list(zip(replies, replies, strict=True))
        return answers, [(None if isinstance(fields, Exception) else fields, jobs) for fields, jobs in workers]

    def _read_edges(
        self, readings: dict[str, QueueReading], asked: dict[str, RecordRequests], answers: dict[str, Answers]
    ) -> None:
        """A trip more, rarely: where the oldest job of a queue has entered it anew."""
        again = [
            (queue, job_id)
            for queue, reading in readings.items()
            for job_id in self._queues[queue].asks_again(reading, asked[queue], answers[queue])
        ]
        replies = exchange(self._client, [record_commands(self._keys.job + job_id) for _, job_id in again])
        for (queue, job_id), reply in zip(again, replies, strict=True):
            answers[queue].records[job_id] = record_from(_checked(reply))


def _gone_from(cursor: Cursor) -> dict[str, float]:
    """The deleted queues in a cursor; earlier versions did not note since when: since the last poll, then."""
    gone = cursor.get("gone", {})
    if isinstance(gone, dict):
        return {str(queue): float(gone_s) for queue, gone_s in gone.items()}
    return dict.fromkeys(gone, float(cursor["looked_at_s"] or 0.0))


def _answers(asked: RecordRequests, replies: Iterator[Any]) -> Answers:
    answers = Answers(records={}, finished={}, failed={})
    for job_id in asked.jobs:
        answers.records[job_id] = record_from(_checked(next(replies)))
        if job_id in asked.ended:
            for scores in (answers.finished, answers.failed):
                score = _checked(next(replies))
                if score is not None:
                    scores[job_id] = float(score)
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
    return asked.is_behind or is_stopped or asked.is_full


def _refusals(connection: Connection) -> Iterator[str]:
    yield from refusals(connection)
    if connection.prefix is not None and not PREFIX_CHARS.fullmatch(connection.prefix):
        yield f"prefix {connection.prefix!r}: RQ_KEY_PREFIX has letters, digits and _ . : - {{ }} only"


# RQ keeps those of all times in one place of a registry, by their ids: the new ones do not stand together.
SEEN = bounded(
    "one attempt per job and poll, and to jobs that a poll saw if result_ttl is 0 or -1 or failure_ttl -1",
    remedy="give Retry an interval of 1 s or more, and keep results for a minute",
)
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
        Figure.DELAYED: bounded(
            "unknown while the package rq-scheduler has jobs", remedy="schedule jobs with RQ itself"
        ),
        Figure.OLDEST_AGE: EXACT,
        Figure.ENTRIES: SEEN,
        Figure.STARTS: SEEN,
        Figure.ENDS: SEEN,
        Figure.BUSY_WORKERS: EXACT,
    },
)
