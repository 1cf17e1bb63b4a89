"""The hosts of a rehearsal: what room they have, and which of them are gone for a while."""

from collections.abc import Sequence
from dataclasses import replace

from headway.scaling.model import Assignment, Host, Worker, WorkerState
from headway.scaling.placement import PoolTarget, place
from headway.simulate.faults import HostOutage
from headway.simulate.pool import RunningPool

KINDS = (False, True)  # base, burst


class Hosts:
    """Where the workers of all pools are. Workers that are leaving keep their room until they are gone."""

    def __init__(self, hosts: Sequence[Host], outages: Sequence[HostOutage]) -> None:
        self._hosts = tuple(hosts)
        self._outages = tuple(outages)
        self._gone: frozenset[str] = frozenset()

    def fail(self, pools: Sequence[RunningPool], now_s: float) -> None:
        """Let everything die that is on a host that went down since the last call."""
        gone = frozenset(outage.host_id for outage in self._outages if outage.stretch.covers(now_s))
        for pool in pools:
            crew = pool.crew
            for worker in (*crew.starting, *crew.running, *crew.leaving):
                if worker.host_id in gone - self._gone:
                    crew.deaths += 1
                    pool.lose(worker, now_s)
        self._gone = gone

    def apply(self, pools: Sequence[RunningPool], wanted: Sequence[tuple[int, int]], now_s: float) -> None:
        """Place the pools' targets, workers and how many of them burst, and let workers start and leave accordingly."""
        targets = [
            PoolTarget(
                pool=pool.plan.name,
                template=pool.plan.template,
                workers=workers,
                burst_workers=min(burst_workers, workers),
                priority=pool.plan.priority,
            )
            for pool, (workers, burst_workers) in zip(pools, wanted, strict=True)
        ]
        if self._settle(pools, targets, now_s):
            # What was just told to leave may be busy and keep its room for a while.
            self._settle(pools, targets, now_s)

    def _settle(self, pools: Sequence[RunningPool], targets: Sequence[PoolTarget], now_s: float) -> bool:
        """Let go what is too much, or where nothing is, let start what is missing. Returns whether any was let go."""
        current = [row for pool in pools for row in self._rows(pool)]
        held = [row for pool in pools for row in self._leaving(pool)]
        placed = {(row.pool, row.host_id): row for row in place(targets, self._seen(pools), current, held=held)}
        changes: list[tuple[RunningPool, str, bool, int]] = []
        is_less = False
        for pool, row in zip((pool for pool in pools for _ in self._hosts), current, strict=True):
            to_be = placed.get((row.pool, row.host_id), replace(row, base_workers=0, burst_workers=0))
            for is_burst in KINDS:
                there, wanted = _part(row, is_burst=is_burst), _part(to_be, is_burst=is_burst)
                is_less |= wanted < there
                if wanted != there:
                    changes.append((pool, row.host_id, is_burst, wanted - there))
        for pool, host_id, is_burst, more in changes:
            if more < 0 or not is_less:
                pool.crew.change_on(host_id, now_s, more=more, is_burst=is_burst)
        return is_less

    def _rows(self, pool: RunningPool) -> list[Assignment]:
        """Where the pool's present workers are."""
        return [
            Assignment(
                pool=pool.plan.name,
                host_id=host.host_id,
                template=pool.plan.template,
                base_workers=len(pool.crew.of_host(host.host_id, is_burst=False)),
                burst_workers=len(pool.crew.of_host(host.host_id, is_burst=True)),
            )
            for host in self._hosts
        ]

    def _leaving(self, pool: RunningPool) -> list[Assignment]:
        counts: dict[str, int] = {}
        for worker in pool.crew.leaving:
            counts[worker.host_id] = counts.get(worker.host_id, 0) + 1
        return [
            Assignment(
                pool=f"{pool.plan.name}, leaving", host_id=host_id, template=pool.plan.template, base_workers=count
            )
            for host_id, count in counts.items()
        ]

    def _seen(self, pools: Sequence[RunningPool]) -> list[Host]:
        """The hosts with their idle workers, which leave first."""
        idle: dict[str, list[Worker]] = {}
        for pool in pools:
            for number, worker in enumerate(pool.crew.available):
                if worker.free_slots == pool.crew.slots:
                    row = Worker(
                        worker_id=f"{pool.plan.name}/{number}",
                        pool=pool.plan.name,
                        template=pool.plan.template,
                        pid=0,
                        state=WorkerState.RUNNING,
                        started_at_s=worker.spawned_s,
                        is_burst=worker.is_burst,
                        is_busy=False,
                    )
                    idle.setdefault(worker.host_id, []).append(row)
        return [
            replace(host, workers=tuple(idle.get(host.host_id, ())), is_known=host.host_id not in self._gone)
            for host in self._hosts
        ]


def _part(row: Assignment, *, is_burst: bool) -> int:
    return row.burst_workers if is_burst else row.base_workers
