"""The processors of a machine, which workers that start share with each other and with the jobs at work.

A start needs some of its time on a core. While more starts want a core than there are, each gets an even part, so that
all of them take longer: many workers that start at once are ready later than one would be.

Source: L. Kleinrock, "Queueing Systems", volume 2 (1976), chapter 4: processor sharing.
"""

from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One worker that starts: how long it needs a core, and how long it takes beside that."""

    worker: object
    cpu_s: float
    rest_s: float
    on_plan: Callable[[float, float], None]
    """Receives when the worker is spawned and when it is ready, at each plan."""


class Cores:
    """The cores of one machine and the workers that start there. Time only goes on."""

    def __init__(self, cores: float, *, starting_max: int | None, busy_cores: Callable[[], float]) -> None:
        """``busy_cores`` are those that jobs want; no more than ``starting_max`` workers start at once."""
        self._cores = cores
        self._busy_cores = busy_cores
        self._flow = _Flow(starting_max=starting_max)
        self._busy = 0.0
        """As they were at the last plan: until the next one starts go on as planned."""
        self._is_planned = True

    def begin(self, start: Start, now_s: float) -> None:
        """Let ``start`` begin; ``plan`` says when it is ready."""
        self._advance(now_s)
        self._flow.waiting.append(start)
        self._is_planned = False

    def abandon(self, worker: object, now_s: float) -> None:
        """Forget a worker that starts no more: the others get its part."""
        self._advance(now_s)
        self._flow.forget(worker)
        self._is_planned = False

    def plan(self, now_s: float) -> None:
        """Set when every worker that starts will be spawned and ready, if no other begins."""
        if self._is_planned:
            return
        self._advance(now_s)
        self._busy, self._is_planned = self._busy_cores(), True
        ahead = copy(self._flow)
        ahead.run(now_s=now_s, until_s=None, rate=self._rate)
        for start, spawned_s, ready_s in ahead.ready:
            start.on_plan(spawned_s, ready_s)

    def _advance(self, now_s: float) -> None:
        if now_s <= self._flow.at_s:
            return  # what begins now is let in by the plan, which says when it is ready
        self._flow.run(now_s=self._flow.at_s, until_s=now_s, rate=self._rate)
        self._flow.ready.clear()

    def _rate(self, starts: int) -> float:
        """The part of a core that each of so many starts gets."""
        return min(1.0, self._cores / (starts + self._busy))


class _Flow:
    """Starts by what they wait for: to be let in, for the rest of their CPU time, or for what takes no core."""

    def __init__(self, *, starting_max: int | None) -> None:
        self.at_s = 0.0
        self.waiting: deque[Start] = deque()
        self.ready: list[tuple[Start, float, float]] = []
        """With when each was spawned and is ready."""
        self.starting_max = starting_max
        self.given_s = 0.0
        """CPU time that each start would have had, had it been on a core from the beginning."""
        self.computing: list[tuple[float, int, Start, float]] = []
        """By ``given_s`` at its end, with when it was spawned."""
        self.resting: list[tuple[float, int, Start, float]] = []
        self.serial = count().__next__

    def __copy__(self) -> "_Flow":
        twin = _Flow(starting_max=self.starting_max)
        twin.at_s, twin.given_s = self.at_s, self.given_s
        twin.waiting, twin.computing, twin.resting = self.waiting.copy(), self.computing.copy(), self.resting.copy()
        twin.serial = self.serial
        return twin

    def forget(self, worker: object) -> None:
        self.waiting = deque(each for each in self.waiting if each.worker is not worker)
        self.computing = sorted(_without(self.computing, worker))
        self.resting = sorted(_without(self.resting, worker))

    def run(self, *, now_s: float, until_s: float | None, rate: Callable[[int], float]) -> None:
        """Let everything happen from ``now_s`` until then; without an end, until every start is ready."""
        self.at_s = now_s
        self._let_in()
        while self.computing or self.resting:
            part = rate(len(self.computing)) if self.computing else 1.0
            computed_s = self.at_s + (self.computing[0][0] - self.given_s) / part if self.computing else None
            rested_s = self.resting[0][0] if self.resting else None
            next_s = min(each for each in (computed_s, rested_s) if each is not None)
            if until_s is not None and next_s > until_s:
                self.given_s += (until_s - self.at_s) * part if self.computing else 0.0
                break
            self.given_s += (next_s - self.at_s) * part if self.computing else 0.0
            self.at_s = next_s
            self._end_of_one(is_rested=next_s == rested_s)
            self._let_in()
        if until_s is not None:
            self.at_s = max(self.at_s, until_s)

    def _end_of_one(self, *, is_rested: bool) -> None:
        if is_rested:
            _, _, start, spawned_s = heappop(self.resting)
            self.ready.append((start, spawned_s, self.at_s))
            return
        _, _, start, spawned_s = heappop(self.computing)
        heappush(self.resting, (self.at_s + start.rest_s, self.serial(), start, spawned_s))

    def _let_in(self) -> None:
        while self.waiting and not self._is_full:
            start = self.waiting.popleft()
            heappush(self.computing, (self.given_s + start.cpu_s, self.serial(), start, self.at_s))

    @property
    def _is_full(self) -> bool:
        starting = len(self.computing) + len(self.resting)
        return self.starting_max is not None and starting >= self.starting_max


def _without(
    starts: Iterable[tuple[float, int, Start, float]], worker: object
) -> Iterable[tuple[float, int, Start, float]]:
    return (each for each in starts if each[2].worker is not worker)


class Machines:
    """The cores of every host, or of the one machine where there are no hosts."""

    def __init__(self, cores: float, *, starting_max: int | None, busy_cores: Callable[[str], float]) -> None:
        self._cores = cores
        self._starting_max = starting_max
        self._busy_cores = busy_cores
        self._of: dict[str, Cores] = {}

    def of(self, host_id: str) -> Cores:
        """The cores of one host."""
        if host_id not in self._of:
            busy_cores = partial(self._busy_cores, host_id)
            self._of[host_id] = Cores(self._cores, starting_max=self._starting_max, busy_cores=busy_cores)
        return self._of[host_id]

    def plan(self, now_s: float) -> None:
        """Say when all that start will be ready."""
        for cores in self._of.values():
            cores.plan(now_s)
