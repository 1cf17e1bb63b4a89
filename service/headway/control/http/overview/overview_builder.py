"""What people are shown, put together from what the store holds: the dashboard's one snapshot, queues, a history."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from headway.control.database_timeout import DatabaseTimeout
from headway.control.http.overview.day_attainment import DayAttainment
from headway.control.http.overview.health_reasons import health_of, with_reasons
from headway.control.http.overview.pool_places import Places
from headway.control.http.overview.pool_summary import PoolRows, facts_of, pool_now
from headway.control.http.overview.queue_summary import Reporters, Trouble, measured_age_s, queues_now
from headway.control.http.overview.unheld_counter import Unheld, UnheldCounter
from headway.control.http.schemas.responses import (
    DecisionOut,
    HealthOut,
    HostOut,
    HostsWantedOut,
    Overview,
    QueueOut,
    QueuesOut,
)
from headway.control.scheduler.bucket_backfill import BucketBackfill
from headway.control.scheduler.bucket_cache import CACHED_S, BucketCache
from headway.scaling.allocation.host_demand import HostsWanted
from headway.scaling.conditions.causes import Cause, ailing_hosts, ailing_pools
from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.installation_facts import HealthRow, InstallationFacts, PipelineRow, ProcessFacts
from headway.scaling.conditions.job_troubles import CutRow, PoisonRow
from headway.scaling.conditions.noticed_workers import OVERDUE_LEAST_S, NoticedWorker, noticed_workers
from headway.scaling.conditions.pool_facts import WorkerCounts
from headway.scaling.fields import taken_from
from headway.scaling.group import Group, memberships, used_units
from headway.scaling.measure import BucketRow
from headway.scaling.metrics.attainment import DayAttained
from headway.scaling.metrics.flush_detection import RecentWorkers
from headway.scaling.metrics.newest_sample import listed_workers
from headway.scaling.metrics.shared_queues import SharedQueues
from headway.scaling.model import Mode, QueueSample, WorkerState
from headway.scaling.profile import Profile
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Strategy
from headway.store.engine import Connection, Engine, snapshot, transaction
from headway.store.events.event_sources import read_collectors, read_sources
from headway.store.hosts.job_cuts import CUTS_SHOWN_S, list_cuts
from headway.store.hosts.poison_jobs import list_poison
from headway.store.metrics.service_percentiles import read_service_p99_s
from headway.store.overview import (
    read_buckets,
    read_health,
    read_hosts,
    read_queues,
    read_samples,
    read_targets,
)
from headway.store.pools.decisions import StoredDecision, latest_decisions, list_decisions
from headway.store.pools.groups import read_groups
from headway.store.pools.host_demand import read_hosts_wanted
from headway.store.pools.profiles import StoredProfile, list_profiles
from headway.store.pools.queue_ownership import read_patterns

Shown = TypeVar("Shown")

SHOWN_DECISIONS = 20
OVERVIEW_AILING_S = 3.0  # many balancers may ask, and an overview of ten thousand queues takes a second
AILING_MAX_S = (
    5.0  # nobody is answered with what is older: a host that hangs is shown within 15 s, also to who asks alone
)


@dataclass(frozen=True, kw_only=True)
class QueueRows:
    """What one read of the store brought of queues."""

    buckets: Sequence[BucketRow]
    """Those that were written since the last."""
    revision: int
    queues: Mapping[str, str | None]
    patterns: Mapping[str, str]
    """Queue -> what matched it, of those that no profile names."""
    samples: Mapping[str, QueueSample]
    profiles: Sequence[StoredProfile]
    pipelines: Sequence[PipelineRow]
    reporters: Reporters


@dataclass(frozen=True, kw_only=True)
class OverviewRows(QueueRows):
    """What one read of the store brought."""

    targets: Mapping[str, int]
    latest: Mapping[str, StoredDecision]
    decisions: Sequence[StoredDecision]
    hosts: Sequence[HostRow]
    health: HealthOut
    groups: Sequence[Group] = ()
    hosts_wanted: Sequence[HostsWanted] = ()
    noticed: Mapping[str, Sequence[NoticedWorker]] = field(default_factory=dict)
    """Pool -> workers of it that drain, fail to start, take no jobs, or run in the background."""
    service_p99_s: Mapping[str, float] = field(default_factory=dict)
    """Of pools of which a worker has been draining for a while."""
    cuts: Sequence[CutRow] = ()
    """Those of the last minutes, the newest first."""
    poison: Sequence[PoisonRow] = ()
    """Jobs whose workers died with them again and again, the newest death first."""
    day_attained: Mapping[str, DayAttained] = field(default_factory=dict)
    """Of pools of which a job has started today."""

    @cached_property
    def cuts_of(self) -> Mapping[str, Sequence[CutRow]]:
        """Pool -> its cuts."""
        found: dict[str, list[CutRow]] = {}
        for cut in self.cuts:
            found.setdefault(cut.pool, []).append(cut)
        return found

    def of_pool(
        self, stored: StoredProfile, in_force: Profile, unheld: Unheld, *, have_workers_run: bool, now_s: float
    ) -> PoolRows:
        """What was read of one pool, whose profile is the one ``in_force`` now."""
        pool = stored.profile.pool
        helpers = map(self.counts, self.sharing.helpers_of(pool))
        of_others = sum(each.running + each.starting + each.draining for each in helpers)
        return PoolRows(
            profile=in_force,
            counts=self.counts(pool),
            listed=listed_workers(stored.profile.queues, self.samples, now_s=now_s, of_others=of_others),
            target_workers=self.targets.get(pool),
            latest=self.latest.get(pool),
            cuts=self.cuts_of.get(pool, ()),
            poison=[each for each in self.poison if each.pool == pool],
            noticed=self.noticed.get(pool, ()),
            service_p99_s=self.service_p99_s.get(pool),
            unheld=unheld,
            day_attained=self.day_attained.get(pool),
            groups=[(group, self.used[group.name]) for group in self.groups_of.get(pool, ())],
            has_queues=stored.has_queues,
            have_workers_run=have_workers_run,
        )

    @cached_property
    def groups_of(self) -> Mapping[str, Sequence[Group]]:
        """Pool -> the groups that it is in."""
        return memberships(self.groups)

    @cached_property
    def used(self) -> Mapping[str, int]:
        """Group -> what its pools have of its cap."""
        return {group.name: used_units(group, [row.host for row in self.hosts]) for group in self.groups}

    def counts(self, pool: str) -> WorkerCounts:
        """The workers of ``pool``, as agents last reported them."""
        return WorkerCounts(
            running=self.workers[pool, WorkerState.RUNNING],
            starting=self.workers[pool, WorkerState.STARTING],
            draining=self.workers[pool, WorkerState.DRAINING],
            backing_off=self.workers[pool, WorkerState.BACKING_OFF],
            unknown=self.workers[pool, None],
        )

    def pools_with_workers(self, *, now_s: float) -> list[str]:
        """Pools whose jobs a worker may take now, also one that Headway did not start."""
        return [each.profile.pool for each in self.profiles if self._has_workers(each.profile, now_s=now_s)]

    def _has_workers(self, profile: Profile, *, now_s: float) -> bool:
        counts, listed = self.counts(profile.pool), listed_workers(profile.queues, self.samples, now_s=now_s)
        if counts.running or counts.draining or counts.unknown:
            return True
        return profile.mode is Mode.RECOMMEND if listed is None else listed > 0

    @cached_property
    def sharing(self) -> SharedQueues:
        """Which pools help with whose queues: the broker lists their workers beside those of the owner."""
        return SharedQueues(each.profile for each in self.profiles)

    @cached_property
    def workers(self) -> Counter[tuple[str, WorkerState | None]]:
        """How many workers each pool has in each state; without a state those of hosts that went silent.

        Counted once: ten thousand pools must not each read every worker.
        """
        return Counter(
            (worker.pool, worker.state if row.host.is_known else None)
            for row in self.hosts
            for worker in row.host.workers
            if not (row.host.is_known and worker.inability is not None and worker.state is WorkerState.RUNNING)
        )


class OverviewBuilder:
    """Makes the dashboard's snapshots. Remembers buckets, so that each reads only what was written since the last."""

    def __init__(
        self,
        *,
        engine: Engine,
        clock: Callable[[], float],
        process: Callable[[], ProcessFacts] = ProcessFacts,
        strategies: Mapping[str, Strategy] = BUILT_IN,
        recommends_only: bool = False,
    ) -> None:
        """``process`` returns what this control plane knows by itself.

        ``strategies`` are those whose words decisions are shown in.
        """
        self._engine = engine
        self._clock = clock
        self._process = process
        self._strategies = strategies
        self._recommends_only = recommends_only
        self._recent, self._filling = BucketCache(), BucketBackfill()
        self._recent_workers = RecentWorkers()
        self._unheld = UnheldCounter()
        self._days = DayAttainment()
        # Of two reads at once the one that ends later may bring older rows than the other.
        self._turn = asyncio.Lock()
        self._ailing: tuple[Cause, ...] = ()
        self._read_at_s = float("-inf")
        """When ``_ailing`` was read, by the loop's clock."""
        self._refresh: asyncio.Task[Overview] | None = None
        self._patience = DatabaseTimeout()
        self._making = threading.Lock()  # who gives up leaves a thread behind that still works on what is remembered

    async def json(self) -> str:
        """The overview of this moment, as JSON."""
        return await self._shown(Overview.model_dump_json)

    async def overview(self) -> Overview:
        """The overview of this moment."""
        return await self._shown(lambda overview: overview)

    async def of_pools(self) -> Overview:
        """The overview of this moment without the queues that no profile names: as cheap, however many there are."""
        return await self._shown(lambda overview: overview, in_pools=True)

    async def ailing(self) -> tuple[Cause, ...]:
        """What is wrong with pools and hosts, as of the last seconds.

        Many ask for health, and often; they share one overview, and nobody waits for the next while the last is young.
        """
        age_s = asyncio.get_running_loop().time() - self._read_at_s
        if age_s > OVERVIEW_AILING_S and (self._refresh is None or self._refresh.done()):
            self._refresh = asyncio.create_task(self.of_pools(), name="health")
            self._refresh.add_done_callback(_ended)
        if age_s > AILING_MAX_S and self._refresh is not None:
            await asyncio.shield(self._refresh)
        return self._ailing

    async def health(self) -> HealthOut:
        """The installation's condition, with that of pools and hosts as of the last seconds."""
        health = self._health(await self._patience.of(self._read_health()))
        return with_reasons(health, await self.ailing())

    async def _read_health(self) -> HealthRow:
        with self._patience.reading():
            async with transaction(self._engine) as conn:
                return await read_health(conn)

    def _health(self, row: HealthRow) -> HealthOut:
        # Not this class's clock, which a test may stop: this machine's is what is judged.
        facts = InstallationFacts(known=row, process=self._process(), now_s=time.time())
        return health_of(facts).model_copy(update={"recommends_only": self._recommends_only})

    async def queues(
        self, *, pool: str | None = None, queue: str | None = None, limit: int, after: str | None = None
    ) -> QueuesOut:
        """The first ``limit`` queues after the name ``after``, or of those of ``pool``, or the one ``queue``."""
        return await self._patience.of(self._page(pool=pool, queue=queue, limit=limit, after=after))

    async def _page(self, *, pool: str | None, queue: str | None, limit: int, after: str | None) -> QueuesOut:
        async with self._turn:
            now_s = self._clock()
            await self._keep_up(now_s)
            async with self._snapshot() as conn:
                pipelines = (await read_health(conn)).pipelines
                seen = await self._read_queues(conn, pipelines, now_s=now_s, in_pools=False)
            asked = sorted(
                name
                for name, owner in seen.queues.items()
                if pool in {None, owner} and queue in {None, name} and (after is None or name > after)
            )
            page = {name: seen.queues[name] for name in asked[:limit]}
            shown, _ = await asyncio.to_thread(self._queues, replace(seen, queues=page), now_s=now_s)
            return QueuesOut(at_s=now_s, queues=shown, next=asked[limit - 1] if len(asked) > limit else None)

    async def _shown(self, show: Callable[[Overview], Shown], *, in_pools: bool = False) -> Shown:
        return await self._patience.of(self._made(show, in_pools=in_pools))

    async def _made(self, show: Callable[[Overview], Shown], *, in_pools: bool) -> Shown:
        async with self._turn:
            now_s = self._clock()
            await self._keep_up(now_s)
            seen, read_at_s = await self._read(now_s, in_pools=in_pools), asyncio.get_running_loop().time()
            shown = await asyncio.to_thread(lambda: show(self._overview(seen, now_s=now_s)))
            self._read_at_s = read_at_s
            return shown

    async def _keep_up(self, now_s: float) -> None:
        with self._patience.reading() as goes_on:
            await self._filling.keep_up(self._engine, self._recent, now_s=now_s, on_part=goes_on)

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[Connection]:
        with self._patience.reading():
            async with snapshot(self._engine) as conn:
                yield conn

    async def _read(self, now_s: float, *, in_pools: bool) -> OverviewRows:
        async with self._snapshot() as conn:
            health, hosts = await read_health(conn), await read_hosts(conn)
            noticed = noticed_workers([row.host for row in hosts])
            queues = await self._read_queues(conn, health.pipelines, now_s=now_s, in_pools=in_pools)
            pools = frozenset(each.profile.pool for each in queues.profiles)
            return taken_from(
                OverviewRows,
                queues,
                targets=await read_targets(conn),
                latest=await latest_decisions(conn),
                decisions=await list_decisions(conn, limit=SHOWN_DECISIONS),
                hosts=hosts,
                noticed=noticed,
                service_p99_s=await read_service_p99_s(conn, _draining_long(noticed, now_s=now_s), now_s=now_s),
                groups=await read_groups(conn),
                hosts_wanted=await read_hosts_wanted(conn),
                health=self._health(health),
                cuts=await list_cuts(conn, within_s=CUTS_SHOWN_S),
                poison=await list_poison(conn),
                day_attained=await self._days.of(conn, pools, now_s=now_s),
            )

    async def _read_queues(
        self, conn: Connection, pipelines: Sequence[PipelineRow], *, now_s: float, in_pools: bool
    ) -> QueueRows:
        """What is new of queues; ``in_pools`` of those that a profile names only."""
        buckets, revision = await read_buckets(conn, from_s=now_s - CACHED_S, after_revision=self._recent.revision)
        return QueueRows(
            buckets=buckets,
            revision=revision,
            queues=await read_queues(conn, in_pools=in_pools),
            patterns=await read_patterns(conn),
            samples=await read_samples(conn, in_pools=in_pools),
            # One of which pools are made has itself no queue, no worker and no state.
            profiles=[each for each in await list_profiles(conn) if each.written.pools_max is None],
            pipelines=pipelines,
            reporters=await _reporters(conn),
        )

    def _overview(self, seen: OverviewRows, *, now_s: float) -> Overview:
        queues, troubles = self._queues(seen, now_s=now_s)
        by_name = {queue.queue: queue for queue in queues}
        places = Places(seen.hosts, now_s=now_s)
        self._recent_workers.take(seen.pools_with_workers(now_s=now_s), now_s=now_s)
        pools, known = [], []
        for stored in seen.profiles:
            profile = stored.in_force_at(now_s)
            profile = profile.recommended() if self._recommends_only else profile
            counts = seen.counts(profile.pool)
            rows = seen.of_pool(
                stored,
                profile,
                self._unheld.of(
                    profile,
                    seen.samples,
                    by_name,
                    places,
                    counts,
                    helpers=seen.sharing.helpers_of(profile.pool),
                    now_s=now_s,
                ),
                have_workers_run=stored.profile.pool in self._recent_workers,
                now_s=now_s,
            )
            known.append(facts_of(rows, by_name, troubles, places, now_s=now_s))
            pools.append(pool_now(rows, known[-1], self._strategies))
        self._ailing = (*ailing_pools(known), *ailing_hosts(seen.hosts))
        return Overview(
            at_s=now_s,
            pools=pools,
            queues=queues,
            hosts=[HostOut.of(row) for row in seen.hosts],
            decisions=[DecisionOut.of(stored, self._strategies) for stored in seen.decisions],
            health=with_reasons(seen.health, self._ailing),
            hosts_wanted=[HostsWantedOut.of(each) for each in seen.hosts_wanted],
        )

    def _queues(self, seen: QueueRows, *, now_s: float) -> tuple[list[QueueOut], dict[str, Trouble]]:
        with self._making:
            self._recent.take(seen.buckets, revision=seen.revision)
            age_s = measured_age_s(self._recent, seen.pipelines, now_s=now_s)
            # What the pipeline has not come to is not known, and no zero: its figures stay those of where it is.
            self._recent.forget(now_s=now_s - (age_s or 0.0))
            return queues_now(
                seen.queues,
                seen.samples,
                [stored.profile for stored in seen.profiles],
                self._recent,
                measured_age_s=age_s,
                now_s=now_s,
                reporters=seen.reporters,
                patterns=seen.patterns,
            )


def _draining_long(noticed: Mapping[str, Sequence[NoticedWorker]], *, now_s: float) -> list[str]:
    """The pools of which it matters how long their jobs take."""
    return [
        pool
        for pool, workers in noticed.items()
        if any(each.draining_s(now_s=now_s) > OVERDUE_LEAST_S for each in workers)
    ]


async def _reporters(conn: Connection) -> Reporters:
    polling = await read_collectors(conn)
    collectors: dict[str, list[str]] = {}
    for each in polling:
        collectors.setdefault(each.connection, []).append(each.producer)
    return Reporters(sources=await read_sources(conn), collectors=collectors)


def _ended(refresh: "asyncio.Task[Overview]") -> None:
    if not refresh.cancelled():
        refresh.exception()  # raised to whoever waits for it; whoever asks next begins another one
