"""How one poll reads lists of Celery's in Redis: in turns, from their newest end on, within a bound."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

from headway.collect.celery.celery_message import Message, message_from
from headway.collect.celery.lists.list_contents import ListContents, Standing, standing
from headway.collect.celery.lists.message_sizes import expected_chars
from headway.collect.prepared_commands import exchange, prepared, sound

READ_BYTES_MAX = 4_000_000  # a poll
READ_MAX = 6_000  # messages a poll: more would take longer than to read their bytes
CHUNK_MESSAGES = 200  # of one list in one trip
TRIPS_MAX = 40
PROGRESS_MESSAGES = 2  # to go on behind a message that is known, it is read again
TEXT_CHARS_MAX = 64_000  # of a longer message a digest is remembered


@dataclass(slots=True)
class Room:
    """What this poll may read yet."""

    chars: int
    first: int = 0
    """Which of the lists is the first one: each is at times, so that none starves behind another."""
    messages: int = READ_MAX
    trips: int = TRIPS_MAX
    _whole_chars: int = field(init=False)
    _is_overdrawn: bool = False

    def __post_init__(self) -> None:
        self._whole_chars = self.chars

    def reserve(self, message_chars: int) -> int:
        """How many messages of such a length may be asked for, which counts them as read; 0 for none.

        Messages that have no room in any poll are read all the same, in one list per poll.
        """
        count = min(CHUNK_MESSAGES, self.messages, self.chars // max(1, message_chars))
        if count < PROGRESS_MESSAGES:
            is_too_long = PROGRESS_MESSAGES * message_chars > self._whole_chars
            count = PROGRESS_MESSAGES if is_too_long and not self._is_overdrawn else 0
            self._is_overdrawn = self._is_overdrawn or is_too_long
        self.messages -= count
        self.chars -= count * message_chars
        return count

    def correct(self, message_chars: int, *, asked: int, texts: Sequence[str]) -> None:
        """Count what was read in place of what had been reserved."""
        self.chars += asked * message_chars - sum(map(len, texts))
        self.messages += asked - len(texts)


class Turn(Protocol):
    """One list while it is read."""

    key: str
    message_chars: int
    """Of the longest message that is expected there."""
    is_done: bool

    @property
    def place(self) -> int:
        """How many newer messages there are than the first that is read next."""

    def take(self, texts: list[str], *, asked: int) -> None:
        """Go on with what was read there, the newest first."""


@dataclass(slots=True)
class NewerTurn:
    """A list that is read from its newest message to one that was there before."""

    key: str
    contents: ListContents
    asked_newest: str
    """The newest message, when its length was asked for."""
    message_chars: int
    note: Callable[[Message], None]
    """Is called with each message that is new there."""
    newest: str = ""
    read: list[Standing] = field(default_factory=list)
    pushed: int = 0
    """Messages that came since."""
    left: int = 0
    """Messages that were there before and newer than the one that was found again."""
    is_done: bool = False
    has_met: bool = False
    """Whether a message was found that had been there before."""
    _keys: set[int] = field(default_factory=set)
    _places: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self._places = self.contents.newest_places()

    @property
    def place(self) -> int:
        return len(self.read)

    def take(self, texts: list[str], *, asked: int) -> None:
        is_moved = bool(self.read)
        self.message_chars = expected_chars(self.message_chars, texts)
        for text in texts:
            self.newest = self.newest or text
            message = message_from(text)
            each = standing(message, text)
            is_moved = is_moved and each.key in self._keys  # others came meanwhile, and moved it
            if is_moved:
                continue
            if text == self.asked_newest:
                self.pushed = len(self.read)
            place = self._places.get(each.key)
            # A message that was put back may stand anywhere.
            if place is not None and (place == 0 or not message.is_put_back):
                self.left, self.is_done, self.has_met = place, True, True
                return
            self.read.append(each)
            self._keys.add(each.key)
            self.note(message)
        self.is_done = len(texts) < asked


@dataclass(slots=True)
class OlderTurn:
    """A list that is read on, behind what was read of it before."""

    key: str
    contents: ListContents
    message_chars: int
    is_done: bool = False
    is_whole: bool = False
    is_moved: bool = False
    """Whether the last message that had been read before was not in its place, so that others may be new before it."""

    @property
    def place(self) -> int:
        return max(0, len(self.contents) - 1)

    def take(self, texts: list[str], *, asked: int) -> None:
        self.message_chars = expected_chars(self.message_chars, texts)
        read = [standing(message_from(text), text) for text in texts]
        oldest, first = self.contents.oldest_key(), 0
        if oldest is not None:
            first = next((index + 1 for index, each in enumerate(read) if each.key == oldest), 0)
            self.is_moved = self.is_moved or first != 1
            if not first:
                self.is_done = True
                return
        self.contents.add_older(read[first:])
        is_end = len(texts) < asked
        self.is_whole = is_end and not self.is_moved
        self.is_done = is_end or first == len(read)


def read_in_turns(client: Any, turns: Iterable[Turn], room: Room) -> None:
    """Read ``turns`` until each is done or no room is left, some messages of each in a trip."""
    turns = list(turns)
    first = room.first % max(1, len(turns))
    turns = turns[first:] + turns[:first]
    while room.trips > 0:
        asked: dict[int, tuple[int, int]] = {}
        for index, turn in enumerate(turns):
            if not turn.is_done and (count := room.reserve(turn.message_chars)):
                asked[index] = count, turn.message_chars
        if not asked:
            return
        room.trips -= 1
        spans = [(turns[index].key, turns[index].place, count) for index, (count, _) in asked.items()]
        replies = exchange(client, [prepared("LRANGE", key, place, place + count - 1) for key, place, count in spans])
        for (index, (count, chars)), texts in zip(asked.items(), sound(replies), strict=True):
            room.correct(chars, asked=count, texts=texts)
            turns[index].take(texts, asked=count)


def text_mark(text: str) -> str:
    """What to remember of ``text`` so as to recognize it."""
    return text if len(text) <= TEXT_CHARS_MAX else sha256(text.encode(errors="surrogateescape")).hexdigest()
