"""What deciding reads, for all pools of a tick: hosts and assignments are counted once, not per pool."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from headway.control.scheduler.bucket_cache import BucketCache
from headway.control.scheduler.history_cache import HistoryCache
from headway.control.scheduler.learning import Learning
from headway.control.scheduler.pool_workers import PoolWorkers
from headway.control.scheduler.reported_templates import UNREPORTED, cores_of, slowest_templates, with_queues_of
from headway.scaling.allocation.unreachable_hosts import leaving_workers, unknown_workers
from headway.scaling.arithmetic import MINUTE_S
from headway.scaling.group import memberships
from headway.scaling.history.daily import minute_of
from headway.scaling.metrics.newest_sample import (
    LISTED_WITHIN_S,
    listed_workers,
    with_newest,
    with_unlisted_workers,
)
from headway.scaling.metrics.sampling_instant import WorkersAtInstant, counted, instant_s
from headway.scaling.metrics.shared_queues import (
    NOTHING_SHARED,
    SharedQueues,
    helping_of,
    samples_without_shared,
    shared_jobs,
    without_shared,
)
from headway.scaling.metrics.worker_evidence import LATEST, SampledInstant, WorkerEvidence, evidence_of
from headway.scaling.model import ActivitySource, HostState, Mode, QueueMetrics, SharedJobs, Suspension, WorkerState
from headway.scaling.placement.host_capacity import is_open
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.profile import Profile
from headway.scaling.reading.gathered_view import view_of, with_past
from headway.scaling.reading.pool_times import LAG_S, PoolTimes, exposed_members, exposed_s, times_of
from headway.scaling.reading.suspensions import suspension_of
from headway.scaling.view import PoolView
from headway.store.pools.evaluation_io import Gathered
from headway.zones import zones_of


class ViewBuilder:
    """The views of one moment."""

    def __init__(
        self,
        gathered: Gathered,
        recent: BucketCache,
        earlier: HistoryCache | None = None,
        *,
        learning: Learning | None = None,
        sharing: SharedQueues = NOTHING_SHARED,
        now_s: float,
    ) -> None:
        known = [host for host in gathered.hosts if host.is_known]
        self._gathered = gathered
        self._recent = recent
        self._earlier = earlier or HistoryCache()
        self._learning = learning or Learning()
        self._now_s = now_s
        self._rooms = HostCapacities(known)
        self._is_anything_failing = any(host.failing for host in known)
        self._is_any_unreachable = not all(host.is_confirmed for host in known)
        self._capacities: dict[str, int | None] = {}
        self._templates = slowest_templates(known)
        self._cores = cores_of(known)
        self._assigned: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        """By pool, what stays on hosts that get nothing new."""
        staying = {host.host_id: is_open(host) for host in known if host.state is not HostState.DRAINING}
        for row in gathered.assignments:
            if row.host_id in staying:
                self._assigned[row.pool] += row.workers
                if not staying[row.host_id]:
                    self._kept[row.pool] += row.workers
        self._ahead_s = now_s - gathered.at_s
        """What the clock of workers' states is behind."""
        self._sharing = sharing
        self._workers = PoolWorkers(known, ahead_s=self._ahead_s, now_s=now_s, sharing=sharing)
        self._groups = memberships(gathered.groups)
        self._unknown = unknown_workers(gathered.hosts, gathered.assignments)

    def of(self, profile: Profile) -> PoolView:
        """The view of the pool of ``profile``."""
        pool, samples = profile.pool, self._gathered.direct
        template = with_queues_of(profile, self._templates.get(profile.template, UNREPORTED))
        queues = self._queues(profile)
        helped = self._helped(profile, queues)
        if helped:
            own = {queue: samples[queue] for queue in profile.queues if queue in samples}
            queues, samples = without_shared(queues, helped), samples_without_shared(own, helped)
        running = [each for each in self._workers.of_helper(pool) if each.state is WorkerState.RUNNING]
        helping = helping_of(running, self._sharing)
        present, is_running_known = self._present(profile, queues, slots_per_worker=template.slots)
        view = view_of(
            profile,
            queues,
            template=template,
            present=present,
            activity=self._evidence(profile, queues, running_workers=present.running_workers),
            samples=samples,
            unknown_workers=self._unknown[pool],
            leaving_workers=self._leaving_of(profile),
            listed_others=self._listed_others(profile),
            helped=helped,
            now_s=self._now_s,
            helping=helping.jobs,
            helping_workers=helping.workers,
            helped_queues=self._helped_queues(profile),
            host_cores=self._cores.get(profile.template),
            dispatch_overhead_s=self._learning.overhead_s(pool),
            capacity_workers=self._capacity(profile),
            assigned_workers=self._assigned[pool],
            is_running_known=is_running_known,
            do_workers_report=self._do_workers_report(profile),
            suspension=self._suspension(profile),
            start_failure=self._workers.start_failure(pool),
            is_failing=self._is_anything_failing and self._rooms.does_fail(self._kind(profile)),
            lag_s=LAG_S,
            groups=self._groups.get(pool, ()),
            worker_hours_today=self._gathered.worker_hours_today.get(pool),
            zones=zones_of(profile) if profile.schedules or profile.budget_per_day is not None else {},
        )
        minute_s = minute_of(self._now_s) * MINUTE_S
        past = {
            queue.queue: self._earlier.past(
                queue.queue, arrived_jobs=self._recent.arrived_jobs(queue.queue, from_s=minute_s)
            )
            for queue in exposed_members(profile, view.queues, times_of(view))
        }
        return with_past(view, past, now_s=self._now_s) if past else view

    def _queues(self, profile: Profile) -> Sequence[QueueMetrics]:
        """The member queues by their newest samples, with the jobs of workers that their broker does not list yet."""
        direct = self._gathered.direct
        members = [
            with_newest(
                self._recent.metrics(queue, now_s=self._now_s, objective=profile.objective_of(queue)),
                direct.get(queue),
            )
            for queue in profile.queues
        ]
        listed_by_s = self._now_s - LISTED_WITHIN_S
        return with_unlisted_workers(
            members,
            direct,
            running_workers=len(self._workers.ready(profile.pool, by_s=listed_by_s)),
            now_s=self._now_s,
            # One that has just started is not listed yet: taken off, it would make an own worker unlisted.
            of_others=sum(
                len(self._workers.ready(helper, by_s=listed_by_s)) for helper in self._sharing.helpers_of(profile.pool)
            ),
        )

    def _helped(self, profile: Profile, queues: Sequence[QueueMetrics]) -> tuple[SharedJobs, ...]:
        """The jobs of ``queues`` that workers of other pools run at the instant of their samples."""
        found = []
        for helper in self._sharing.helpers_of(profile.pool):
            workers, unknown_workers = self._workers.of_helper(helper), self._unknown[helper]
            if not workers and not unknown_workers:
                continue
            names = self._sharing.helped_by(helper)
            template = self._templates.get(self._sharing.template_of(helper), UNREPORTED)
            found += [
                shared_jobs(
                    queue,
                    helper,
                    workers,
                    names,
                    slots_per_worker=template.slots,
                    unknown_workers=unknown_workers,
                    instant=self._instant(queues, [queue]),
                )
                for queue in queues
                if queue.queue in names.values()
            ]
        return tuple(found)

    def _helped_queues(self, profile: Profile) -> tuple[QueueMetrics, ...]:
        """The queues of other pools that workers of the pool take from, with the jobs of all workers."""
        direct = self._gathered.direct
        return tuple(
            with_newest(
                self._recent.metrics(queue, now_s=self._now_s, objective=self._sharing.objective_of(queue)),
                direct.get(queue),
            )
            for queue in self._sharing.helped_by(profile.pool).values()
        )

    def _listed_others(self, profile: Profile) -> int:
        """Workers of other pools that the broker lists beside those of the pool."""
        return sum(self._workers.alive(helper) for helper in self._sharing.helpers_of(profile.pool))

    def _listed_workers(self, profile: Profile) -> int | None:
        """How many workers of the pool the broker lists; ``None``: not known."""
        others = self._listed_others(profile)
        return listed_workers(profile.queues, self._gathered.direct, now_s=self._now_s, of_others=others)

    def _present(
        self, profile: Profile, queues: Sequence[QueueMetrics], *, slots_per_worker: int
    ) -> tuple[WorkersAtInstant, bool]:
        """The workers at the instant of the samples, and whether it is known what runs."""
        present = counted(
            queues,
            self._workers.recent(profile.pool),
            running_workers=self._workers.in_state(profile.pool, WorkerState.RUNNING),
            starting_workers=self._workers.in_state(profile.pool, WorkerState.STARTING),
            slots_per_worker=slots_per_worker,
        )
        return self._listed(profile, present) if profile.mode is Mode.RECOMMEND else (present, True)

    def _suspension(self, profile: Profile) -> Suspension | None:
        """What keeps all workers of the pool from taking jobs, by the fresh word of its broker and of its workers."""
        pool, oldest_s = profile.pool, self._now_s - profile.stale_after_s
        fresh = [
            sample
            for queue in profile.queues
            if (sample := self._gathered.direct.get(queue)) is not None and sample.at_s >= oldest_s
        ]
        return suspension_of(
            fresh if len(fresh) == len(profile.queues) else (),
            self._workers.all_running(pool),
            is_anybody_unseen=bool(self._unknown[pool] or self._workers.in_state(pool, WorkerState.STARTING)),
            now_s=self._now_s,
            ahead_s=self._ahead_s,
        )

    def _evidence(self, profile: Profile, queues: Sequence[QueueMetrics], *, running_workers: int) -> WorkerEvidence:
        """What ``running_workers`` do; of a pool that others scale, only what those do that agents report."""
        ready = self._workers.ready(profile.pool, by_s=instant_s(queues))
        if profile.mode is Mode.RECOMMEND:
            running_workers = min(running_workers, len(ready))
        return evidence_of(ready, running_workers=running_workers, instant=self._instant(queues, queues))

    def _instant(self, queues: Sequence[QueueMetrics], timed: Sequence[QueueMetrics]) -> SampledInstant:
        """The instant of the samples of ``queues``, for jobs of those in ``timed``."""
        at_s = instant_s(queues)
        if at_s is None:
            return LATEST
        known_s = (queue.service_time_s for queue in timed if queue.service_time_s is not None)
        return SampledInstant(at_s=at_s, ahead_s=self._ahead_s, service_time_s=max(known_s, default=None))

    def _do_workers_report(self, profile: Profile) -> bool:
        """Whether each worker of the pool reports its jobs; where none runs, whether the broker lists none either.

        Workers of others do not report: of a pool that others scale, some may run anywhere.
        """
        running = self._workers.all_running(profile.pool)
        if profile.mode is Mode.RECOMMEND:
            return False
        listed = self._listed_workers(profile)
        is_anybody_unseen = self._unknown[profile.pool] or (
            listed is not None and listed > self._workers.alive(profile.pool)
        )
        if is_anybody_unseen or (not running and listed != 0):
            return False
        helpers = self._sharing.helpers_of(profile.pool)
        running = [*running, *(worker for helper in helpers for worker in self._workers.all_running(helper))]
        return all(each.activity_source is ActivitySource.REPORTER for each in running)

    def _listed(self, profile: Profile, present: WorkersAtInstant) -> tuple[WorkersAtInstant, bool]:
        """What runs of a pool that others scale, and whether that is known.

        The broker lists every worker, those that agents report among them. Without its list, agents' reports count;
        where there are none either, deciding goes on as if its last recommendation had been followed.
        """
        listed = self._listed_workers(profile)
        if listed is not None:
            return WorkersAtInstant(running_workers=listed, starting_workers=0, taken_jobs=0), True
        state = self._gathered.states.get(profile.pool)
        if present.running_workers or state is None:
            return present, present.running_workers > 0
        return WorkersAtInstant(running_workers=state.target_workers, starting_workers=0, taken_jobs=0), False

    def exposed_s(self, profile: Profile) -> float:
        """For how long from now the pool of ``profile`` is exposed; often 0."""
        start_up_s = self._templates.get(profile.template, UNREPORTED).start_up_s
        return exposed_s(profile, PoolTimes(known_start_up_s=start_up_s, lag_s=LAG_S))

    @cached_property
    def _leaving(self) -> Counter[str]:
        return leaving_workers(self._gathered.hosts, self._gathered.assignments)

    def _leaving_of(self, profile: Profile) -> int:
        """A host that has yet to report what it runs, after a restore, may run all of a pinned pool."""
        if profile.pinned is not None and self._is_any_unreachable:
            return profile.pinned
        return self._leaving[profile.pool]

    def _kind(self, profile: Profile) -> str:
        return self._rooms.kind(profile.template, profile.placement.labels)

    def _capacity(self, profile: Profile) -> int | None:
        kind = self._kind(profile)
        if kind not in self._capacities:
            self._capacities[kind] = self._rooms.capacity(kind)
        room = self._capacities[kind]
        return None if room is None else room + self._kept[profile.pool]
