"""Which jobs are new in Celery's lists in Redis, and what stands in these lists: each message is read once.

A list is read from its newest end down to a message that was there before, and then on behind what is known of it. What
a poll has no room for is read by the next ones. Ids are named by the poll that finds them: of what one has no room to
name, none ever is, and until it has left the list, the list is not complete.
"""

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.collect.celery.celery_message import Message, message_from
from headway.collect.celery.lists.list_contents import AT_ONCE_S, ListContents, StandingJobs, standing
from headway.collect.celery.lists.list_ends import ListEnds
from headway.collect.celery.lists.list_turns import (
    READ_BYTES_MAX,
    NewerTurn,
    OlderTurn,
    Room,
    read_in_turns,
    text_mark,
)
from headway.collect.celery.lists.message_sizes import MessageSizes
from headway.collect.prepared_commands import exchange, prepared, sound
from headway.scaling.model import EnteredJob

NAMED_MAX = 1_000  # a poll
JOB_ID_CHARS_MAX = 500  # as of what agents report
COMPARED_FIRST = 32  # from there on at each double distance from the end: finds any place in a few messages


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJobs:
    """What is new in the lists of one queue."""

    jobs: tuple[EnteredJob, ...] = ()
    is_complete: bool = True
    """Whether this poll and those before have named each job that waits there."""


class _Names:
    """The names of the messages that are new in one list, the newest first."""

    def __init__(self, left: list[int]) -> None:
        """``left`` is how many more may be named in this poll, by all lists together."""
        self._left = left
        self.seen: dict[str, EnteredJob | None] = {}
        self.named: int | None = None
        """Those that are newer than one without a name; ``None``: all have one."""

    def note(self, message: Message) -> None:
        if message.tag in self.seen:  # others came meanwhile, and moved it
            return
        if message.is_put_back:  # it was there before
            self.seen[message.tag] = None
        elif not message.tag or not _is_name(message.job_id) or not self._left[0]:
            self.named = len(self.seen) if self.named is None else self.named
        else:
            self._left[0] -= 1
            self.seen[message.tag] = EnteredJob(job_id=message.job_id, attempt=message.attempt)


@dataclass(slots=True)
class _List:
    """One list, as far as it was read."""

    contents: ListContents = field(default_factory=ListContents)
    newest: str = ""
    """Its newest message at the last poll."""
    named: int = 0
    """So many of its newest messages were named."""
    is_whole: bool = False
    is_stale: bool = False
    """Whether there was no room to read what is new."""
    is_doubtful: bool = False
    """Whether others than those that were read may stand at the end where messages are taken."""
    left_s: list[float] = field(default_factory=list)
    """When those are due that left since their length was asked for."""

    def take(self, turn: NewerTurn, names: _Names) -> None:
        """Add what ``turn`` has read."""
        self.is_stale = not turn.newest
        if self.is_stale:
            return
        named = len(names.seen) if names.named is None else names.named
        if turn.has_met:
            self.contents.drop_newest(turn.left)
            named += max(0, self.named - turn.left) if names.named is None else 0
        else:
            self.contents = ListContents()
        self.contents.add_newer(turn.read)
        self.newest, self.named = text_mark(turn.newest), named

    def compare(self, ends: ListEnds, *, pushed: int, length: int) -> None:
        """Go by ``ends``, since when ``pushed`` were added, and before which ``length`` stood there."""
        self.left_s, self.is_whole = [], False
        if self.is_stale:
            self.contents.drop_oldest(max(0, len(self.contents) - ends.length))
            return
        due_s = self.contents.drop_oldest(max(0, len(self.contents) - ends.length - pushed))
        left = min(len(due_s), max(0, length - ends.length))
        self.left_s = list(due_s[len(due_s) - left :])
        heads = ends.next_standing()
        if ends.length <= len(heads):
            self.contents.drop_oldest(len(self.contents) - pushed)
            self.contents.add_older(heads[::-1])
            self.is_doubtful = False
        elif len(self.contents) == ends.length + pushed:
            self.is_doubtful = not self.contents.has_next(heads)
        self.is_whole = len(self.contents) == ends.length + pushed and not self.is_doubtful

    def standing_jobs(self) -> StandingJobs:
        due_s = self.contents.timed_s()
        timed_left_s = [each for each in self.left_s if each != AT_ONCE_S]
        if timed_left_s:
            due_s = list(due_s)
            for each in timed_left_s:
                insort(due_s, each)
        return StandingJobs(jobs=len(self.contents) + len(self.left_s), due_s=due_s, is_whole=self.is_whole)


class EnteredJobs:
    """The lists of one broker, as of the last poll. One thread uses it."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._sizes = MessageSizes()
        """Of what stands behind that which was read of a list."""
        self._polls = 0
        self._lists: dict[str, _List] = {}
        self._emptied: dict[str, _List] = {}
        """Lists that were emptied amid the poll."""

    def forget(self) -> None:
        """Take everything in the lists for new: the server may be another one."""
        self._lists.clear()

    def doubt_sizes(self) -> None:
        """Read little at a time for a while: a reply was too long."""
        self._sizes.doubt()

    def standing_jobs(self, key: str) -> StandingJobs:
        """What is known of the list ``key``, in which the last poll found jobs."""
        found = self._lists.get(key) or self._emptied.get(key) or _List()
        return found.standing_jobs()

    def read(self, lengths: Mapping[str, Mapping[str, int]], ends: Mapping[str, ListEnds]) -> dict[str, NewJobs]:
        """What is new in each queue that has jobs.

        Args:
            lengths: queue -> list -> jobs in it; no list of an empty queue.
            ends: list -> its ends, somewhat later.
        """
        before = self._lists
        self._lists = {key: before.get(key) or _List() for key, each in ends.items() if not each.is_empty}
        self._emptied = {key: before[key] for key in ends if key in before and key not in self._lists}
        self._polls += 1
        room = Room(chars=READ_BYTES_MAX, first=self._polls)
        turns, names = self._read_newer(ends, room)
        asked = {key: length for of_queue in lengths.values() for key, length in of_queue.items()}
        for key, each in self._lists.items():
            pushed = turns[key].pushed if key in turns else 0
            each.compare(ends[key], pushed=pushed, length=asked.get(key, 0))
        self._drop_replaced()
        self._read_older(room)
        return {queue: self._of_queue(of_queue, names) for queue, of_queue in lengths.items() if of_queue}

    def _read_newer(self, ends: Mapping[str, ListEnds], room: Room) -> tuple[dict[str, NewerTurn], dict[str, _Names]]:
        left = [NAMED_MAX]
        names: dict[str, _Names] = {}
        turns: dict[str, NewerTurn] = {}
        for key, each in self._lists.items():
            newest = ends[key].newest[0]
            if text_mark(newest) != each.newest:
                names[key] = _Names(left)
                turns[key] = NewerTurn(
                    key=key,
                    contents=each.contents,
                    asked_newest=newest,
                    message_chars=max(len(newest), self._sizes.of(key)),
                    note=names[key].note,
                )
        read_in_turns(self._client, turns.values(), room)
        for key, turn in turns.items():
            self._lists[key].take(turn, names[key])
            self._sizes.expect(key, turn.message_chars)
        return turns, names

    def _drop_replaced(self) -> None:
        """Drop what is not where it was: workers put others back, or somebody removed some."""
        doubtful = {key: each for key, each in self._lists.items() if each.is_doubtful}
        depths: dict[str, list[int]] = {}
        commands = []
        for key, each in doubtful.items():
            jobs, depth = len(each.contents), COMPARED_FIRST
            depths[key] = []
            while depth < jobs:
                depths[key].append(depth)
                commands.append(prepared("LRANGE", key, jobs - 1 - depth, jobs - 1 - depth))
                depth *= 2
            commands.append(prepared("LPOS", key, each.newest))
        replies = iter(sound(exchange(self._client, commands)))
        for key, each in doubtful.items():
            found = [next(replies) for _ in depths[key]]
            pushed = next(replies)
            jobs = len(each.contents)
            same = (
                depth
                for depth, texts in zip(depths[key], found, strict=True)
                if pushed is not None
                and texts
                and each.contents.has(standing(message_from(texts[0]), texts[0]).key, place=jobs - 1 - depth - pushed)
            )
            each.contents.drop_oldest(next(same, jobs) + (pushed or 0))

    def _read_older(self, room: Room) -> None:
        turns = {
            key: OlderTurn(key=key, contents=each.contents, message_chars=self._sizes.of(key))
            for key, each in self._lists.items()
            if not each.is_whole and not each.is_stale
        }
        read_in_turns(self._client, turns.values(), room)
        for key, turn in turns.items():
            each = self._lists[key]
            each.is_whole, each.is_doubtful = turn.is_whole, turn.is_moved
            self._sizes.expect(key, turn.message_chars)

    def _of_queue(self, lengths: Mapping[str, int], names: Mapping[str, _Names]) -> NewJobs:
        jobs = [job for key in lengths if key in names for job in names[key].seen.values() if job is not None]
        is_complete = all(
            key not in self._lists or (self._lists[key].named >= length and not self._lists[key].is_stale)
            for key, length in lengths.items()
            if length
        )
        return NewJobs(jobs=tuple(jobs), is_complete=is_complete)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= JOB_ID_CHARS_MAX and "\0" not in text and text.isprintable()
