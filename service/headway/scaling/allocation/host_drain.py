"""How a host empties without loss of capacity: what replaces its workers runs before they leave, where there is room
for both.

What is placed elsewhere for a draining host's workers comes first; as it runs, they leave, each with its own drain. At
a pool's ceiling there is no room for both: then one leaves, and the next when what replaced it runs. Where other hosts
have no place, they leave all the same: the host is to empty.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headway.scaling.model import Assignment, Host, HostState, WorkerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """What of one pool is on hosts that drain."""

    rows: tuple[Assignment, ...]
    existing_workers: int
    """Those that run there, draining ones included, or may by now."""
    running_elsewhere: Mapping[str, int]
    """Host -> workers of the pool that run there, of hosts that do not drain."""


def leaving(hosts: Iterable[Host], rows: Iterable[Assignment]) -> dict[str, Leaving]:
    """Pool -> what of it is on hosts that drain; empty where no host does."""
    known = [host for host in hosts if host.is_known]
    draining = {host.host_id: host for host in known if host.state is HostState.DRAINING}
    if not draining:
        return {}
    assigned: dict[str, list[Assignment]] = {}
    for row in rows:
        if row.host_id in draining:
            assigned.setdefault(row.pool, []).append(row)
    seen = Counter(
        (worker.pool, host_id)
        for host_id, host in draining.items()
        for worker in host.workers
        if worker.state is not WorkerState.GONE
    )
    running: dict[str, Counter[str]] = {}
    for host in known:
        if host.host_id not in draining:
            for worker in host.workers:
                if worker.state is WorkerState.RUNNING:
                    running.setdefault(worker.pool, Counter())[host.host_id] += 1
    return {
        pool: Leaving(
            rows=tuple(sorted(assigned.get(pool, ()), key=lambda row: row.host_id)),
            existing_workers=_existing(pool, assigned.get(pool, ()), seen, draining),
            running_elsewhere=running.get(pool, {}),
        )
        for pool in {*assigned, *(pool for pool, _ in seen)}
    }


def _existing(
    pool: str, rows: Iterable[Assignment], seen: Mapping[tuple[str, str], int], host_ids: Iterable[str]
) -> int:
    assigned = {row.host_id: row.workers for row in rows}
    return sum(max(assigned.get(host_id, 0), seen.get((pool, host_id), 0)) for host_id in host_ids)


def elsewhere(target_workers: int, *, ceiling_workers: int, leaving: Leaving) -> int:
    """How many of a pool may have their place on other hosts now, so that no more than the ceiling ever exist."""
    return max(0, min(target_workers, ceiling_workers - leaving.existing_workers))


def staying(
    target_workers: int, placed: Sequence[Assignment], *, ceiling_workers: int, leaving: Leaving
) -> Iterator[Assignment]:
    """The rows of the hosts that drain: what still waits there for what replaces it.

    Args:
        target_workers: what the pool is to have in all.
        placed: its rows on other hosts.
        ceiling_workers: what the pool may never exceed.
        leaving: what is on hosts that drain.
    """
    wanted = elsewhere(target_workers, ceiling_workers=ceiling_workers, leaving=leaving)
    has_place = sum(row.workers for row in placed)
    runs = sum(min(row.workers, leaving.running_elsewhere.get(row.host_id, 0)) for row in placed)
    # What found no place elsewhere is not waited for.
    waiting = (has_place - runs) + (target_workers - wanted)
    here = sum(row.workers for row in leaving.rows)
    if wanted < target_workers and has_place == runs and here == leaving.existing_workers <= waiting:
        waiting = here - 1  # nothing is on its way, in or out: one makes room for what replaces it
    for row in leaving.rows:
        kept = min(row.base_workers, max(0, waiting))
        waiting -= kept
        if kept == row.workers:
            yield row
        elif kept:
            yield Assignment(
                pool=row.pool,
                host_id=row.host_id,
                template=row.template,
                base_workers=kept,
                restart_generation=row.restart_generation,
            )
