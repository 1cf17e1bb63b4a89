"""The simulated workers of one pool: from spawn to exit, and what that costs.

starting -> running      its start-up is over
starting -> gone         asked to leave
running  -> leaving      asked to leave while it has jobs, or while its exit takes time
running  -> gone         asked to leave while idle; or a burst worker that finds its queue empty
leaving  -> gone         its last job and its exit are over, or its drain deadline passed
"""

import math
from collections.abc import Callable, Iterator
from heapq import heappush
from itertools import chain, count
from typing import Final

from headway.simulate.engine.cores import Machines, Work
from headway.simulate.engine.learned_starts import LearnedStarts

STARTING: Final = 0
RUNNING: Final = 1
LEAVING: Final = 2
GONE: Final = 3

# What a worker's event is about, where it is not the end of a job: jobs are numbered from 0.
READY: Final = -1
DEADLINE: Final = -2
DEATH: Final = -3
EXIT: Final = -4
AGAIN: Final = -5
"""And what is below it: job ``AGAIN - number`` is to be done again."""


class Worker:
    """One worker process. ``free_slots`` are the jobs that it could take beside those it has."""

    __slots__ = ("crashes", "free_slots", "gone_s", "host_id", "is_burst", "ready_s", "spawned_s", "state")

    def __init__(self, *, slots: int, spawned_s: float, is_burst: bool, host_id: str = "") -> None:
        self.state = STARTING
        self.free_slots = slots
        self.spawned_s = spawned_s
        self.is_burst = is_burst
        self.host_id = host_id
        self.crashes = 0
        self.ready_s = math.inf
        """When its start-up is over; what starts or ends beside it may put that off."""
        self.gone_s = math.inf
        """When its exit is over, which may be put off as well."""


Event = tuple[float, int, Worker, int]
"""When, a number that orders what happens at the same time, whose, and the job that ends (or ``READY`` …)."""


class Crew:
    """A pool's workers: who starts, runs and leaves. Idle ones leave first, then starting ones, then busy ones.

    ``available`` are the running workers with a free slot, the one to take the next job last.
    """

    def __init__(
        self,
        *,
        slots: int,
        start_up_s: Callable[[], float],
        drain_deadline_s: float | None = None,
        life_s: Callable[[], float] | None = None,
        exit_s: Callable[[], float] | None = None,
        start_up_cpu_s: float = 0.0,
        exit_cpu_s: float = 0.0,
        starting_leave_first: bool = False,
        learned_starts: LearnedStarts | None = None,
    ) -> None:
        self.slots = slots
        self.events: list[Event] = []
        self.available: list[Worker] = []
        self.starting: dict[Worker, None] = {}
        self.running: dict[Worker, None] = {}
        self.leaving: dict[Worker, None] = {}
        self.serial = count().__next__
        self.spawns = 0
        self.kills = 0
        self.deaths = 0
        self.crashes = 0
        self.burst_workers = 0
        self.learned_starts = learned_starts
        """What the control plane knows of start-ups, where it learns of them."""
        self._start_up_s = start_up_s
        self._life_s = life_s
        self._exit_s = exit_s
        self._starting_leave_first = starting_leave_first
        self._drain_deadline_s = drain_deadline_s
        self._paid_s = 0.0
        self._departures_s: list[tuple[float, float]] = []
        """When each worker that is gone was spawned and left, in the order in which they left."""
        self._start_up_cpu_s, self._exit_cpu_s = start_up_cpu_s, exit_cpu_s
        self.machines: Machines | None = None
        """Whose cores workers share while they start and end; ``None``: none delays another."""

    @property
    def present_workers(self) -> int:
        """Starting and running, without those that were asked to leave."""
        return len(self.starting) + len(self.running)

    def present(self) -> Iterator[Worker]:
        """Every worker that was not asked to leave."""
        return chain(self.starting, self.running)

    def alive(self) -> Iterator[Worker]:
        """Every worker that is not gone."""
        return chain(self.starting, self.running, self.leaving)

    @property
    def idle_workers(self) -> int:
        """Running workers without a job."""
        if self.slots == 1:
            return len(self.available)
        return sum(worker.free_slots == self.slots for worker in self.available)

    @property
    def jobs_in_flight(self) -> int:
        """Jobs of running and of leaving workers."""
        return sum(self.slots - worker.free_slots for worker in (*self.running, *self.leaving))

    def jobs_on(self, host_id: str) -> int:
        """Jobs in flight on one host."""
        workers = (*self.running, *self.leaving)
        return sum(self.slots - worker.free_slots for worker in workers if worker.host_id == host_id)

    def count(self) -> dict[str, int]:
        """The workers by what they do, as an observation has them."""
        running, starting, idle = len(self.running), len(self.starting), self.idle_workers
        return {"workers": running + starting, "busy": running - idle, "idle": idle, "starting": starting}

    def paid_s(self, until_s: float) -> float:
        """Seconds from spawn to exit of every worker, up to ``until_s``: whoever left later is paid no longer."""
        beyond_s = 0.0
        for spawned_s, left_s in reversed(self._departures_s):
            if left_s <= until_s:
                break
            beyond_s += left_s - max(spawned_s, until_s)
        return self._paid_s - beyond_s + sum(max(0.0, until_s - worker.spawned_s) for worker in self.alive())

    def spawn(self, now_s: float, *, is_burst: bool = False, host_id: str = "", is_warm: bool = False) -> Worker:
        """One more worker, starting; a warm one has its start-up behind it."""
        worker = Worker(slots=self.slots, spawned_s=now_s, is_burst=is_burst, host_id=host_id)
        self.spawns += 1
        self.burst_workers += is_burst
        self.starting[worker] = None
        if self.machines is None or is_warm:
            self._ready_at(worker, now_s if is_warm else now_s + self._start_up_s())
        else:
            self._share_cores(worker, now_s)
        if self._life_s is not None:
            heappush(self.events, (now_s + self._life_s(), self.serial(), worker, DEATH))
        return worker

    def crash(self, worker: Worker, now_s: float, *, back_off_s: float) -> None:
        """Its start-up failed: it begins again after a pause. It keeps its place, and its place is paid for."""
        worker.crashes += 1
        self.crashes += 1
        self.spawns += 1
        self._ready_at(worker, now_s + back_off_s + self._start_up_s())

    def _ready_at(self, worker: Worker, ready_s: float) -> None:
        worker.ready_s = ready_s
        heappush(self.events, (ready_s, self.serial(), worker, READY))

    def _share_cores(self, worker: Worker, now_s: float) -> None:
        assert self.machines is not None
        alone_s = self._start_up_s()
        cpu_s = min(alone_s, self._start_up_cpu_s)

        def on_plan(spawned_s: float, ready_s: float) -> None:
            worker.spawned_s = spawned_s
            if worker.ready_s != ready_s and worker.state == STARTING:
                self._ready_at(worker, ready_s)

        start = Work(worker=worker, cpu_s=cpu_s, rest_s=alone_s - cpu_s, on_plan=on_plan)
        self.machines.of(worker.host_id).begin(start, now_s)

    def is_ready(self, worker: Worker) -> None:
        """Its start-up is over: it can take jobs."""
        del self.starting[worker]
        if self.learned_starts is not None and not worker.crashes:
            self.learned_starts.add(worker.ready_s - worker.spawned_s)
        worker.state = RUNNING  # starting -> running
        self.running[worker] = None
        self.available.append(worker)

    def retarget(self, now_s: float, *, workers: int, burst_workers: int = 0) -> None:
        """Spawn what is missing at once, or ask what is too much to leave."""
        missing = workers - self.present_workers
        for _ in range(missing):
            self.spawn(now_s, is_burst=self.burst_workers < burst_workers)
        if missing < 0:
            self.release(now_s, -missing)

    def release(self, now_s: float, workers: int) -> None:
        """Ask ``workers`` to leave, the newest of each kind first: idle, then starting, then busy."""
        for worker in self._in_leaving_order(workers):
            self.leave(worker, now_s)

    def change_on(self, host_id: str, now_s: float, *, more: int, is_burst: bool) -> None:
        """Let ``more`` base or burst workers start on a host; less than 0: ask so many of them to leave."""
        for _ in range(more):
            self.spawn(now_s, is_burst=is_burst, host_id=host_id)
        if more < 0:
            for worker in self.of_host(host_id, is_burst=is_burst)[:-more]:
                self.leave(worker, now_s)

    def of_host(self, host_id: str, *, is_burst: bool) -> list[Worker]:
        """The present workers of one host, in the order in which they would leave."""
        return [each for each in self._in_leaving_order() if each.host_id == host_id and each.is_burst == is_burst]

    def _in_leaving_order(self, workers: int | None = None) -> list[Worker]:
        """The first ``workers`` of them, or all."""
        idle = [worker for worker in reversed(self.available) if worker.free_slots == self.slots]
        if self.burst_workers:
            idle.sort(key=lambda worker: not worker.is_burst)
        if self._starting_leave_first:
            idle = [*reversed(self.starting), *idle]
        chosen = idle[:workers]
        if not self._starting_leave_first and (workers is None or len(chosen) < workers):
            chosen += reversed(self.starting)
        if workers is None or len(chosen) < workers:
            chosen += [worker for worker in reversed(self.running) if worker.free_slots != self.slots]
        return chosen[:workers]

    def leave(self, worker: Worker, now_s: float) -> None:
        """Ask one worker to leave: at once without a job, else when its jobs have ended."""
        if worker.state == STARTING:
            del self.starting[worker]
            self._abandon(worker, now_s)
            self._gone(worker, now_s)  # starting -> gone
            return
        if worker.free_slots:
            self.available.remove(worker)
        del self.running[worker]
        is_idle = worker.free_slots == self.slots
        if is_idle and self._exit_s is None:
            self._gone(worker, now_s)  # running -> gone
            return
        worker.state = LEAVING  # running -> leaving
        self.burst_workers -= worker.is_burst
        self.leaving[worker] = None
        if is_idle:
            self._exit_beside_others(worker, now_s)
        if self._drain_deadline_s is not None:
            heappush(self.events, (now_s + self._drain_deadline_s, self.serial(), worker, DEADLINE))

    def _abandon(self, worker: Worker, now_s: float) -> None:
        """It starts or exits no more."""
        if self.machines is not None:
            self.machines.of(worker.host_id).abandon(worker, now_s)

    def exits(self, worker: Worker, now_s: float) -> None:
        """The last job of a worker that is leaving has ended: its process ends now, or takes a while to."""
        if self._exit_s is None:
            self.has_left(worker, now_s)
        else:
            self._gone_at(worker, now_s + self._exit_s())

    def _gone_at(self, worker: Worker, gone_s: float) -> None:
        worker.gone_s = gone_s
        heappush(self.events, (gone_s, self.serial(), worker, EXIT))

    def _exit_beside_others(self, worker: Worker, now_s: float) -> None:
        """Exit among those that were asked to at the same time. Nobody asks burst workers: each exits by itself."""
        if self.machines is None or not self._exit_cpu_s or worker.is_burst:
            self.exits(worker, now_s)
            return
        assert self._exit_s is not None
        alone_s = self._exit_s()
        cpu_s = min(alone_s, self._exit_cpu_s)

        def on_plan(_: float, gone_s: float) -> None:
            if worker.gone_s != gone_s and worker.state == LEAVING:
                self._gone_at(worker, gone_s)

        end = Work(worker=worker, cpu_s=cpu_s, rest_s=alone_s - cpu_s, on_plan=on_plan, is_end=True)
        self.machines.of(worker.host_id).begin(end, now_s)

    def has_left(self, worker: Worker, now_s: float) -> None:
        """The end of one that was leaving."""
        del self.leaving[worker]
        worker.state = GONE  # leaving -> gone
        self._is_paid(worker, now_s)

    def die(self, worker: Worker, now_s: float) -> list[int]:
        """The sudden end of a worker. Returns the jobs that it had."""
        lost = [job for _, _, holder, job in self.events if holder is worker and job >= 0]
        if worker.state == LEAVING:
            self._abandon(worker, now_s)
            self.has_left(worker, now_s)
            return lost
        if worker.state == STARTING:
            del self.starting[worker]
            self._abandon(worker, now_s)
        else:
            del self.running[worker]
            if worker.free_slots:
                self.available.remove(worker)
        self._gone(worker, now_s)  # any -> gone
        return lost

    def _gone(self, worker: Worker, now_s: float) -> None:
        worker.state = GONE
        self.burst_workers -= worker.is_burst
        self._is_paid(worker, now_s)

    def _is_paid(self, worker: Worker, now_s: float) -> None:
        if now_s > worker.spawned_s:  # one that was yet to be let in has cost nothing
            self._paid_s += now_s - worker.spawned_s
            self._departures_s.append((worker.spawned_s, now_s))
