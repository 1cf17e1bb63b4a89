"""Celery's delayed delivery in RabbitMQ: a chain of queues in which messages expire, a level for each bit of a delay.

A message waits 2**N s in the queue of level N, and then in those of the lower bits that are set, which no queue says.
So it may be due 2**N s after it entered the level, and not sooner. When that was, no queue says either: it shows in the
counts, as the first message to enter a level is the first to leave.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from headway.scaling.model.due_jobs import DelayedJobs

POINTS_MAX = 128  # of one level: of messages that enter all the time, each is known to 1/64 of its wait
MASKED_S = 5.0  # some may have entered one poll before the count rose, as many as left; of rare polls, so long before


class _Point(NamedTuple):
    """So many messages had entered a level by a moment, since the first poll."""

    at_s: float
    entered: float


class DelayLevels:
    """When the messages that wait at each level entered it, by the counts of polls. One thread uses it.

    At a level are those that entered in its last 2**N s. So as many have entered by now as are there, and those that
    had entered 2**N s ago.
    """

    def __init__(self, state: Any = None) -> None:
        """Go on from what ``to_state`` gave."""
        self._points: dict[int, list[_Point]] = {}
        for level, points in (state if isinstance(state, dict) else {}).items():
            self._points[int(level)] = [_Point(float(at_s), float(entered)) for at_s, entered in points]

    def to_state(self) -> dict[str, Any]:
        """What a cursor holds."""
        return {str(level): [list(each) for each in points] for level, points in self._points.items()}

    def see(self, counts: Mapping[int, int], *, at_s: float) -> None:
        """Learn from how many messages there are at each level now."""
        for level, jobs in counts.items():
            waits_s = 2.0**level
            points = self._points.get(level, [])
            if not points or not 0.0 <= at_s - points[-1].at_s <= waits_s:
                # Whatever was there at the last poll has left, and nothing is known of what is there now.
                self._points[level] = [_Point(at_s, 0.0), _Point(at_s, float(jobs))]
                continue
            entered = jobs + _entered_by(points, at_s - waits_s)
            # Fewer than it seemed: some were removed, or left somewhat later than they had to.
            points = [_Point(each.at_s, min(each.entered, entered)) for each in points]
            gone = bisect_right(points, at_s - waits_s, key=lambda each: each.at_s)
            points = [*points[max(0, gone - 1) :], _Point(at_s, entered)]
            if all(each.entered == entered for each in points[-4:-1]):
                del points[-3:-2]  # while nothing enters, the last two moments and the first say it
            self._points[level] = _thinned(points)

    def delayed(self, counts: Mapping[int, int], *, at_s: float) -> Iterator[DelayedJobs]:
        """When the messages may be due of which so many are at each level: those of unknown entry as if it were now."""
        for level, jobs in counts.items():
            waits_s, taken = 2.0**level, 0
            points = self._points.get(level, [])
            gone = max(0, bisect_right(points, at_s - waits_s, key=lambda each: each.at_s) - 1)
            for index in range(gone, len(points) - 1):
                so_far = min(jobs, round(points[index + 1].entered - points[gone].entered))
                if so_far > taken:
                    after_s = max(points[max(0, index - 1)].at_s, points[index].at_s - MASKED_S)
                    yield DelayedJobs(jobs=so_far - taken, due_in_s=max(0.0, after_s + waits_s - at_s))
                    taken = so_far
            if jobs > taken:
                yield DelayedJobs(jobs=jobs - taken, due_in_s=waits_s)


def _entered_by(points: list[_Point], at_s: float) -> float:
    """How many had entered by then, as if they had come evenly between two polls."""
    index = bisect_right(points, at_s, key=lambda each: each.at_s)
    if index in (0, len(points)):
        return points[min(index, len(points) - 1)].entered
    before, after = points[index - 1 : index + 1]
    part = (at_s - before.at_s) / (after.at_s - before.at_s)
    return before.entered + part * (after.entered - before.entered)


def _thinned(points: list[_Point]) -> list[_Point]:
    """``points`` without the one that its neighbours stand nearest to, where they are too many."""
    if len(points) <= POINTS_MAX:
        return points
    spans_s = [after.at_s - before.at_s for before, (_, after) in zip(points, pairwise(points[1:]), strict=False)]
    index = 1 + spans_s.index(min(spans_s))
    return points[:index] + points[index + 1 :]
