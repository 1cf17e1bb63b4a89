"""Starts that wait until what leaves has left: no more of a pool exist than may, and no host gives more than it has.

Placing counts the workers that there shall be. Those that leave work on until their jobs are done, beside what takes
their place. So a start waits where that would pass the ceiling of its pool, or the room of its host, with every worker
that exists. What is put off is placed again at the next evaluation.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headway.scaling.allocation.group_share import CapRooms
from headway.scaling.model import COUNTED, Assignment, Host, HostState, Worker, WorkerState
from headway.scaling.placement.host_capacity import RemainingCapacity

Where = tuple[str, str]
"""Pool and host id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """What may be done now."""

    rows: tuple[Assignment, ...]
    put_off: Mapping[str, int]
    """Pool -> workers that start only when others have left."""


def startable(
    rows: Iterable[Assignment],
    hosts: Iterable[Host],
    current: Sequence[Assignment],
    *,
    free_of: Callable[[str], int],
    held: Iterable[Assignment] = (),
    caps: CapRooms | None = None,
) -> Handover:
    """``rows`` without the starts that must wait.

    Args:
        rows: where workers are to be, on hosts that do not drain.
        hosts: all hosts.
        current: what is in place.
        free_of: pool -> how many more of it may exist now, counting all that exist. Asked only where it matters.
        held: rows of other pools that stay as they are.
        caps: what the caps of groups have left beside every worker that exists or may exist.
    """
    rows, held = tuple(rows), tuple(held)
    # Most rows are the very ones that are in place. They neither grow nor shrink, and nobody looks them up by name.
    same = {id(row) for row in current}.intersection(map(id, (*rows, *held)))
    serving = {host.host_id: host for host in hosts if host.is_known and host.state is not HostState.DRAINING}
    before = {(row.pool, row.host_id): row for row in current if id(row) not in same and row.host_id in serving}
    grown = [row for row in rows if id(row) not in same and row.workers > _workers(before.get((row.pool, row.host_id)))]
    if not grown:
        return Handover(rows=rows, put_off={})
    after = {(row.pool, row.host_id): row.workers for row in (*rows, *held) if id(row) not in same}
    off = _put_off(grown, before, after, current, serving, free_of, caps)
    if not off:
        return Handover(rows=rows, put_off={})
    by_pool: Counter[str] = Counter()
    for (pool, _), workers in off.items():
        by_pool[pool] += workers
    return Handover(rows=tuple(_without(rows, off)), put_off=dict(by_pool))


def _put_off(
    grown: Sequence[Assignment],
    before: Mapping[Where, Assignment],
    after: Mapping[Where, int],
    current: Iterable[Assignment],
    hosts: Mapping[str, Host],
    free_of: Callable[[str], int],
    caps: CapRooms | None,
) -> Counter[Where]:
    """Where how many of the starts must wait; ``before`` and ``after`` need hold no row that stays as it is."""
    growing = {row.pool for row in grown}
    leavers = Counter(
        {where: row.workers - after.get(where, 0) for where, row in before.items() if row.workers > after.get(where, 0)}
    )
    moving = {pool for pool, _ in leavers}
    draining = {worker.pool for host in hosts.values() for worker in host.workers if _is_leaving(worker)}
    # Where nothing leaves, the target itself keeps to the ceiling.
    free = {pool: free_of(pool) for pool in growing & (moving | draining)}
    rooms = _rooms(grown, current, leavers, hosts)
    off: Counter[Where] = Counter()
    for row in grown:
        where = row.pool, row.host_id
        workers = row.workers - _workers(before.get(where))
        allowed = min(workers, max(0, free.get(row.pool, workers)))
        room = rooms.get(row.host_id)
        if room is not None:
            allowed = room.keep(row.template, allowed)
        if caps is not None:
            allowed = caps.keep(row.pool, allowed)
        if row.pool in free:
            free[row.pool] -= allowed
        if allowed < workers:
            off[where] = workers - allowed
    return off


def _rooms(
    grown: Iterable[Assignment],
    current: Iterable[Assignment],
    leavers: Mapping[Where, int],
    hosts: Mapping[str, Host],
) -> dict[str, RemainingCapacity]:
    """What hosts that get something new have left beside all that exists there, of those from which anything leaves."""
    assigned: dict[str, list[Assignment]] = {}
    leaving_from = {host_id for _, host_id in leavers}
    for host_id in {row.host_id for row in grown}:
        if host_id in leaving_from or any(_is_leaving(worker) for worker in hosts[host_id].workers):
            assigned[host_id] = []
    for row in current:
        if row.host_id in assigned:
            assigned[row.host_id].append(row)
    return {host_id: _room(hosts[host_id], rows, leavers) for host_id, rows in assigned.items()}


def _room(host: Host, assigned: Iterable[Assignment], leavers: Mapping[Where, int]) -> RemainingCapacity:
    """What is left of ``host`` beside what it is assigned and what drains.

    Of what is to leave now, what has no job is gone in a moment, and what has not been seen may never come.
    """
    at_work = Counter(worker.pool for worker in host.workers if worker.state in COUNTED and worker.is_busy is not False)
    there: Counter[str] = Counter(worker.template for worker in host.workers if _is_leaving(worker))
    for row in assigned:
        leave = leavers.get((row.pool, row.host_id), 0)
        stays = row.workers - leave
        if leave:
            stays = max(stays, min(row.workers, at_work[row.pool]))
        there[row.template] += stays
    room = RemainingCapacity(host)
    for template, workers in there.items():
        room.take(template, workers)
    return room


def _is_leaving(worker: Worker) -> bool:
    return worker.state is WorkerState.DRAINING


def _without(rows: Iterable[Assignment], off: Mapping[Where, int]) -> Iterator[Assignment]:
    """``rows`` less the workers that are ``off``; burst workers wait first."""
    for row in rows:
        workers = row.workers - off.get((row.pool, row.host_id), 0)
        if workers == row.workers:
            yield row
        elif workers > 0:
            burst = max(0, row.burst_workers - (row.workers - workers))
            yield replace(row, base_workers=workers - burst, burst_workers=burst)


def _workers(row: Assignment | None) -> int:
    return 0 if row is None else row.workers
