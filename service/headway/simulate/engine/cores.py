"""The processors of a machine, which workers that start or end share with each other and with the jobs at work.

A start needs some of its time on a core, and so does an end. While more of them want a core than there are, each gets
an even part, so that all of them take longer: many workers that start at once are ready later than one would be. A
start computes first and then waits for what takes no core; an end waits first, until the worker sees that it was asked
to stop, and then computes.

Source: L. Kleinrock, "Queueing Systems", volume 2 (1976), chapter 4: processor sharing.
"""

from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import chain, count


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One worker that starts or ends: how long it needs a core, and how long it takes beside that."""

    worker: object
    cpu_s: float
    rest_s: float
    on_plan: Callable[[float, float], None]
    """Receives when it begins and when it is done, at each plan: for a start, the spawn and the readiness."""
    is_end: bool = False


class Cores:
    """The cores of one machine and the workers that start and end there. Time only goes on."""

    def __init__(self, cores: float, *, starting_max: int | None, busy_cores: Callable[[], float]) -> None:
        """``busy_cores`` are those that jobs want; no more than ``starting_max`` workers start at once."""
        self._cores = cores
        self._busy_cores = busy_cores
        self._flow = _Flow(starting_max=starting_max)
        self._busy = 0.0
        """As they were at the last plan: until the next one all goes on as planned."""
        self._is_planned = True

    def begin(self, work: Work, now_s: float) -> None:
        """Let ``work`` begin; ``plan`` says when it is done."""
        self._advance(now_s)
        self._flow.add(work, now_s)
        self._is_planned = False

    def abandon(self, worker: object, now_s: float) -> None:
        """Forget a worker that neither starts nor ends any more: the others get its part."""
        self._advance(now_s)
        self._flow.forget(worker)
        self._is_planned = False

    def plan(self, now_s: float) -> None:
        """Set when everything that was begun will be done, if nothing else begins."""
        if self._is_planned:
            return
        self._advance(now_s)
        self._busy, self._is_planned = self._busy_cores(), True
        ahead = copy(self._flow)
        ahead.run(now_s=now_s, until_s=None, rate=self._rate)
        for work, began_s, done_s in ahead.done:
            work.on_plan(began_s, done_s)

    def _advance(self, now_s: float) -> None:
        if now_s <= self._flow.at_s:
            return  # what begins now is let in by the plan, which says when it is done
        self._flow.run(now_s=self._flow.at_s, until_s=now_s, rate=self._rate)
        self._flow.done.clear()

    def _rate(self, computing: int) -> float:
        """The part of a core that each of so many gets."""
        return min(1.0, self._cores / (computing + self._busy))


Stage = tuple[float, int, Work, float]
"""When it is over, a number that orders what is over at the same time, whose, and when the work began."""


class _Flow:
    """Work by what it waits for: to be let in, for the rest of its CPU time, or for what takes no core."""

    def __init__(self, *, starting_max: int | None) -> None:
        self.at_s = 0.0
        self.waiting: deque[Work] = deque()
        self.done: list[tuple[Work, float, float]] = []
        """With when each began and was done."""
        self.starting_max = starting_max
        self.given_s = 0.0
        """CPU time that each would have had, had it been on a core from the beginning."""
        self.computing: list[Stage] = []
        """By ``given_s`` at its end."""
        self.resting: list[Stage] = []
        self.serial = count().__next__

    def __copy__(self) -> "_Flow":
        twin = _Flow(starting_max=self.starting_max)
        twin.at_s, twin.given_s = self.at_s, self.given_s
        twin.waiting, twin.computing, twin.resting = self.waiting.copy(), self.computing.copy(), self.resting.copy()
        twin.serial = self.serial
        return twin

    def add(self, work: Work, now_s: float) -> None:
        if work.is_end:
            self._rest(work, max(now_s, self.at_s), began_s=now_s)
        else:
            self.waiting.append(work)

    def forget(self, worker: object) -> None:
        self.waiting = deque(each for each in self.waiting if each.worker is not worker)
        self.computing = sorted(_without(self.computing, worker))
        self.resting = sorted(_without(self.resting, worker))

    def run(self, *, now_s: float, until_s: float | None, rate: Callable[[int], float]) -> None:
        """Let everything happen from ``now_s`` until then; without an end, until all of it is done."""
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
            self._end_of_stage(is_rested=next_s == rested_s)
            self._let_in()
        if until_s is not None:
            self.at_s = max(self.at_s, until_s)

    def _end_of_stage(self, *, is_rested: bool) -> None:
        _, _, work, began_s = heappop(self.resting if is_rested else self.computing)
        if is_rested != work.is_end:
            self.done.append((work, began_s, self.at_s))
        elif is_rested:
            self._compute(work, began_s=began_s)
        else:
            self._rest(work, self.at_s, began_s=began_s)

    def _let_in(self) -> None:
        while self.waiting and not self._is_full:
            self._compute(self.waiting.popleft(), began_s=self.at_s)

    def _compute(self, work: Work, *, began_s: float) -> None:
        heappush(self.computing, (self.given_s + work.cpu_s, self.serial(), work, began_s))

    def _rest(self, work: Work, from_s: float, *, began_s: float) -> None:
        heappush(self.resting, (from_s + work.rest_s, self.serial(), work, began_s))

    @property
    def _is_full(self) -> bool:
        if self.starting_max is None:
            return False
        return sum(not stage[2].is_end for stage in chain(self.computing, self.resting)) >= self.starting_max


def _without(stages: Iterable[Stage], worker: object) -> Iterable[Stage]:
    return (each for each in stages if each[2].worker is not worker)


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
        """Say when all that start or end will be done."""
        for cores in self._of.values():
            cores.plan(now_s)
