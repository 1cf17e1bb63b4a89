"""When a job entered a queue that hands out jobs in their order, by how many were received before it. Pure.

A job that was received n-th after a reading had been in the queue by then if n jobs waited, and entered later if fewer
did. That holds while every consumer reports its receptions and nothing else leaves or enters the queue's head: where
that is in doubt, the readings up to then count nothing.
"""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.scaling.entries.broker_polls import NOTICED_WITHIN_S, KeptPoll
from headway.scaling.model import QueueReceptions

RECEPTIONS_MAX = 20_000  # of a queue
REPORTER_SILENT_S = 30.0  # then its workers no longer count as reporting
CONSUMERS_LAG_S = 10.0  # as old as the broker's number of consumers may be
CLOCK_BLUR_S = 0.05  # between the clocks of a worker and of a collector
ORDER_BLUR_S = 0.05  # two workers may notice jobs in another order than they were handed out
PRODUCERS_MAX = 10_000


@dataclass(slots=True)
class _Reporter:
    """The workers of one host."""

    until_s: float
    workers: int
    most_workers: int
    """Of the last ``CONSUMERS_LAG_S``."""
    most_at_s: float
    is_prompt: bool


class ReceptionOrder:
    """The receptions of one queue, and the readings between which they are counted."""

    def __init__(self) -> None:
        self._times = array("d")
        self._reporters: dict[str, _Reporter] = {}
        self._sealed_until_s = float("-inf")
        """All receptions until then are known."""
        self._doubtful_until_s = float("-inf")
        """Readings up to then count nothing."""
        self._perhaps_doubtful_until_s = float("-inf")
        """The same of the newest, by what is known at present."""
        self._last_sealed: KeptPoll | None = None

    # --- what comes --------------------------------------------------------------------------------------------------

    def take(self, said: QueueReceptions, producer: str, polls: Sequence[KeptPoll]) -> None:
        """Take what one host reports; a message that came before changes nothing."""
        known = self._reporters.get(producer)
        if known is not None and said.until_s <= known.until_s:
            return
        is_gap = said.since_s > (self._sealed_until_s if known is None else known.until_s)
        if is_gap or not said.is_whole:
            self._doubt(said.until_s if not said.is_whole else said.since_s)
        for at_s in said.received_at_s:
            insort(self._times, at_s)
        self._trim()
        self._note(said, producer, known)
        self._seal(said.queue, polls)

    def _note(self, said: QueueReceptions, producer: str, known: _Reporter | None) -> None:
        most, most_at_s = said.workers, said.until_s
        if known is not None and known.most_workers > most and said.until_s - known.most_at_s < CONSUMERS_LAG_S:
            most, most_at_s = known.most_workers, known.most_at_s
        if known is None and len(self._reporters) >= PRODUCERS_MAX:
            self._reporters.clear()
            self._doubt(said.until_s)
        self._reporters[producer] = _Reporter(
            until_s=said.until_s,
            workers=said.workers,
            most_workers=most,
            most_at_s=most_at_s,
            is_prompt=said.is_prompt,
        )

    def _trim(self) -> None:
        """Forget the older half of too many receptions, and the readings before."""
        if len(self._times) > RECEPTIONS_MAX:
            half = RECEPTIONS_MAX // 2
            self._doubt(self._times[-half])
            del self._times[:-half]

    def _doubt(self, until_s: float) -> None:
        self._doubtful_until_s = max(self._doubtful_until_s, until_s)

    def _live(self) -> Iterable[_Reporter]:
        newest_s = max(each.until_s for each in self._reporters.values())
        live = [
            each for each in self._reporters.values() if each.workers and newest_s - each.until_s < REPORTER_SILENT_S
        ]
        return live or [max(self._reporters.values(), key=lambda each: each.until_s)]

    def _seal(self, queue: str, polls: Sequence[KeptPoll]) -> None:
        """Check the readings whose receptions are all known by now."""
        live = self._live()
        until_s = min(each.until_s for each in live)
        workers = sum(
            each.most_workers for each in self._reporters.values() if until_s - each.until_s < CONSUMERS_LAG_S
        )
        first = bisect_right(polls, self._sealed_until_s, key=lambda each: each.until_s + NOTICED_WITHIN_S)
        last = bisect_right(polls, until_s, key=lambda each: each.until_s + NOTICED_WITHIN_S)
        for poll in polls[first:last]:
            self._check(queue, poll, workers)
            self._last_sealed = poll
        self._sealed_until_s = max(self._sealed_until_s, until_s)
        self._perhaps_doubtful_until_s = self._newest_doubt(queue, polls[last:], until_s)

    def _check(self, queue: str, poll: KeptPoll, workers: int) -> None:
        row = poll.rows.get(queue)
        if row is not None and (not row.is_ordered or row.consumers is None or row.consumers > workers):
            self._doubt(poll.at_s)  # somebody may take jobs who does not report it
        if self._last_sealed is not None and self._fell(queue, self._last_sealed, poll):
            self._doubt(self._last_sealed.at_s)

    def _newest_doubt(self, queue: str, unsealed: Sequence[KeptPoll], until_s: float) -> float:
        """Up to when readings count nothing, as far as shows now: what was handed out may not be received yet."""
        doubtful_until_s, before = float("-inf"), self._last_sealed
        for poll in unsealed:
            if poll.until_s > until_s:
                break
            if before is not None and self._fell(queue, before, poll):
                doubtful_until_s = before.at_s
            before = poll
        return doubtful_until_s

    def _fell(self, queue: str, before: KeptPoll, poll: KeptPoll) -> bool:
        """Whether jobs left between two readings that nobody received."""
        was, row = before.rows.get(queue), poll.rows.get(queue)
        if was is None:
            return False
        left = 0 if row is None else row.waiting_jobs
        return was.waiting_jobs > left + self._count(before.at_s - CLOCK_BLUR_S, poll.until_s + NOTICED_WITHIN_S)

    # --- what it means ------------------------------------------------------------------------------------------------

    def is_after(self, poll: KeptPoll, queue: str, received_at_s: float) -> bool:
        """Whether the job that was received then, well after ``poll``, entered after ``poll`` for certain."""
        row = poll.rows.get(queue)
        if row is None:
            return True
        if not row.is_ordered:
            return False
        if row.waiting_jobs == 0 and (row.held_jobs == 0 or self._is_prompt()):
            return True  # no worker held it, or it would have been received by then
        if not self._counts(poll):
            return False
        # Some were received after the reading that a worker had been handed before it: those it held, at most.
        until_s = received_at_s - self._blur_s()
        received = [self._count(poll.until_s + NOTICED_WITHIN_S, until_s)] if self._is_prompt() else []
        if row.held_jobs is not None:
            received.append(self._count(poll.until_s + CLOCK_BLUR_S, until_s) - row.held_jobs)
        return max(received, default=-1) >= row.waiting_jobs

    def is_before(self, poll: KeptPoll, queue: str, received_at_s: float) -> bool:
        """Whether the job that was received then had entered before the end of ``poll`` for certain."""
        row = poll.rows.get(queue)
        if row is None or not row.is_ordered or not self._counts(poll) or received_at_s > self._sealed_until_s:
            return False
        received = self._count(poll.at_s - CLOCK_BLUR_S, received_at_s + self._blur_s(), is_closed=True) - 1
        return received < row.waiting_jobs

    def _is_prompt(self) -> bool:
        return bool(self._reporters) and all(each.is_prompt for each in self._live())

    def _is_alone(self) -> bool:
        """Whether one worker receives all jobs, and so in their order."""
        return sum(each.most_workers for each in self._reporters.values()) <= 1

    def _blur_s(self) -> float:
        return 0.0 if self._is_alone() else ORDER_BLUR_S

    def _counts(self, poll: KeptPoll) -> bool:
        is_sealed = poll.until_s + NOTICED_WITHIN_S <= self._sealed_until_s
        return is_sealed and poll.at_s > max(self._doubtful_until_s, self._perhaps_doubtful_until_s)

    def _count(self, since_s: float, until_s: float, *, is_closed: bool = False) -> int:
        """Receptions from ``since_s`` to ``until_s``, with one at that moment only if ``is_closed``."""
        end = (bisect_right if is_closed else bisect_left)(self._times, until_s)
        return max(0, end - bisect_left(self._times, since_s))
