"""The stepping interface: the core driven one evaluation at a time, from any simulator.

It holds the memory between steps and runs the ``decide`` of the live loop. It sees what can be measured and no more.
"""

from collections import deque
from collections.abc import Mapping

from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.decisions.reuse import is_lasting
from headway.scaling.group import Group
from headway.scaling.history.daily import Recall
from headway.scaling.history.weekly import Weeks
from headway.scaling.measure import BucketRow
from headway.scaling.metrics.behaviour import Behaviour, mean_s, of_late_s
from headway.scaling.metrics.dispatch_overhead import SAMPLES_KEPT, Dispatch, Seen, seen_of, with_samples
from headway.scaling.metrics.queue_rows import QueueRows
from headway.scaling.metrics.sampling_instant import WorkersAtInstant
from headway.scaling.metrics.worker_evidence import WorkerEvidence
from headway.scaling.model import Decision, Memory, Objective, Template
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.schedule import Zones
from headway.scaling.reading.gathered_view import PastArrivals, view_of, with_past
from headway.scaling.reading.pool_times import LAG_S, PoolTimes, exposed_s
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Strategy
from headway.scaling.view import PoolView, copied
from headway.simulate.bucket_view import RowWriter
from headway.simulate.counted_rows import counted_rows
from headway.simulate.observation import Observation

__all__ = ["QUEUE", "Controller", "Observation", "ceiling_workers"]

QUEUE = "simulated/jobs"


class Controller:
    """One pool with one queue, decided for step by step."""

    def __init__(
        self,
        *,
        target_s: float = 10.0,
        percentile: float = 99.0,
        workers_min: int = 0,
        workers_max: int = 100,
        start_up_s: float = 2.0,
        tick_s: float = 5.0,
        strategy: str = "hybrid",
        profile: Profile | None = None,
        strategies: Mapping[str, Strategy] = BUILT_IN,
        options: Mapping[str, float] | None = None,
        zones: Zones | None = None,
        slots_per_worker: int = 1,
        recalls_weeks: bool = True,
        behaviour: Behaviour | None = None,
        host_cores: float | None = None,
        groups: tuple[Group, ...] = (),
    ) -> None:
        self.profile = profile or Profile(
            pool="simulated",
            queues=(QUEUE,),
            template="simulated",
            objective=Objective(target_s=target_s, percentile=percentile),
            workers_min=workers_min,
            workers_max=workers_max,
            strategy=strategy,
        )
        self._strategies = strategies
        self._options = dict(options or {})
        self._zones: Zones = zones or {}
        self._tick_s = tick_s
        self._taken_at_s: float | None = None
        self._rows = QueueRows(self.profile.queues[0])
        self._samples: deque[Seen] = deque(maxlen=SAMPLES_KEPT)
        self._dispatch = Dispatch()
        self._counted = RowWriter(self.profile.queues[0])
        self._behaviour = measured = behaviour or Behaviour()
        known_s = of_late_s(measured)
        self._template = Template(
            name=self.profile.template,
            content_hash="simulated",
            slots=slots_per_worker,
            start_up_s=start_up_s if known_s is None else known_s,
            start_up_p95_s=None if measured.start_up is None else measured.start_up.p95_s,
            start_up_cpu_s=measured.start_up_cpu_s,
            exit_s=None if measured.exit is None else mean_s(measured.exit),
        )
        self._host_cores = host_cores
        self._groups = groups
        self._lag_s = 0.0 if behaviour is None else LAG_S
        self._ceiling_workers = ceiling_workers(self.profile)
        self._recall = Recall()
        self._weeks = Weeks() if recalls_weeks else None
        times = PoolTimes(tick_s=tick_s, lag_s=self._lag_s, known_start_up_s=self._template.start_up_s)
        self._is_exposed = exposed_s(self.profile, times) > 0
        self._memory = Memory()
        self._standing: tuple[int, Decision] | None = None
        """The decision of a pool in which nothing happens, and its workers; ``None`` while it could change."""
        self._passed_over: Observation | None = None
        self._last: tuple[PoolView, Memory, Decision, Memory] | None = None

    def step(self, observation: Observation, *, now_s: float | None = None) -> Decision:
        """The decision at ``now_s``, which is ``observation.at_s`` where metrics are not late.

        An observation that is given again, for want of a newer one, counts once and grows stale.
        """
        if self._standing is not None and _is_quiet(observation) and self._is_fresh(observation, now_s):
            workers, standing = self._standing
            if observation.workers == workers:
                self._passed_over = observation
                return standing
        if self._passed_over is not None:
            self._take(self._passed_over)
            self._passed_over = None
        before = self._memory
        at_s = observation.at_s if now_s is None else now_s
        view = self._view(observation, now_s=at_s)
        self._samples.append(seen_of(view, at_s=observation.at_s))
        self._dispatch = with_samples(self._dispatch, self._samples, self._rows.eventful, now_s=at_s)
        decision, memory = decide(view, before, now_s=at_s, strategies=self._strategies)
        self._memory, self._last = memory, (view, before, decision, memory)
        stands = _is_quiet(observation) and self._is_still()
        self._standing = (observation.workers, decision) if stands else None
        return decision

    @property
    def outcome(self) -> Outcome | None:
        """What the last decision made of this pool alone, to be allocated beside others; ``None`` before the first."""
        if self._last is None:
            return None
        view, before, decision, memory = self._last
        return Outcome(view=view, before=before, decision=decision, memory=memory)

    def continue_from(self, memory: Memory) -> None:
        """Go on from ``memory``: what is to be remembered of the last decision now that other pools had their part."""
        if memory is not self._memory:
            self._memory, self._standing = memory, None

    def _is_fresh(self, observation: Observation, now_s: float | None) -> bool:
        """Whether the observation is new enough for a decision that stands to stand: stale metrics are said of."""
        return now_s is None or now_s - observation.at_s <= self.profile.stale_after_s

    def stands(self, observation: Observation) -> bool:
        """Whether every evaluation like ``observation``, whenever it is, gets the decision that was given last."""
        return self._standing is not None and _is_quiet(observation) and observation.workers == self._standing[0]

    def _is_still(self) -> bool:
        """Whether deciding again would say the same until something happens: no window, state, limit or clock moves."""
        strategy, outcome = self._strategies[self.profile.strategy], self.outcome
        return outcome is not None and not self._rows.eventful and is_lasting(outcome, strategy=strategy)

    def _take(self, seen: Observation) -> None:
        for row in self._rows_of_counts(seen) if seen.rows is None else seen.rows:
            self._rows.take(row)
        self._rows.forget(now_s=self._rows.newest_s)
        if self._is_exposed:  # nobody else asks what was
            fresh_jobs = seen.arrived - seen.retried
            self._recall.take(fresh_jobs, at_s=seen.at_s)
            if self._weeks is not None:
                self._weeks.take(fresh_jobs, at_s=seen.at_s)
        self._taken_at_s = seen.at_s

    def _rows_of_counts(self, seen: Observation) -> tuple[BucketRow, ...]:
        since_s = seen.at_s - self._tick_s if self._taken_at_s is None else self._taken_at_s
        for row in counted_rows(self._counted.queue, seen, since_s=since_s):
            self._counted.add(row)
        return self._counted.take()

    def _view(self, seen: Observation, *, now_s: float) -> PoolView:
        if seen.at_s != self._taken_at_s:
            self._take(seen)
        template, queue = (
            self._template,
            self._rows.metrics(now_s=now_s, objective=self.profile.objective, tick_s=self._tick_s),
        )
        if seen.delayed:
            queue = copied(queue, delayed=seen.delayed, delayed_jobs=sum(each.jobs for each in seen.delayed))
        if seen.start_up_s is not None:
            template = copied(template, start_up_s=seen.start_up_s)
        if seen.start_up_p95_s is not None:
            template = copied(template, start_up_p95_s=seen.start_up_p95_s)
        view = view_of(
            self.profile,
            (queue,),
            template=template,
            present=WorkersAtInstant(
                running_workers=seen.busy + seen.idle, starting_workers=seen.starting, taken_jobs=seen.taken
            ),
            activity=WorkerEvidence(idle_workers=seen.idle, busy_workers=seen.busy, uncounted_workers=seen.busy),
            leaving_workers=seen.leaving,
            now_s=now_s,
            host_cores=self._host_cores,
            dispatch_overhead_s=self._overhead_s(seen),
            capacity_workers=self._ceiling_workers if seen.capacity_workers is None else seen.capacity_workers,
            assigned_workers=seen.workers,
            worker_hours_today=0.0,
            groups=self._groups,
            zones=self._zones,
            options=self._options,
            tick_s=self._tick_s,
            lag_s=self._lag_s,
        )
        return with_past(view, {queue.queue: self._past(seen)}, now_s=seen.at_s) if self._is_exposed else view

    def _overhead_s(self, seen: Observation) -> float | None:
        """What the observation reports, else what was measured before, else what the counts show by now."""
        if seen.dispatch_overhead_s is not None:
            return seen.dispatch_overhead_s
        known_s = self._behaviour.dispatch_overhead_s
        return self._dispatch.overhead_s if known_s is None else known_s

    def _past(self, seen: Observation) -> PastArrivals:
        season = None if self._weeks is None else self._weeks.season
        return PastArrivals(
            arrived_jobs=self._recall.arrived_jobs(now_s=seen.at_s),
            season=season if season is not None and season.is_better else None,
            jobs=self._recall.by_minute,
            since=self._recall.since,
        )


def ceiling_workers(profile: Profile) -> int:
    """The most workers that ``profile`` ever asks for, whatever its schedules say."""
    scheduled = (schedule.workers_max or 0 for schedule in profile.schedules)
    return max(profile.workers_max, profile.pinned or 0, *scheduled)


def _is_quiet(seen: Observation) -> bool:
    return not (
        seen.waiting
        or seen.busy
        or seen.starting
        or seen.arrived
        or seen.started
        or seen.finished
        or seen.in_flight
        or seen.delayed
    )
