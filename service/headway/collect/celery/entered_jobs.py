"""Which jobs are new in Celery's lists in Redis: each message is read once, when it has come.

A list is read from its newest end down to the message that was the newest before. What a poll has no room for is never
named: until it has left the list, the list is not complete.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from headway.collect.celery.celery_message import Message, message_from
from headway.scaling.model import EnteredJob

MESSAGES_MAX = 1_000  # a poll
MESSAGES_BYTES_MAX = 4_000_000
CHUNK_MESSAGES = 200  # of one list in one trip
TRIPS_MAX = 12
NEWEST_CHARS_MAX = 64_000  # of a longer message a digest is remembered
JOB_ID_CHARS_MAX = 500  # as of what agents report


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJobs:
    """What is new in the lists of one queue."""

    jobs: tuple[EnteredJob, ...] = ()
    is_complete: bool = True
    """Whether this poll and those before have named each job that waits there."""


@dataclass(slots=True)
class _List:
    """One list, as far as it was read."""

    newest: str = ""
    """Its newest message at the last poll."""
    named: int = 0
    """So many of its newest messages were named."""


@dataclass(slots=True)
class _Reading:
    """A list while its new messages are read."""

    key: str
    mark: str
    """The newest message of the poll before."""
    message_chars: int
    """Of the largest that was seen."""
    newest: str = ""
    read: int = 0
    named: int | None = None
    """Those that are newer than one without a name; ``None``: all have one."""
    seen: dict[str, EnteredJob | None] = field(default_factory=dict)
    is_whole: bool = False
    """Nothing new is left unread."""
    reached_mark: bool = False

    def take(self, texts: list[str], *, asked: int) -> None:
        for text in texts:
            mark = _mark(text)
            self.newest = self.newest or mark
            if mark == self.mark:
                self.is_whole = self.reached_mark = True
                return
            self.message_chars = max(self.message_chars, len(text))
            self.read += 1
            self._name(message_from(text))
        self.is_whole = len(texts) < asked

    def _name(self, message: Message) -> None:
        if message.tag in self.seen:  # others came meanwhile, and moved it
            return
        if message.is_put_back:  # it was there before
            self.seen[message.tag] = None
        elif not message.tag or not _is_name(message.job_id):
            self.named = len(self.seen) if self.named is None else self.named
        else:
            self.seen[message.tag] = EnteredJob(job_id=message.job_id, attempt=message.attempt)


class EnteredJobs:
    """The lists of one broker, as of the last poll. One thread uses it."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lists: dict[str, _List] = {}

    def forget(self) -> None:
        """Take everything in the lists for new: the server may be another one."""
        self._lists.clear()

    def read(self, lengths: Mapping[str, Mapping[str, int]], newest: Mapping[str, str]) -> dict[str, NewJobs]:
        """What is new in each queue. Reads only lists whose newest message is another than at the last poll.

        Args:
            lengths: queue -> list -> jobs in it; no list of an empty queue.
            newest: list -> its newest message; an empty one is missing.
        """
        self._lists = {key: self._lists.get(key, _List()) for key in newest}
        readings = {
            key: _Reading(key=key, mark=self._lists[key].newest, message_chars=len(text))
            for key, text in newest.items()
            if _mark(text) != self._lists[key].newest
        }
        self._read_new(list(readings.values()))
        for key, reading in readings.items():
            self._lists[key] = _after(self._lists[key], reading)
        return {queue: self._of_queue(of_queue, readings) for queue, of_queue in lengths.items()}

    def _read_new(self, readings: list[_Reading]) -> None:
        messages_left, chars_left = MESSAGES_MAX, MESSAGES_BYTES_MAX
        for _ in range(TRIPS_MAX):
            asked: dict[str, int] = {}
            for each in readings:
                room = min(CHUNK_MESSAGES, messages_left, chars_left // max(1, each.message_chars))
                if room > 0 and not each.is_whole:
                    asked[each.key] = room
                    messages_left -= room
                    chars_left -= room * each.message_chars
            if not asked:
                return
            with self._client.pipeline(transaction=False) as pipe:
                for each in readings:
                    if each.key in asked:
                        pipe.lrange(each.key, each.read, each.read + asked[each.key] - 1)
                replies = iter(pipe.execute())
            for each in readings:
                if each.key in asked:
                    texts, expected = next(replies), asked[each.key]
                    chars_left += expected * each.message_chars - sum(map(len, texts))
                    messages_left += expected - len(texts)
                    each.take(texts, asked=expected)

    def _of_queue(self, lengths: Mapping[str, int], readings: Mapping[str, _Reading]) -> NewJobs:
        jobs = [job for key in lengths if key in readings for job in readings[key].seen.values() if job is not None]
        is_complete = all(
            key not in self._lists or self._lists[key].named >= length for key, length in lengths.items() if length
        )
        return NewJobs(jobs=tuple(jobs), is_complete=is_complete)


def _after(before: _List, reading: _Reading) -> _List:
    named = len(reading.seen) if reading.named is None else reading.named
    if reading.reached_mark and reading.named is None:
        named += before.named
    return _List(newest=reading.newest, named=named)


def _mark(text: str) -> str:
    return text if len(text) <= NEWEST_CHARS_MAX else sha256(text.encode()).hexdigest()


def _is_name(text: str) -> bool:
    return 0 < len(text) <= JOB_ID_CHARS_MAX and "\0" not in text and text.isprintable()
