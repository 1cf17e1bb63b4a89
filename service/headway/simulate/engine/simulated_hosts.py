"""The hosts of a rehearsal: what room they have, which of them are gone for a while, and who gets how much of them.

Room is shared and workers are placed by the very function of the live loop: pools are allocated beside each other.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from headway.scaling.allocation.allocate import allocate
from headway.scaling.group import Group
from headway.scaling.model import Assignment, Host, WorkerState
from headway.scaling.model import Worker as Reported
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.profile import Profile
from headway.simulate.engine.faults import HostOutage
from headway.simulate.engine.pool_lane import Lane
from headway.simulate.engine.simulated_pool import RunningPool
from headway.simulate.engine.simulated_workers import Crew, Worker
from headway.simulate.engine.unplaced import asked_workers, is_in_pieces, within_caps

KINDS = (False, True)  # base, burst


class Hosts:
    """Where the workers of all pools are. Workers that are leaving keep their room until they are gone."""

    def __init__(self, hosts: Sequence[Host], outages: Sequence[HostOutage], groups: Sequence[Group] = ()) -> None:
        self._hosts = tuple(hosts)
        self._outages = tuple(outages)
        self._groups = tuple(groups)
        self._gone: frozenset[str] = frozenset()
        self._rooms = HostCapacities(self._hosts)
        """Empty ones, of the hosts that are not gone."""

    def fail(self, pools: Iterable[RunningPool], now_s: float) -> None:
        """Let everything die that is on a host that went down since the last call."""
        gone = frozenset(outage.host_id for outage in self._outages if outage.stretch.covers(now_s))
        if gone == self._gone:
            return
        for pool in pools:
            for worker in tuple(pool.crew.alive()):
                if worker.host_id in gone - self._gone:
                    pool.crew.deaths += 1
                    pool.lose(worker, now_s)
        self._gone = gone
        self._rooms = HostCapacities([host for host in self._hosts if host.host_id not in gone])

    def capacity_workers(self, lane: Lane) -> int:
        """Workers of one pool that the hosts can hold, present ones included."""
        return self._rooms.capacity(self._rooms.kind(lane.profile.template, lane.profile.placement.labels)) or 0

    def apply(self, lanes: Sequence[Lane], now_s: float) -> None:
        """Allocate what the pools want beside each other, and let workers start and leave accordingly."""
        reported = _by_host(lanes)
        hosts = [
            replace(host, workers=tuple(reported.get(host.host_id, ())), is_known=host.host_id not in self._gone)
            for host in self._hosts
        ]
        rows = [row for lane in lanes for row in self._rows(lane)]
        alone = [lane.outcome(now_s) for lane in lanes]
        outcomes, placed = allocate(alone, hosts, rows, groups=self._groups)
        left = _Left(hosts, placed)
        for lane, before, outcome in zip(lanes, alone, outcomes, strict=True):
            lane.take(outcome)
            lane.unplaced.take(
                now_s,
                asked_workers=min(
                    within_caps(asked_workers(before.decision), outcome.decision), lane.pool.plan.workers_max
                ),
                alone=before.decision,
                allocated=outcome.decision,
                is_in_pieces=partial(left.is_in_pieces, lane.profile),
            )
        self._change(lanes, rows, placed, now_s)

    def _change(
        self, lanes: Sequence[Lane], before: Iterable[Assignment], after: Iterable[Assignment], now_s: float
    ) -> None:
        """Turn the rows ``before`` into those ``after``."""
        old, new = ({(row.pool, row.host_id): row for row in rows} for rows in (before, after))
        moves = [
            (lane, host, is_burst, _part(new, where, is_burst=is_burst) - _part(old, where, is_burst=is_burst))
            for lane in lanes
            for host in self._hosts
            for where in ((lane.profile.pool, host.host_id),)
            for is_burst in KINDS
        ]
        for lane, host, is_burst, more in sorted(moves, key=lambda move: move[-1]):  # who leaves makes room
            lane.pool.crew.change_on(host.host_id, now_s, more=more, is_burst=is_burst)

    def _rows(self, lane: Lane) -> Iterator[Assignment]:
        """Where the pool's present workers are."""
        counts: dict[tuple[str, bool], int] = {}
        for worker in lane.pool.crew.present():
            counts[worker.host_id, worker.is_burst] = counts.get((worker.host_id, worker.is_burst), 0) + 1
        for host in self._hosts:
            base, burst = (counts.get((host.host_id, is_burst), 0) for is_burst in KINDS)
            if base or burst:
                yield Assignment(
                    pool=lane.profile.pool,
                    host_id=host.host_id,
                    template=lane.profile.template,
                    base_workers=base,
                    burst_workers=burst,
                )


class _Left:
    """What the hosts have left beside what is placed; worked out when somebody asks, as where room is short."""

    def __init__(self, hosts: Sequence[Host], placed: Sequence[Assignment]) -> None:
        self._hosts = hosts
        self._placed = placed
        self._rooms: HostCapacities | None = None

    def is_in_pieces(self, profile: Profile) -> bool:
        """Whether there is room for one more worker of the pool, but in no one place."""
        self._rooms = self._rooms or HostCapacities(self._hosts, held=self._placed)
        return is_in_pieces(self._rooms, self._rooms.kind(profile.template, profile.placement.labels))


def _by_host(lanes: Iterable[Lane]) -> Mapping[str, Sequence[Reported]]:
    """Host id -> the workers there, in the order of their pools."""
    found: dict[str, list[Reported]] = {}
    for lane in lanes:
        crew = lane.pool.crew
        for number, worker in enumerate(crew.alive()):
            reported = Reported(
                worker_id=f"{lane.profile.pool}/{number}",
                pool=lane.profile.pool,
                template=lane.profile.template,
                pid=0,
                state=_state(crew, worker),
                started_at_s=worker.spawned_s,
                is_burst=worker.is_burst,
                is_busy=worker.free_slots < crew.slots,
            )
            found.setdefault(worker.host_id, []).append(reported)
    return found


def _state(crew: Crew, worker: Worker) -> WorkerState:
    if worker in crew.running:
        return WorkerState.RUNNING
    return WorkerState.STARTING if worker in crew.starting else WorkerState.DRAINING


def _part(rows: dict[tuple[str, str], Assignment], where: tuple[str, str], *, is_burst: bool) -> int:
    row = rows.get(where)
    if row is None:
        return 0
    return row.burst_workers if is_burst else row.base_workers
