"""One simulated pool: its waiting jobs, its workers, and what happens between two looks at it."""

import math
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace

from headway.errors import Invalid
from headway.simulate.controller import Observation
from headway.simulate.jobs import Jobs
from headway.simulate.workers import DEADLINE, GONE, LEAVING, READY, RUNNING, Crew, Worker

NEVER_S = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """One pool of a rehearsal: its jobs and how its workers behave."""

    jobs: Jobs
    name: str = "jobs"
    start_up_s: float = 2.0
    start_up_spread: float = 0.0
    """Sigma of a lognormal start-up with the mean ``start_up_s``; 0 is always the same."""
    slots: int = 1
    workers_max: int = 1000
    warm_workers: int = 0
    """Workers that are ready at the first moment."""
    drain_deadline_s: float | None = None
    """A busy worker that was told to leave is killed after this; ``None``: it always finishes its job."""

    def __post_init__(self) -> None:
        breaches = [
            f"pool {self.name!r}: {name}={value} is below {least}"
            for name, value, least in (
                ("slots", self.slots, 1),
                ("workers_max", self.workers_max, 0),
                ("warm_workers", self.warm_workers, 0),
                ("start_up_s", self.start_up_s, 0),
                ("start_up_spread", self.start_up_spread, 0),
                ("drain_deadline_s", self.drain_deadline_s or 0, 0),
            )
            if value < least
        ]
        if breaches:
            raise Invalid(*breaches)


class RunningPool:
    """A pool at a moment of its rehearsal. First come, first served; a worker that frees takes the oldest job.

    A job that must be done again joins the end of the queue under a new number; ``first_of`` leads back.
    """

    def __init__(self, plan: PoolPlan, *, start_up_s: Callable[[], float]) -> None:
        self.plan = plan
        self.crew = Crew(slots=plan.slots, start_up_s=start_up_s, drain_deadline_s=plan.drain_deadline_s)
        self.arrivals_s = [*plan.jobs.at_s, NEVER_S]
        self.enqueued_s = list(plan.jobs.at_s)
        self.service_s = list(plan.jobs.service_s)
        self.pickup_s = array("d", [math.nan]) * len(plan.jobs)
        self.first_of: dict[int, int] = {}
        self.waiting: deque[int] = deque()
        self.next_job = 0
        self.done_jobs = 0
        self.ended_s = 0.0
        self._seen_job = 0
        self._again = 0
        self._started = 0
        self._finished = 0
        self._service_sum_s = 0.0
        self._pickup_max_s = -1.0
        for _ in range(plan.warm_workers):
            self.crew.spawn(0.0, is_warm=True)

    @property
    def is_over(self) -> bool:
        """Whether every job is done."""
        return self.done_jobs == len(self.plan.jobs)

    @property
    def next_s(self) -> float:
        """When something happens next."""
        arrives_s = self.arrivals_s[self.next_job]
        events = self.crew.events
        return min(arrives_s, events[0][0]) if events else arrives_s

    def advance(self, until_s: float) -> None:  # noqa: C901 - the inner loop of everything: calls would double its time
        """Let everything happen that happens up to ``until_s``."""
        crew = self.crew
        events, available, waiting, serial = crew.events, crew.available, self.waiting, crew.serial
        arrivals_s, enqueued_s, service_s, pickup_s = self.arrivals_s, self.enqueued_s, self.service_s, self.pickup_s
        job, pickup_max_s = self.next_job, -1.0
        arrives_s = arrivals_s[job]
        started = finished = 0
        service_sum_s = 0.0
        while True:
            if not events or arrives_s <= events[0][0]:
                if arrives_s > until_s:
                    break
                if available:  # then nothing waits
                    worker = available[-1]
                    worker.free_slots -= 1
                    if not worker.free_slots:
                        available.pop()
                    heappush(events, (arrives_s + service_s[job], serial(), worker, job))
                    pickup_s[job] = 0.0
                    if pickup_max_s < 0.0:
                        pickup_max_s = 0.0
                    started += 1
                else:
                    waiting.append(job)
                job += 1
                arrives_s = arrivals_s[job]
                continue
            now_s, _, worker, ended = events[0]
            if now_s > until_s:
                break
            if ended < 0 or worker.state != RUNNING:
                heappop(events)
                self._happen(now_s, worker, ended)
                continue
            finished += 1
            service_sum_s += service_s[ended]
            if waiting:
                ended = waiting.popleft()
                heapreplace(events, (now_s + service_s[ended], serial(), worker, ended))
                waited_s = pickup_s[ended] = now_s - enqueued_s[ended]
                if waited_s > pickup_max_s:
                    pickup_max_s = waited_s
                started += 1
            else:
                heappop(events)
                self.ended_s = now_s
                worker.free_slots += 1
                if worker.free_slots == 1:
                    available.append(worker)
                if worker.is_burst and worker.free_slots == crew.slots:
                    crew.leave(worker, now_s)
        self.next_job = job
        if pickup_max_s > self._pickup_max_s:
            self._pickup_max_s = pickup_max_s
        self._started += started
        self._finished += finished
        self.done_jobs += finished
        self._service_sum_s += service_sum_s

    def _happen(self, now_s: float, worker: Worker, ended: int) -> None:
        """What is not the end of a job of a worker that stays."""
        if worker.state == GONE:
            return
        if ended == READY:
            self._ready(worker, now_s)
        elif ended == DEADLINE:
            self._kill(worker, now_s)
        else:
            assert worker.state == LEAVING
            self._finished += 1
            self.done_jobs += 1
            self.ended_s = now_s
            self._service_sum_s += self.service_s[ended]
            worker.free_slots += 1
            if worker.free_slots == self.crew.slots:
                self.crew.has_left(worker, now_s)

    def _ready(self, worker: Worker, now_s: float) -> None:
        self.crew.is_ready(worker)
        while self.waiting and worker.free_slots:
            self._start(worker, self.waiting.popleft(), now_s)
        if not worker.free_slots:
            self.crew.available.pop()  # where it has just been put
        elif worker.is_burst and worker.free_slots == self.crew.slots:
            self.crew.leave(worker, now_s)

    def _start(self, worker: Worker, job: int, now_s: float) -> None:
        worker.free_slots -= 1
        heappush(self.crew.events, (now_s + self.service_s[job], self.crew.serial(), worker, job))
        self.pickup_s[job] = now_s - self.enqueued_s[job]
        self._pickup_max_s = max(self._pickup_max_s, self.pickup_s[job])
        self._started += 1

    def _kill(self, worker: Worker, now_s: float) -> None:
        """Its jobs are done again, from their beginning."""
        lost = [job for _, _, holder, job in self.crew.events if holder is worker and job >= 0]
        self.crew.kills += 1
        self.crew.has_left(worker, now_s)
        for job in lost:
            self.redo(job, now_s)

    def redo(self, job: int, now_s: float) -> None:
        """Put ``job`` back at the end of the queue, as if it had come now."""
        again = len(self.enqueued_s)
        self.first_of[again] = self.first_of.get(job, job)
        self.enqueued_s.append(now_s)
        self.service_s.append(self.service_s[job])
        self.pickup_s.append(math.nan)
        self._again += 1
        self.waiting.append(again)
        while self.waiting and self.crew.available:
            worker = self.crew.available[-1]
            self._start(worker, self.waiting.popleft(), now_s)
            if not worker.free_slots:
                self.crew.available.pop()

    def observe(self, now_s: float, *, at_s: float) -> Observation:
        """What can be measured now; the counts begin anew."""
        crew, waiting = self.crew, self.waiting
        running, starting, idle = len(crew.running), len(crew.starting), crew.idle_workers
        seen = Observation(
            at_s=at_s,
            waiting=len(waiting),
            oldest_age_s=now_s - self.enqueued_s[waiting[0]] if waiting else 0.0,
            arrived=self.next_job - self._seen_job + self._again,
            started=self._started,
            finished=self._finished,
            service_sum_s=self._service_sum_s,
            workers=running + starting,
            busy=running - idle,
            idle=idle,
            starting=starting,
            pickup_max_s=self._pickup_max_s if self._pickup_max_s >= 0.0 else None,
        )
        self._seen_job = self.next_job
        self._again = self._started = self._finished = 0
        self._service_sum_s = 0.0
        self._pickup_max_s = -1.0
        return seen
