"""Readings of one broker, kept as bounds of when jobs entered: the newest each, older ones thinned out. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.scaling.model import BrokerPoll, PolledQueue

POLLS_MAX = 600  # 5 min of them, and after a thinning an hour with 10 s between two
ROWS_MAX = 50_000  # some 10 MB
READ_HOLDS_S = 15.0  # three times as long as a collector repeats which queues it reads
SILENT_S = 8.0  # as of a collector whose samples count
NOTICED_WITHIN_S = 0.25
"""From a broker's hand-out of a job to its reception, and as much between two clocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPoll:
    """One reading. A queue that is not among ``rows`` was empty, and no worker held a job of it."""

    at_s: float
    until_s: float
    rows: dict[str, PolledQueue]
    sure: frozenset[str] = frozenset()
    """Queues of which each job that waits is known by name: it was named while this history lasted."""


@dataclass(slots=True)
class _Span:
    first_s: float
    last_s: float


@dataclass(slots=True)
class BrokerPolls:
    """The readings of one connection by one collector."""

    producer: str = ""
    kept: list[KeptPoll] = field(default_factory=list)
    _rows: int = 0
    _all_found_since_s: float | None = None
    """The readings from then on have each found all queues; ``None``: the last has not."""
    _read: dict[str, _Span] = field(default_factory=dict)
    """Queue -> since when and until when it was among those that are read."""

    def take(self, poll: BrokerPoll, producer: str) -> bool:
        """Keep ``poll``. Returns whether it is news: of the collector that polls the connection, and not sent again."""
        last = self.kept[-1] if self.kept else None
        if last is not None and producer != self.producer:
            if poll.at_s - last.at_s < SILENT_S:
                return False
            self.forget()
            last = None
        if last is not None and poll.at_s <= last.at_s:
            return False
        self.producer = producer
        rows = {each.queue: each for each in poll.queues}
        follows = last if last is not None and poll.after_s == last.at_s else None
        if not poll.finds_all:
            self._all_found_since_s = None
        elif follows is None or self._all_found_since_s is None:
            self._all_found_since_s = poll.at_s
        sure = frozenset(each.queue for each in poll.queues if each.is_complete and _is_sure(each, follows))
        self.kept.append(KeptPoll(at_s=poll.at_s, until_s=poll.until_s, rows=rows, sure=sure))
        self._rows += len(rows)
        if len(self.kept) > POLLS_MAX or (self._rows > ROWS_MAX and len(self.kept) > 1):
            self._thin()
        return True

    def note_read(self, queue: str, at_s: float, producer: str) -> None:
        """Note that the collector read ``queue`` then: a queue that it does not read is named by no reading either."""
        if producer != self.producer:
            return
        span = self._read.get(queue)
        if span is None:
            found_s = self._all_found_since_s
            self._read[queue] = _Span(at_s if found_s is None else min(at_s, found_s), at_s)
        elif not 0 <= at_s - span.last_s < READ_HOLDS_S:
            self._read[queue] = _Span(at_s, at_s)
        else:
            span.last_s = at_s

    def before(self, at_s: float, queue: str) -> Sequence[KeptPoll]:
        """The readings of ``queue`` that had ended well before ``at_s``.

        What a worker received then, it had not been handed before them.
        """
        span = self._read.get(queue)
        if span is None or at_s > span.last_s + READ_HOLDS_S:
            return ()
        last = bisect_left(self.kept, at_s - NOTICED_WITHIN_S, key=lambda each: each.until_s)
        return self.kept[bisect_left(self.kept, span.first_s, key=lambda each: each.at_s) : last]

    def doubt(self, queue: str) -> None:
        """A name of ``queue`` was forgotten: until it is empty, a job that was not named may have been."""
        self.kept = [
            KeptPoll(at_s=each.at_s, until_s=each.until_s, rows=each.rows, sure=each.sure - {queue})
            if queue in each.sure
            else each
            for each in self.kept
        ]

    def forget(self) -> None:
        """Begin anew."""
        self.kept.clear()
        self._read.clear()
        self._rows = 0

    def _thin(self) -> None:
        """Drop every second one of the older half."""
        half = len(self.kept) // 2
        self.kept = self.kept[:half:2] + self.kept[half:]
        self._rows = sum(len(each.rows) for each in self.kept)


def _is_sure(row: PolledQueue, follows: KeptPoll | None) -> bool:
    if len(row.entered) >= row.waiting_jobs:
        return True
    return follows is not None and (row.queue not in follows.rows or row.queue in follows.sure)
