"""Celery's queues in Redis or Valkey.

A poll is two round trips, and a third where jobs wait, however many queues there are: which have jobs; the lengths of
their lists and what workers hold; both ends of those lists, and the envelopes of what was taken since.

Workers publish a heartbeat every 2 s that says how many jobs they run. Where they acknowledge late, these are among
what they hold; where early, as by default, a job that runs is nowhere in the broker. Until it shows which of both it
is, and where heartbeats are missing or the broker has several queues, the number in flight is not known: what is seen
is reported as a lower bound.
"""

import logging
import time
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import redis

from headway.collect.celery.acknowledgements import Acknowledgements, HeldAndRunning
from headway.collect.celery.celery_message import Message
from headway.collect.celery.held_index import HELD_MAX, HeldIndex
from headway.collect.celery.held_messages import HeldMessages, HeldOfQueue
from headway.collect.celery.lists.entered_jobs import EnteredJobs, NewJobs
from headway.collect.celery.lists.list_ends import ListEnds
from headway.collect.celery.lists.message_sizes import MessageSizes, expected_chars
from headway.collect.celery.lists.oldest_entered import is_timed, oldest_entered
from headway.collect.celery.priority_lists import PriorityLists
from headway.collect.celery.queue_bindings import QueueBindings
from headway.collect.celery.taken_jobs import TakenJobs, taken_jobs
from headway.collect.celery.worker_heartbeats import WorkerHeartbeats
from headway.collect.list_marks import Entered, ListMarks
from headway.collect.prepared_commands import Prepared, exchange, prepared, sound
from headway.collect.redis_client import SCHEMES, connect, is_about_a_key, log_in_anew, refusals, unavailable
from headway.collect.source import Cursor, Figure, FoundQueue, Library, Reading, bounded, unseen
from headway.connections import Connection
from headway.scaling.model import BrokerPoll, PolledQueue, QueueSample, Redelivery, due_by_edges

TAKEN, TAKEN_INDEX = "unacked", "unacked_index"
HEAD_JOBS = 20  # of those that are next in a list, the ones that were put back show how old they are
HEADS_CHARS_MAX = 2_000_000  # a poll, of all lists; one message of each list is read in any case
ASKED_TOGETHER = 50

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _QueueCount:
    """What one poll found of a queue."""

    waiting_jobs: int = 0
    """Of those that were read."""
    due_s: list[float] = field(default_factory=list)
    """When each job is due that is due later."""
    is_whole: bool = True
    """Whether each message in its lists was read."""
    oldest: tuple[Entered, ...] = ()
    is_age_known: bool = True


class _Groups:
    """Queues in groups, and for each the command that asks whether any of its lists exists."""

    def __init__(self, queues: Sequence[str], lists: Callable[[str], Iterable[str]], *, version: int) -> None:
        self.queues, self.version = queues, version
        self.groups = [queues[first : first + ASKED_TOGETHER] for first in range(0, len(queues), ASKED_TOGETHER)]
        self.commands = [prepared("EXISTS", *(key for queue in group for key in lists(queue))) for group in self.groups]


class CelerySource:
    """The queues of one connection. One thread polls."""

    def __init__(self, connection: Connection, cursor: Cursor | None) -> None:
        """Go on with the queues of ``cursor``: after a flush, no producer binds them again."""
        self._connection = connection
        self._is_new_server = False
        """Whether there was a connection anew: the server may be another one than before."""
        self._client = connect(connection, on_connect=self._connected)
        self._prefix = connection.prefix or ""
        database = self._client.connection_pool.connection_kwargs.get("db") or 0
        before = cursor or {}
        self._heartbeats = WorkerHeartbeats(
            self._client,
            prefix=self._prefix,
            database=int(database),
            have_published=bool(before.get("workers_publish")),
        )
        self._acknowledgements = Acknowledgements(
            is_early=bool(before.get("acknowledges_early")), is_late=bool(before.get("acknowledges_late"))
        )
        self._bindings = QueueBindings(
            self._client,
            connection,
            known=before.get("queues", ()),
            separators=before.get("separators"),
            others_at_s=before.get("other_queues_at_s"),
        )
        self._lists = PriorityLists(connection, self._bindings, known=before.get("lists"))
        self._groups: _Groups | None = None
        self._marks: dict[str, ListMarks] = {}
        self._empty_at_s: dict[str, float] = {}
        """List -> when it was seen empty last, unless that was with its queue."""
        self._queue_empty_at_s: dict[str, float] = {}
        """Queue -> when each of its lists was."""
        self._held_index = HeldIndex(self._client, self._prefix + TAKEN_INDEX)
        self._held = HeldMessages(self._bindings.queue_of)
        self._heads: dict[str, float] = {}
        """Queue -> after when the job that was next at the last poll had entered, where that is known."""
        self._unreadable: dict[str, str] = {}
        self._partly_read: set[str] = set()
        self._head_sizes = MessageSizes()
        self._entered = EnteredJobs(self._client)
        self._polled_at_s: float | None = None
        """The last poll; ``None`` where it may have been of another server."""

    def _connected(self) -> None:
        self._is_new_server = True
        self._polled_at_s = None

    def cursor(self) -> dict[str, Any]:
        """What was learned; nothing is reported job by job, so nothing can be reported twice."""
        return {
            "acknowledges_early": self._acknowledgements.is_early,
            "acknowledges_late": self._acknowledgements.is_late,
            "workers_publish": self._heartbeats.have_published,
            "queues": list(self._bindings.queues),
            "other_queues_at_s": self._bindings.others_at_s,
            "separators": {queue: list(each) for queue, each in self._bindings.further_separators.items()},
            "lists": {queue: list(each) for queue, each in self._lists.found.items()},
        }

    def discover(self) -> tuple[FoundQueue, ...]:
        """The queues that Celery has bound here, by name."""
        try:
            self._bindings.scan_all(at_s=time.time())
            self._lists.take(self._bindings.lists)
            names = sorted(self._bindings.queues)
            asked = [prepared("LLEN", key) for name in names for key in self._lists.of(name)]
            lengths = iter(sound(exchange(self._client, asked)))
        except (redis.RedisError, OSError) as error:
            raise unavailable(self._connection, error) from error
        return tuple(
            FoundQueue(name=name, waiting_jobs=sum(islice(lengths, len(self._lists.of(name))))) for name in names
        )

    def poll(self, at_s: float) -> Reading:
        """Depths, ages and workers as they are now."""
        try:
            return self._poll(at_s)
        except (redis.RedisError, OSError) as error:
            if isinstance(error, redis.exceptions.InvalidResponse):
                self._head_sizes.doubt()
                self._entered.doubt_sizes()
                self._held.doubt_sizes()
            self._heartbeats.close()
            log_in_anew(self._client, self._connection, error)
            raise unavailable(self._connection, error) from error

    def close(self) -> None:
        """Let the broker go."""
        self._heartbeats.close()
        self._client.close()

    # --- the trips ----------------------------------------------------------------------------------------------------

    def _poll(self, at_s: float) -> Reading:
        began_s = time.monotonic()
        self._heartbeats.read(at_s)
        was_whole, known = self._bindings.is_whole, len(self._bindings.queues)
        self._bindings.scan_on(at_s=at_s)
        found = self._take_lists(was_whole=was_whole)
        # A queue, or a list of one, that is found late may have had jobs before.
        late = frozenset() if was_whole else frozenset(islice(self._bindings.queues, known, None)) | found
        lengths = self._read_lengths(at_s)
        full = [(queue, key) for queue, of_queue in lengths.items() for key, length in of_queue.items() if length]
        ends, envelopes = self._read_ends(full, self._held.unread())
        if self._polled_at_s is None:
            self._entered.forget()
        new = self._entered.read(lengths, ends)
        seen_s = at_s + time.monotonic() - began_s
        counts = {queue: self._count(queue, of_queue, ends, at_s, seen_s) for queue, of_queue in lengths.items()}
        self._held.take(envelopes, self._heads)
        # Of several lists any may be taken from. Where one may hold what was there before, nothing is known.
        self._heads = {
            queue: min(after_s, default=at_s)
            for queue, count in counts.items()
            if (after_s := _after_s(count.oldest)) is not None
        }
        return Reading(
            at_s=at_s,
            samples=tuple(self._samples(counts, at_s)),
            activities=tuple(self._heartbeats.activities(at_s)),
            poll=self._entries(lengths, new, late, at_s, seen_s),
        )

    def _take_lists(self, *, was_whole: bool) -> set[str]:
        """Take the lists that were scanned. Returns the queues of which one is new.

        A queue was empty as far as its lists were known: of one that was found since, that is so only where all keys
        had been scanned.
        """
        found = self._lists.take(self._bindings.lists)
        for queue, before in self._lists.outdated.items():
            at_s = self._queue_empty_at_s.pop(queue, None)
            if at_s is not None:
                self._empty_at_s.update((key, max(at_s, self._empty_at_s.get(key, at_s))) for key in before)
            if was_whole and self._polled_at_s is not None:
                self._empty_at_s.update(dict.fromkeys(set(self._lists.of(queue)) - set(before), self._polled_at_s))
        return found

    def _entries(
        self,
        lengths: Mapping[str, Mapping[str, int]],
        new: Mapping[str, NewJobs],
        late: Container[str],
        at_s: float,
        seen_s: float,
    ) -> BrokerPoll:
        """Which jobs are new."""
        after_s, self._polled_at_s = self._polled_at_s, at_s
        held = self._held.counts()
        is_all_known = self._held_index.is_whole and sum(held.values()) == len(self._held_index)
        rows = [PolledQueue(queue=self._connection.queue(queue), waiting_jobs=0) for queue in self._unreadable]
        for queue, of_queue in lengths.items():
            waiting_jobs = sum(of_queue.values())
            if waiting_jobs or queue in held or not is_all_known:
                found = new.get(queue, NewJobs()) if queue not in late else NewJobs(is_complete=False)
                rows.append(
                    PolledQueue(
                        queue=self._connection.queue(queue),
                        waiting_jobs=waiting_jobs,
                        held_jobs=held.get(queue, 0) if is_all_known else None,
                        entered=found.jobs,
                        is_complete=found.is_complete and queue not in self._lists.unread,
                    )
                )
        return BrokerPoll(
            connection=self._connection.name,
            at_s=at_s,
            until_s=seen_s,
            after_s=after_s,
            queues=tuple(rows),
            finds_all=self._bindings.is_whole,
        )

    def _read_lengths(self, at_s: float) -> dict[str, dict[str, int]]:
        """Queue -> list -> jobs in it, none of an empty queue; and which messages workers hold."""
        lengths: dict[str, dict[str, int]] = {queue: {} for queue in self._bindings.queues}
        full = self._with_jobs(list(lengths))
        asked = [prepared("LLEN", key) for queue in full for key in self._lists.of(queue)]
        held = self._held_index.ask(by_name=self._held.due_tags(at_s=at_s))
        replies = exchange(self._client, [*asked, *held])
        self._held.change(self._held_index.take(replies[len(asked) :]))
        rest = iter(replies)
        for queue in full:
            of_queue = list(islice(rest, len(self._lists.of(queue))))
            if self._is_readable(queue, of_queue):
                lengths[queue] = dict(zip(self._lists.of(queue), of_queue, strict=True))
            else:
                del lengths[queue]
        return lengths

    def _with_jobs(self, queues: Sequence[str]) -> list[str]:
        """Those of ``queues`` among which some have a job: a list without one does not exist.

        Asked for many queues at once: a thousand idle ones cost a tenth of what their lengths would.
        """
        version = self._lists.version
        if self._groups is None or self._groups.queues != queues or self._groups.version != version:
            self._groups = _Groups(queues, self._lists.of, version=version)
        found = sound(exchange(self._client, self._groups.commands))
        return [queue for group, lists in zip(self._groups.groups, found, strict=True) if lists for queue in group]

    def _is_readable(self, queue: str, replies: list[Any]) -> bool:
        """Whether every list of ``queue`` is one. A change is logged; an error that is not about a key is raised."""
        problem = next((reply for reply in replies if isinstance(reply, Exception)), None)
        if problem is None:
            self._unreadable.pop(queue, None)
            return True
        if not is_about_a_key(problem):
            raise problem
        if self._unreadable.get(queue) != str(problem):
            log.warning("queue unreadable queue=%s: %s", self._connection.queue(queue), problem)
        self._unreadable[queue] = str(problem)
        return False

    def _read_ends(
        self, full: list[tuple[str, str]], new: list[str]
    ) -> tuple[dict[str, ListEnds], dict[str, str | None]]:
        """Both ends of the lists ``full`` and which of their marks are there; the messages of the tags ``new``."""
        for queue, key in full:
            if key not in self._marks:
                self._marks[key] = ListMarks(after_s=self._emptied_at_s(queue, key))
        self._doubt_marks()
        asked = {key: self._marks[key].asked() for _, key in full}
        commands = []
        for key, marks in asked.items():
            commands.append(prepared("LRANGE", key, 0, 0))
            commands.append(prepared("LRANGE", key, -self._head_jobs(key, lists=len(asked)), -1))
            commands.append(prepared("LLEN", key))
            commands += [_place(key, mark) for mark in marks]
        commands += [prepared("HMGET", self._prefix + TAKEN, *new)] if new else []
        replies = iter(sound(exchange(self._client, commands)))
        ends: dict[str, ListEnds] = {}
        for key, marks in asked.items():
            newest, head, length = islice(replies, 3)
            self._head_sizes.expect(key, expected_chars(self._head_sizes.of(key), head))
            ends[key] = ListEnds(newest, head, [each is not None for each in islice(replies, len(marks))], length)
        envelopes = dict(zip(new, next(replies), strict=True)) if new else {}
        self._read_further(ends)
        self._doubt_marks()  # it may have changed amid the poll
        return ends, envelopes

    def _head_jobs(self, key: str, *, lists: int) -> int:
        """How many of those that are next in the list ``key`` are read, of so many lists."""
        return max(1, min(HEAD_JOBS, HEADS_CHARS_MAX // lists // self._head_sizes.of(key)))

    def _emptied_at_s(self, queue: str, key: str) -> float | None:
        """When the list ``key`` of ``queue`` was seen empty last; ``None``: never."""
        known = [each for each in (self._empty_at_s.get(key), self._queue_empty_at_s.get(queue)) if each is not None]
        return max(known, default=None)

    def _doubt_marks(self) -> None:
        """Where the server may be another one: it may never have had the last jobs."""
        for marks in self._marks.values() if self._is_new_server else ():
            marks.doubt()
        self._is_new_server = False

    def _read_further(self, ends: dict[str, ListEnds]) -> None:
        """A third trip, rarely: where all marks that were asked for have left."""
        further = {key: self._marks[key].asked_further(each.present) for key, each in ends.items()}
        commands = [_place(key, mark) for key, marks in further.items() for mark in marks]
        replies = iter(sound(exchange(self._client, commands)))
        for key, marks in further.items():
            ends[key].present += [each is not None for each in islice(replies, len(marks))]

    # --- what it means ------------------------------------------------------------------------------------------------

    def _count(
        self, queue: str, lengths: dict[str, int], ends: dict[str, ListEnds], at_s: float, seen_s: float
    ) -> _QueueCount:
        count = _QueueCount()
        if not any(lengths.values()):
            self._queue_empty_at_s[queue] = at_s
            for key in self._lists.of(queue):
                self._marks.pop(key, None)
            return count
        for key, length in lengths.items():
            end = ends.get(key)
            if end is None or end.is_empty:  # what is in it later entered later
                self._empty_at_s[key] = at_s
                self._marks.pop(key, None)
            if end is None:
                continue
            jobs = self._entered.standing_jobs(key)
            later = len(jobs.due_s) - bisect_right(jobs.due_s, at_s)
            count.due_s += jobs.due_s[len(jobs.due_s) - later :]
            if end.is_empty:  # emptied between both trips
                count.waiting_jobs += max(0, length - later)
                count.is_age_known = False
                continue
            count.waiting_jobs += jobs.jobs - later
            count.is_whole = count.is_whole and jobs.is_whole
            marks = self._marks[key]
            entered = marks.read(end.newest[0], end.present, is_passed=is_timed, asked_s=at_s, seen_s=seen_s)
            if not jobs.is_whole or jobs.jobs > later:
                put_back = self._put_back(queue, end.next_messages, seen_s)
                count.oldest += tuple(oldest_entered(end.next_messages, put_back, jobs, entered, at_s=at_s))
        return count

    def _put_back(self, queue: str, heads: Sequence[Message], seen_s: float) -> dict[str, Entered]:
        """When those of ``heads`` entered that workers had taken, by their tags."""
        found: dict[str, Entered] = {}
        for each in heads:
            held = self._held.entered(each.tag)
            if held is None and each.is_put_back:
                held = self._held.put_back(each.tag, after_s=self._heads.get(queue), seen_s=seen_s)
            if held is not None:
                found[each.tag] = held
        return found

    def _samples(self, counts: dict[str, _QueueCount], at_s: float) -> Iterator[QueueSample]:
        held = self._held.of_queues(at_s=at_s)
        is_only = self._bindings.has_one_queue
        # A heartbeat does not say which queues its worker serves: of several, nobody knows.
        running = self._running(held, counts, at_s) if is_only else None
        listed = self._heartbeats.listed_workers if is_only and self._heartbeats.is_whole(at_s) else None
        taken_of = partial(
            taken_jobs,
            running_jobs=running,
            known=self._acknowledgements,
            is_only=is_only,
            is_fresh=self._heartbeats.are_fresh(at_s),
            is_read=self._is_held_read(),
        )
        nothing_held, nothing_taken = HeldOfQueue(), taken_of(0, undated_jobs=0)
        for queue, count in counts.items():
            if count.is_whole == (queue in self._partly_read):
                self._note_reading(queue, count)
            of_queue, taken = nothing_held, nothing_taken
            if queue in held:
                of_queue = held[queue]
                count.due_s += of_queue.due_later_s
                taken = taken_of(len(of_queue.due), undated_jobs=of_queue.undated_jobs)
            yield self._sample(queue, count, of_queue, taken, listed_workers=listed, at_s=at_s)

    def _note_reading(self, queue: str, count: _QueueCount) -> None:
        name = self._connection.queue(queue)
        if count.is_whole:
            self._partly_read.discard(queue)
            log.info("queue read queue=%s", name)
        else:
            self._partly_read.add(queue)
            log.info("reading queue=%s: what waits is unknown until each message was read", name)

    def _running(self, held: dict[str, HeldOfQueue], counts: dict[str, _QueueCount], at_s: float) -> int | None:
        """Jobs that run in the only queue by the workers that publish; ``None`` where not each of them has by now."""
        heartbeats = self._heartbeats
        if heartbeats.listed_workers is None or not heartbeats.is_whole(at_s):
            return None
        running_jobs = heartbeats.running_jobs(at_s)
        has_undated = any(each.undated_jobs for each in held.values())
        if not heartbeats.are_fresh(at_s) or not self._is_held_read() or has_undated:
            return running_jobs
        seen = HeldAndRunning(
            waiting_jobs=sum(count.waiting_jobs + (not count.is_whole) for count in counts.values()),
            held_jobs=sum(len(each.due) for each in held.values()),
            running_jobs=running_jobs,
            begun_jobs=self._heartbeats.begun_jobs,
        )
        self._acknowledgements.see(seen, at_s=at_s)
        return running_jobs

    def _is_held_read(self) -> bool:
        """Whether it is known of each message that workers hold of which queue it is, and when it is due."""
        return self._held_index.is_whole and self._held.are_read

    def _may_wait(self, held: HeldOfQueue, taken: TakenJobs) -> bool:
        """Whether workers may hold jobs that are due and not begun, how many is unknown."""
        may_be_due = bool(held.due or held.undated_jobs) or not self._is_held_read()
        return taken.reserved_jobs is None and may_be_due

    def _sample(
        self,
        queue: str,
        count: _QueueCount,
        held: HeldOfQueue,
        taken: TakenJobs,
        *,
        listed_workers: int | None,
        at_s: float,
    ) -> QueueSample:
        oldest, due = count.oldest, held.due
        if taken.reserved_jobs:
            oldest += tuple(due[len(due) - taken.reserved_jobs :])  # who was taken first runs first
        after_s = _after_s(oldest)
        is_known = count.is_age_known and after_s is not None
        # Those that may wait have been taken before any that waits in a list, which at least shows its own age.
        is_known = is_known and (bool(oldest) or not self._may_wait(held, taken))
        age_s = max([0.0, *(at_s - each.until_s for each in oldest)])
        is_counted = count.is_whole and queue not in self._lists.unread
        return QueueSample(
            queue=self._connection.queue(queue),
            at_s=at_s,
            waiting_jobs=count.waiting_jobs if is_counted else None,
            waiting_min_jobs=None if is_counted else count.waiting_jobs,
            in_flight_jobs=taken.in_flight_jobs,
            in_flight_min_jobs=taken.in_flight_min_jobs if taken.in_flight_jobs is None else None,
            # Of a part, fewer would seem to be delayed than before: they would have come.
            delayed_jobs=len(count.due_s) if is_counted and self._is_held_read() and not held.undated_jobs else None,
            due=due_by_edges(sorted(count.due_s), at_s=at_s) if count.due_s else (),
            reserved_jobs=taken.reserved_jobs,
            oldest_age_s=age_s if is_known else None,
            oldest_age_max_s=max(age_s, at_s - min(after_s)) if is_known and after_s else None,
            reports_arrivals=False,
            reports_starts=False,
            reports_ends=False,
            listed_workers=listed_workers,
            redelivery=Redelivery.VISIBILITY_TIMEOUT,
        )


def _after_s(oldest: Sequence[Entered]) -> list[float] | None:
    """After when each of ``oldest`` entered; ``None`` where that is not known of one."""
    after_s = [each.after_s for each in oldest if each.after_s is not None]
    return after_s if len(after_s) == len(oldest) else None


def _place(key: str, mark: str) -> Prepared:
    """Asks where in the list ``key`` the message ``mark`` stands, from the end where messages are taken."""
    return prepared("LPOS", key, mark, "RANK", -1)


READ_BEFORE = "a lower bound while a list of thousands of messages is first read, 4 MB a poll"
REMEDY = "workers that Headway starts report them; start others with --include headway.emit.celery"
CELERY = Library(
    name="celery",
    title="Celery",
    schemes=SCHEMES,
    refusals=refusals,
    open=CelerySource,
    accuracy={
        Figure.WAITING: bounded(READ_BEFORE),
        Figure.IN_FLIGHT: bounded(
            "2 s, from one heartbeat to the next; a lower bound in a broker with several queues, of workers without "
            "heartbeats, and until it shows whether workers acknowledge early",
            remedy="one queue a database",
        ),
        Figure.DELAYED: bounded(
            "unknown while a list of thousands of messages, or what workers hold, is first read, 4 MB a poll, and of "
            f"more than {HELD_MAX:,} jobs that workers hold; of those due by a time a lower bound"
        ),
        Figure.OLDEST_AGE: bounded("one poll, or 4 % of the age"),
        Figure.ENTRIES: unseen(remedy="import headway.emit.celery where tasks are sent"),
        Figure.STARTS: unseen(remedy=REMEDY),
        Figure.ENDS: unseen(remedy=REMEDY),
        Figure.BUSY_WORKERS: bounded("2 s, from one heartbeat to the next"),
    },
)
