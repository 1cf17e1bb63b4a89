"""One pool of a rehearsal, whoever decides for it, and what is recorded of both."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import itemgetter
from typing import Any

from headway.scaling.decisions.outcome import Outcome
from headway.scaling.metrics.sampling_instant import RecentStarts, counted
from headway.scaling.model import Decision, Memory, QueueMetrics
from headway.scaling.profile import Profile
from headway.scaling.view import PoolView
from headway.simulate.bucket_view import RowWriter, depth_row, edges_s, row_of
from headway.simulate.controller import QUEUE, Controller
from headway.simulate.counted_rows import depths_of
from headway.simulate.engine.draws import Draw, chance
from headway.simulate.engine.evaluation_times import WAKE_AGAIN_S, Lag
from headway.simulate.engine.faults import is_covered
from headway.simulate.engine.results import Recorder, Result, percentile, punctuality
from headway.simulate.engine.simulated_pool import RunningPool
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.simulate.engine.unplaced import UnplacedRecorder
from headway.simulate.observation import Count, Observation, Stepping, Target, together

POLL_S = 0.5  # from one poll of a collector to the next, as in headway.connections


class Lane:
    """A pool, its controller and what is recorded of them."""

    def __init__(self, plan: PoolPlan, controller: Stepping, *, begins_at_s: float, seed: int) -> None:
        self.pool = RunningPool(plan, seed=seed)
        self.recorder = Recorder()
        self.unplaced = UnplacedRecorder()
        self.wanted = (plan.warm_workers, 0)
        """How many workers shall be there, by the last decision, and how many of them burst."""
        self._controller = controller if isinstance(controller, Controller) else None
        self.profile = _profile_of(plan, self._controller)
        """As which the pool stands beside others."""
        # Whoever pays by the day pays for those that leave as well.
        self.pool.sees_leaving |= self.profile.budget_per_day is not None
        self._quick = controller if isinstance(controller, Controller) and not plan.faults.are_late else None
        """The controller, where evaluations of a pool at rest may be passed over."""
        self._step = controller.step
        self._seen: Observation | None = None
        self._ceiling = plan.workers_max
        self._begins_at_s = begins_at_s
        self._are_late = plan.faults.are_late
        self._on_the_way: deque[Observation] = deque()
        self._unsent: Observation | None = None
        self._last: Observation | None = None
        self._lag = Lag(plan.behaviour, chance(seed, f"{plan.name}/lag"))
        self._is_exact = not (plan.is_live or self._lag.is_any)
        self._rows = RowWriter(self.profile.queues[0])
        self._sampled_s = 0.0
        self._unlooked: Observation | None = None
        """What was seen and not decided on yet."""
        self._wakes_after_s: float | None = None
        self._evaluated_s = -math.inf

    # --- what is seen ------------------------------------------------------------------------------------------------

    def advance(self, now_s: float, *, from_s: float) -> None:
        """Let everything happen from ``from_s`` up to ``now_s``, and note what an evaluation at that time sees."""
        if not self._is_exact:
            self._note(self._seen_late(now_s, from_s=from_s))
            return
        for edge_s in self._edges_s(now_s):
            self._note(self._part(edge_s))
        self.pool.advance(now_s)

    def _note(self, seen: Observation) -> None:
        """Keep what was seen for the next evaluation."""
        self._unlooked = seen if self._unlooked is None else together(self._unlooked, seen)

    def _seen_late(self, now_s: float, *, from_s: float) -> Observation:
        """The queue as it was some moments before, and the workers as they were some other moments before.

        Live, what workers do comes to the control plane straight from a collector, and samples by way of the pipeline:
        the collector has polled again since the newest sample that is known.
        """
        queue_s = max(from_s, now_s - self._lag.queue_s())
        workers_s = max(from_s, now_s - self._lag.workers_s())
        reads: list[tuple[float, Callable[[float], Any]]] = [
            (queue_s, self._sampled_at),
            (workers_s, self._workers_at),
        ]
        if self.pool.plan.is_live:
            reads.append((queue_s + POLL_S * ((now_s - queue_s) // POLL_S), self._begun_at))
        found = {read: read(at_s) for at_s, read in sorted(reads, key=itemgetter(0))}
        self.pool.advance(now_s)
        seen: Observation = replace(found[self._sampled_at], **found[self._workers_at])
        if not self.pool.plan.is_live:
            return seen
        return self._at_one_instant(seen, queue_s, workers_s, found[self._begun_at])

    def _workers_at(self, at_s: float) -> dict[str, Any]:
        self.pool.advance(at_s)
        return self.pool.crew.count()

    def _begun_at(self, at_s: float) -> tuple[float, ...]:
        self.pool.advance(at_s)
        return self.pool.begun_s(at_s)

    def _at_one_instant(
        self, seen: Observation, queue_s: float, workers_s: float, begun_s: tuple[float, ...]
    ) -> Observation:
        """The workers as they were when the queue was sampled, as the control plane counts them."""
        crew = self.pool.crew
        ready_s = tuple(worker.ready_s for worker in crew.running if queue_s < worker.ready_s <= workers_s)
        there = counted(
            [QueueMetrics(queue=self.profile.queues[0], sampled_at_s=queue_s, in_flight_jobs=seen.in_flight)],
            RecentStarts(ready_at_s=ready_s, begun_at_s=begun_s),
            running_workers=seen.busy + seen.idle,
            starting_workers=seen.starting,
            slots_per_worker=crew.slots,
        )
        busy = min(seen.busy, there.running_workers)
        return replace(
            seen,
            busy=busy,
            idle=there.running_workers - busy,
            starting=there.starting_workers,
            taken=there.taken_jobs,
        )

    def _sampled_at(self, until_s: float) -> Observation:
        parts = [self._part(edge_s) for edge_s in self._edges_s(until_s)]
        return self._with_rows(reduce(together, [*parts, self._part(until_s)]))

    def _with_rows(self, seen: Observation) -> Observation:
        """``seen`` with the rows that have changed since the last one."""
        return replace(seen, rows=self._rows.take())

    def _edges_s(self, until_s: float) -> Sequence[float]:
        """Where buckets end until then, from the one on in which anything may happen."""
        from_s = max(self._sampled_s, min(until_s, self.pool.next_event_s))
        return tuple(edges_s(from_s, until_s, begins_at_s=self._begins_at_s))

    def _part(self, until_s: float) -> Observation:
        """What happened since the last part, which is written into its row as well."""
        self.pool.advance(until_s)
        self._sampled_s = until_s
        part = self.pool.observe(until_s, at_s=self._begins_at_s + until_s)
        self._rows.add(
            row_of(
                self._rows.queue,
                at_s=part.at_s,
                counts=(part.arrived, part.retried, part.started, part.finished),
                service_sum_s=part.service_sum_s,
                pickups_s=self.pool.seen_waits_s,
                depths=depths_of(part),
            )
        )
        return part

    def _depth_alone(self, seen: Observation) -> Observation:
        """What is left of ``seen`` where the source of the queue reports how many jobs wait, and nothing else.

        Agents still see which of their workers have a job.
        """
        row = depth_row(self.profile.queues[0], at_s=seen.at_s, waiting_jobs=seen.waiting)
        return replace(
            seen,
            oldest_age_s=None,
            arrived=0,
            retried=0,
            started=0,
            finished=0,
            service_sum_s=0.0,
            pickup_max_s=None,
            in_flight=None,
            taken=0,
            dispatch_overhead_s=None,
            rows=(row,),
        )

    # --- what is decided ---------------------------------------------------------------------------------------------

    def refresh(self, now_s: float, *, capacity_workers: int | None = None) -> None:
        """Let the controller see its pool and decide for it alone; hosts hold no more than ``capacity_workers``."""
        if self._is_exact:
            self._note(self._part(now_s))
        seen, self._unlooked = self._unlooked, None
        assert seen is not None, "advance() comes first"
        if self._is_exact:
            seen = self._with_rows(seen)
        if self.pool.plan.is_depth_only:
            seen = self._depth_alone(seen)
        if capacity_workers is not None:
            seen = replace(seen, capacity_workers=capacity_workers)
        self._seen, self._evaluated_s, self._wakes_after_s = seen, now_s, None
        if self._are_late:
            answer = self._step_late(seen, now_s)
        elif self._is_exact:
            answer = self._step(seen)
        else:
            answer = self._step(seen, now_s=self._begins_at_s + now_s)
        workers = answer.target_workers
        if workers > self._ceiling:
            workers = self._ceiling
        self.wanted = workers, answer.burst_workers

    def record(self, now_s: float) -> None:
        """Keep what was seen and decided last."""
        seen = self._seen
        assert seen is not None, "observe() comes first"
        self.recorder.take(
            now_s,
            target=self.wanted[0],
            present=seen.workers,
            busy=seen.busy,
            waiting=seen.waiting,
            pickup_max_s=seen.pickup_max_s,
        )

    def outcome(self, now_s: float) -> Outcome:
        """What the last evaluation made of the pool alone."""
        if self._controller is not None and self._controller.outcome is not None:
            found = self._controller.outcome
            if found.view.profile is self.profile:
                return found
            decision = replace(found.decision, pool=self.profile.pool)
            return replace(found, view=replace(found.view, profile=self.profile), decision=decision)
        workers, burst_workers = self.wanted
        seen = self._seen
        assert seen is not None, "observe() comes first"
        view = PoolView(profile=self.profile, queues=(), capacity_workers=workers, assigned_workers=seen.workers)
        decision = Decision(
            pool=self.profile.pool,
            at_s=self._begins_at_s + now_s,
            target_workers=workers,
            burst_workers=min(burst_workers, workers),
            binding="controller",
        )
        return Outcome(view=view, before=Memory(), decision=decision, memory=Memory())

    def take(self, outcome: Outcome) -> None:
        """Go on with what was left of ``outcome`` beside the other pools."""
        self.wanted = outcome.decision.target_workers, outcome.decision.burst_workers
        if self._controller is not None:
            self._controller.continue_from(outcome.memory)

    @property
    def quiet_until_s(self) -> float:
        """Until when every evaluation equals the last one and gets its answer; in the past where that is not known."""
        seen = self._seen
        if self._quick is None or seen is None or seen.workers != self.wanted[0]:
            return -math.inf
        if not self._quick.stands(seen):
            return -math.inf
        return self.pool.next_event_s

    def pass_over(self, at_s: Sequence[float]) -> None:
        """Keep looks like the last one at these times."""
        self.recorder.repeat(at_s)

    def wakes_at_s(self, wake_s: Draw, *, before_s: float) -> float:
        """When the pool is evaluated before then because jobs wait at zero; never, where it is not at zero."""
        oldest_s = self.pool.oldest_s
        if self.wanted[0] or oldest_s >= before_s:
            return math.inf
        if self._wakes_after_s is None:
            self._wakes_after_s = wake_s()
        return max(oldest_s + self._wakes_after_s, self._evaluated_s + WAKE_AGAIN_S)

    def _step_late(self, seen: Observation, now_s: float) -> Target:
        """The same with metrics as they have arrived: old ones, or the last ones once more. Workers are seen as now."""
        faults = self.pool.plan.faults
        self._unsent = seen if self._unsent is None else together(self._unsent, seen)
        if not is_covered(faults.metric_losses, now_s):
            self._on_the_way.append(self._unsent)
            self._unsent = None
        at_s = self._begins_at_s + now_s
        arrived = []
        while self._on_the_way and self._on_the_way[0].at_s <= at_s - faults.metric_lag_s:
            arrived.append(self._on_the_way.popleft())
        if arrived:
            self._last = reduce(together, arrived)
        if self._last is None:
            return Count(self.wanted[0])
        known = replace(self._last, workers=seen.workers, busy=seen.busy, idle=seen.idle, starting=seen.starting)
        return self._step(known, now_s=at_s)

    def apply(self, now_s: float) -> None:
        """Let workers start and leave until there are as many as were decided."""
        crew, (workers, burst_workers) = self.pool.crew, self.wanted
        if workers != len(crew.starting) + len(crew.running):
            crew.retarget(now_s, workers=workers, burst_workers=burst_workers)

    # --- what came of it ---------------------------------------------------------------------------------------------

    def result(self, *, objective_s: float, until_s: float | None = None) -> Result:
        """What it came to; with ``until_s``, workers are paid until then, and not only until the last job ended."""
        pool, recorder, jobs = self.pool, self.recorder, self.pool.jobs
        served = sorted(wait_s for wait_s in pool.pickup_s if not math.isnan(wait_s))
        last_s = jobs.at_s[-1] if len(jobs) else 0.0
        ended_s = max(pool.ended_s, last_s, 0.0 if pool.is_over else recorder.at_s[-1])
        in_time = punctuality(jobs.at_s, pool.pickup_s, objective_s=objective_s)
        return Result(
            pool=pool.plan.name,
            jobs=len(jobs),
            unserved_jobs=len(jobs) - len(served),
            objective_s=objective_s,
            attainment_percent=in_time.percent,
            attainment_by_day_percent=in_time.by_day_percent,
            pickup_p50_s=percentile(served, 0.50),
            pickup_p95_s=percentile(served, 0.95),
            pickup_p99_s=percentile(served, 0.99),
            pickup_max_s=served[-1] if served else None,
            worker_hours=pool.crew.paid_s(ended_s if until_s is None else max(until_s, ended_s)) / 3600.0,
            work_hours=sum(jobs.service_s) / 3600.0,
            spawns=pool.crew.spawns,
            kills=pool.crew.kills,
            flips=recorder.flips,
            bad_windows=in_time.bad_windows,
            windows=in_time.windows,
            ticks=len(recorder.at_s),
            ended_s=ended_s,
            deaths=pool.crew.deaths,
            crashes=pool.crew.crashes,
            given_up_jobs=pool.given_up_jobs,
            points=recorder.points(),
            unplaced=self.unplaced.unplaced,
        )


def _profile_of(plan: PoolPlan, controller: Controller | None) -> Profile:
    """The controller's, as the plan names the pool and its template."""
    given = Profile(pool=plan.name, queues=(QUEUE,), template=plan.template, workers_max=plan.workers_max)
    if controller is not None:
        given = controller.profile
    priority = given.priority if plan.priority is None else plan.priority
    if (given.pool, given.template, given.priority) == (plan.name, plan.template, priority):
        return given
    return replace(given, pool=plan.name, template=plan.template, priority=priority)
