"""One simulated pool: its waiting jobs, its workers, and what happens between two evaluations."""

import math
from array import array
from collections import deque
from dataclasses import replace
from heapq import heappop, heappush, heapreplace
from itertools import accumulate

from headway.simulate.engine.draws import chance, drawn
from headway.simulate.engine.faults import is_covered, job_failures, worker_lives
from headway.simulate.engine.scheduled_jobs import ScheduledJobs
from headway.simulate.engine.simulated_workers import (
    AGAIN,
    DEADLINE,
    DEATH,
    EXIT,
    GONE,
    LEAVING,
    READY,
    RUNNING,
    STARTING,
    Crew,
    Worker,
)
from headway.simulate.engine.simulation_plan import PoolPlan, learned_starts, start_ups
from headway.simulate.observation import Observation

__all__ = ["PoolPlan", "RunningPool"]

NEVER_S = math.inf


class RunningPool:
    """A pool at a moment of its rehearsal. First come, first served; a worker that frees takes the oldest job.

    A job that must be done again joins the end of its queue under a new number; ``first_of`` leads back.
    """

    def __init__(self, plan: PoolPlan, *, seed: int = 0) -> None:
        self.plan = plan
        self.jobs = plan.jobs
        self.crew = Crew(
            slots=plan.slots,
            start_up_s=start_ups(plan, chance(seed, f"{plan.name}/start-up")),
            drain_deadline_s=plan.drain_deadline_s,
            life_s=worker_lives(plan.faults, chance(seed, f"{plan.name}/life")),
            exit_s=drawn(plan.behaviour.exit, chance(seed, f"{plan.name}/exit")),
            start_up_cpu_s=plan.behaviour.start_up_cpu_s or 0.0,
            exit_cpu_s=plan.behaviour.exit_cpu_s or 0.0,
            starting_leave_first=plan.is_live,
            learned_starts=learned_starts(plan, chance(seed, f"{plan.name}/known start-ups")) if plan.is_live else None,
        )
        self.sees_leaving = plan.is_live
        """Whether an observation shows the workers that were asked to leave and still run."""
        self.pickup_s = array("d", [math.nan]) * len(self.jobs)
        """Until the first start of each job."""
        self.done_jobs = self.given_up_jobs = 0
        self.ended_s = 0.0
        self._arrivals_s = [*self.jobs.at_s, NEVER_S]
        self._enqueued_s = list(self.jobs.at_s)
        self._service_s = list(self.jobs.service_s)
        # A slot is taken for the overhead before a job starts and for its service. Without overhead both lists are one.
        self._overhead_s = overhead_s = plan.behaviour.dispatch_overhead_s or 0.0
        self._in_use_s = [each + overhead_s for each in self._service_s] if overhead_s else self._service_s
        self._waits_from_s = [each - overhead_s for each in self._enqueued_s] if overhead_s else self._enqueued_s
        self._scheduled = ScheduledJobs(self.jobs.scheduled_at_s, self.jobs.at_s)
        self._waiting: deque[int] = deque()
        self._first_of: dict[int, int] = {}
        self._failures: dict[int, int] = {}
        self._fails = job_failures(plan.faults, chance(seed, f"{plan.name}/failures"))
        self._next_job = self._seen_job = 0
        self._retries = [0, *accumulate(self.jobs.retries)]
        """Of so many of the jobs given, how many are retries; only the first where none is."""
        self._again = self._finished = 0
        self._service_sum_s = 0.0
        self._waits_s: list[float] = []
        """Of the jobs that have started since the last observation."""
        self.seen_waits_s: list[float] = []
        """Of those that had started by the last observation, since the one before."""
        for _ in range(plan.warm_workers):
            self.crew.spawn(0.0, is_warm=True)

    @property
    def is_over(self) -> bool:
        """Whether every job is done."""
        return self.done_jobs == len(self.jobs)

    @property
    def next_event_s(self) -> float:
        """When the next thing happens by itself: a job is scheduled, comes or ends, or what a worker does."""
        events = self.crew.events
        comes_s = min(self._arrivals_s[self._next_job], self._scheduled.next_s)
        return min(comes_s, events[0][0]) if events else comes_s

    @property
    def oldest_s(self) -> float:
        """When the oldest waiting job was enqueued; where none waits, when the next one arrives."""
        if not self._waiting:
            return self._arrivals_s[self._next_job]
        return self._enqueued_s[self._waiting[0]]

    def advance(self, until_s: float) -> None:  # noqa: C901 - the inner loop of everything: calls would double its time
        """Let everything happen that happens up to ``until_s``."""
        crew, fails = self.crew, self._fails
        if self._arrivals_s[self._next_job] > until_s and not (crew.events and crew.events[0][0] <= until_s):
            return
        events, available, waiting, serial = crew.events, crew.available, self._waiting, crew.serial
        arrivals_s, waits_from_s, pickup_s = self._arrivals_s, self._waits_from_s, self.pickup_s
        service_s, in_use_s, overhead_s = self._service_s, self._in_use_s, self._overhead_s
        job, waits_s = self._next_job, self._waits_s
        arrives_s, jobs = arrivals_s[job], len(pickup_s)
        finished = 0
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
                    heappush(events, (arrives_s + in_use_s[job], serial(), worker, job))
                    pickup_s[job] = overhead_s
                    waits_s.append(overhead_s)
                else:
                    waiting.append(job)
                job += 1
                arrives_s = arrivals_s[job]
                continue
            now_s, _, worker, ended = events[0]
            if now_s > until_s:
                break
            if ended < 0 or worker.state != RUNNING or fails is not None:
                heappop(events)
                self._happen(now_s, worker, ended)
                continue
            finished += 1
            service_sum_s += service_s[ended]
            if waiting:
                ended = waiting.popleft()
                heapreplace(events, (now_s + in_use_s[ended], serial(), worker, ended))
                waited_s = now_s - waits_from_s[ended]
                if ended < jobs:
                    pickup_s[ended] = waited_s
                waits_s.append(waited_s)
            else:
                heappop(events)
                self.ended_s = now_s
                worker.free_slots += 1
                if worker.free_slots == 1:
                    available.append(worker)
                if worker.is_burst and worker.free_slots == crew.slots:
                    crew.leave(worker, now_s)
        self._next_job = job
        self._finished += finished
        self.done_jobs += finished
        self._service_sum_s += service_sum_s

    def _happen(self, now_s: float, worker: Worker, ended: int) -> None:
        """What is not the plain end of a job of a worker that stays."""
        if ended <= AGAIN:
            self._enqueue_again(AGAIN - ended, now_s)
        elif worker.state == GONE:
            return
        elif ended == READY:
            if worker.state == STARTING and now_s >= worker.ready_s:  # nobody has put it off
                self._ready(worker, now_s)
        elif ended == EXIT:
            if now_s >= worker.gone_s:  # nobody has put it off
                self.crew.has_left(worker, now_s)
        elif ended == DEATH:
            self.crew.deaths += 1
            self.lose(worker, now_s)
        elif ended == DEADLINE:
            self.crew.kills += worker.free_slots < self.crew.slots
            self.lose(worker, now_s)
        else:
            self._end(worker, ended, now_s)

    def _ready(self, worker: Worker, now_s: float) -> None:
        faults = self.plan.faults
        if faults.crash_loops and is_covered(faults.crash_loops, now_s):
            self.crew.crash(worker, now_s, back_off_s=faults.back_off_after_s(worker.crashes + 1))
            return
        self.crew.is_ready(worker)
        self._feed(now_s)
        self._exit_if_idle_burst(worker, now_s)

    def _end(self, worker: Worker, job: int, now_s: float) -> None:
        """The end of a job, well or not, of a worker that may be leaving."""
        crew = self.crew
        self._finished += 1
        self._service_sum_s += self._service_s[job]
        self.ended_s = now_s
        if self._fails is None or not self._fails():
            self.done_jobs += 1
        else:
            self._fail(job, now_s)
        worker.free_slots += 1
        if worker.state == LEAVING:
            if worker.free_slots == crew.slots:
                crew.exits(worker, now_s)
            return
        if worker.free_slots == 1:
            crew.available.append(worker)
        self._feed(now_s)
        self._exit_if_idle_burst(worker, now_s)

    def _fail(self, job: int, now_s: float) -> None:
        first = self._first_of.get(job, job)
        self._failures[first] = self._failures.get(first, 0) + 1
        if self._failures[first] < self.plan.faults.attempts_max:
            self._redo(job, now_s, after_s=self.plan.faults.retry_after_s)
        else:
            self.given_up_jobs += 1
            self.done_jobs += 1

    def _exit_if_idle_burst(self, worker: Worker, now_s: float) -> None:
        if worker.is_burst and worker.state == RUNNING and worker.free_slots == self.crew.slots:
            self.crew.leave(worker, now_s)

    def _feed(self, now_s: float) -> None:
        """Let waiting jobs start while there is a free slot."""
        available = self.crew.available
        while self._waiting and available:
            worker, job = available[-1], self._waiting.popleft()
            worker.free_slots -= 1
            if not worker.free_slots:
                available.pop()
            heappush(self.crew.events, (now_s + self._in_use_s[job], self.crew.serial(), worker, job))
            waited_s = now_s - self._waits_from_s[job]
            self._waits_s.append(waited_s)
            if job < len(self.pickup_s):
                self.pickup_s[job] = waited_s

    def lose(self, worker: Worker, now_s: float) -> None:
        """The sudden end of a worker: what it had is done again from its beginning."""
        for job in self.crew.die(worker, now_s):
            self._redo(job, now_s, after_s=self.plan.faults.redeliver_after_s)

    def _redo(self, job: int, now_s: float, *, after_s: float) -> None:
        if after_s:
            nobody = Worker(slots=0, spawned_s=now_s, is_burst=False)
            heappush(self.crew.events, (now_s + after_s, self.crew.serial(), nobody, AGAIN - job))
        else:
            self._enqueue_again(job, now_s)

    def _enqueue_again(self, job: int, now_s: float) -> None:
        """Put ``job`` at the end of its queue, as if it had come now."""
        again = len(self._enqueued_s)
        self._first_of[again] = self._first_of.get(job, job)
        self._enqueued_s.append(now_s)
        self._service_s.append(self._service_s[job])
        if self._overhead_s:
            self._waits_from_s.append(now_s - self._overhead_s)
            self._in_use_s.append(self._in_use_s[job])
        self._again += 1
        self._waiting.append(again)
        self._feed(now_s)

    def _as_reported(self, seen: Observation, now_s: float) -> Observation:
        """The same as start and end events show it: nobody is busy with the dispatch of a job, before or after it."""
        ends_s, in_use_s, overhead_s = now_s + self.jobs.dispatch_s, self._in_use_s, self._overhead_s
        serving = [
            worker
            for end_s, _, worker, job in self.crew.events
            if job >= 0 and end_s > ends_s and (not overhead_s or now_s >= end_s - in_use_s[job] + overhead_s)
        ]
        busy = len({id(worker) for worker in serving if worker.state == RUNNING})
        measured_s = self.jobs.dispatch_s if self.jobs.dispatch_s and self.done_jobs else None
        return replace(
            seen,
            busy=busy,
            idle=seen.busy + seen.idle - busy,
            in_flight=len(serving),
            dispatch_overhead_s=measured_s,
        )

    def begun_s(self, now_s: float) -> tuple[float, ...]:
        """When running workers began the jobs that they have now."""
        begun_s = (
            end_s - self._in_use_s[job] + self._overhead_s
            for end_s, _, worker, job in self.crew.events
            if job >= 0 and worker.state == RUNNING
        )
        return tuple(at_s for at_s in begun_s if at_s <= now_s)

    def _given_retries(self) -> int:
        """Retries among the jobs that came since the last evaluation."""
        known = self._retries
        return known[self._next_job] - known[self._seen_job] if len(known) > 1 else 0

    def observe(self, now_s: float, *, at_s: float) -> Observation:
        """What can be measured now; the counts begin anew."""
        crew, waiting, known = self.crew, self._waiting, self.crew.learned_starts
        self.seen_waits_s, self._waits_s = self._waits_s, []
        running, starting, idle = len(crew.running), len(crew.starting), crew.idle_workers
        seen = Observation(
            at_s=at_s,
            waiting=len(waiting),
            oldest_age_s=now_s - self._enqueued_s[waiting[0]] if waiting else 0.0,
            arrived=self._next_job - self._seen_job + self._again,
            retried=self._again + self._given_retries(),
            started=len(self.seen_waits_s),
            finished=self._finished,
            service_sum_s=max(0.0, self._service_sum_s - self.jobs.dispatch_s * self._finished),
            workers=running + starting,
            busy=running - idle,
            idle=idle,
            starting=starting,
            leaving=len(crew.leaving) if self.sees_leaving else 0,
            pickup_max_s=max(self.seen_waits_s, default=None),
            in_flight=crew.jobs_in_flight,
            start_up_s=None if known is None else known.mean_s,
            start_up_p95_s=None if known is None else known.p95_s,
            delayed=self._scheduled.delayed(now_s),
        )
        self._seen_job = self._next_job
        self._again = self._finished = 0
        self._service_sum_s = 0.0
        return self._as_reported(seen, now_s) if self.jobs.dispatch_s or self._overhead_s else seen
