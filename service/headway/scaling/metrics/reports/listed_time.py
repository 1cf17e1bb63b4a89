"""What the workers that a broker lists come to over a stretch of time, whoever started them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSpan:
    """A stretch in which the broker listed the same number of workers of a queue (Unix seconds)."""

    from_s: float
    until_s: float
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTime:
    """The workers of a pool in a stretch of time. What is not known counts as unknown, never as none."""

    worker_s: float
    """While it is known."""
    known_s: float
    unknown_s: float

    @property
    def mean_workers(self) -> float | None:
        """On average while it is known; ``None`` where it never is."""
        return self.worker_s / self.known_s if self.known_s else None


def listed_time(
    queues: Collection[str], spans: Mapping[str, Iterable[ListedSpan]], *, from_s: float, until_s: float
) -> ListedTime:
    """The workers of a pool of ``queues`` from ``from_s`` until ``until_s`` (Unix seconds).

    A pool's workers serve all of its queues: as for a decision, the greatest of their counts is the pool's, and where
    one of them is not known, it is not known.

    Args:
        queues: Of the pool, each once.
        spans: By queue; those of one queue do not overlap.
        from_s: Beginning of the stretch.
        until_s: Its end; one at or before ``from_s`` is a stretch of no length.
    """
    changes: list[tuple[float, str, ListedSpan, bool]] = []
    for queue in queues:
        for span in spans.get(queue, ()):
            begins_s, ends_s = max(span.from_s, from_s), min(span.until_s, until_s)
            if begins_s < ends_s:
                changes += [(begins_s, queue, span, True), (ends_s, queue, span, False)]
    changes.sort(key=lambda change: change[0])
    worker_s = known_s = 0.0
    listed: dict[str, ListedSpan] = {}
    for (at_s, queue, span, begins), (next_s, *_) in pairwise([*changes, *changes[-1:]]):
        if begins:
            listed[queue] = span
        elif listed.get(queue) is span:  # where one ends as the next begins, the next may have come first
            del listed[queue]
        if next_s > at_s and listed and len(listed) == len(queues):
            worker_s += (next_s - at_s) * max(each.workers for each in listed.values())
            known_s += next_s - at_s
    return ListedTime(worker_s=worker_s, known_s=known_s, unknown_s=max(0.0, until_s - from_s - known_s))
