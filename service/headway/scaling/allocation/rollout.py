"""How a restart goes from host to host: the first one alone, then a tenth of them at a time.

On a host the agent replaces one worker after the other, and lets an old one go when its replacement runs. So a pool
never has fewer workers than it should, and new ones that do not come up stop the restart where it is. In an exclusive
pool one goes before its replacement comes: it is one short meanwhile, and so one host goes at a time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headway.scaling.model import COUNTED, Assignment, Host, HostState, WorkerState

ROLLOUT_HOSTS_FRACTION = 0.1  # at a time, once the first host is through


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a pool's restart is, by what hosts reported last."""

    renewed_workers: int = 0
    """Running, and started since."""
    outdated_workers: int = 0
    awaited_workers: int = 0
    """Of an exclusive pool: those whose place is empty, for there an old one ends before its replacement starts."""
    silent_workers: int = 0
    """Outdated by their last report, on hosts that are unreachable: they are replaced once these are back."""


def rolled(rows: Sequence[Assignment], hosts: Sequence[Host], generations: Mapping[str, int]) -> tuple[Assignment, ...]:
    """``rows`` with the generation that each host is to bring its workers to now.

    Args:
        rows: what each host is to run, at most one a pool and host.
        hosts: all hosts.
        generations: pool -> the restart generation wanted.
    """
    behind = {row.pool for row in rows if row.restart_generation < generations.get(row.pool, 0)} if generations else ()
    if not behind:
        return tuple(rows)
    by_id = {host.host_id: host for host in hosts if host.is_known and host.state is not HostState.DRAINING}
    raised = {
        (row.pool, row.host_id): generations[pool]
        for pool in behind
        for row in _turns([row for row in rows if row.pool == pool], by_id, generations[pool])
    }
    return tuple(
        replace(row, restart_generation=raised[row.pool, row.host_id]) if (row.pool, row.host_id) in raised else row
        for row in rows
    )


def _turns(rows: Sequence[Assignment], hosts: Mapping[str, Host], generation: int) -> list[Assignment]:
    """The rows of one pool whose turn it is."""
    there = sorted((row for row in rows if row.host_id in hosts), key=lambda row: row.host_id)
    progress = {row.host_id: progress_of([hosts[row.host_id]], [row], row.pool, generation) for row in there}
    behind = [row for row in there if row.restart_generation < generation]
    nothing_to_do = [row for row in behind if not progress[row.host_id].outdated_workers]
    waiting = [row for row in behind if progress[row.host_id].outdated_workers]
    reported = [progress[row.host_id] for row in there if row.restart_generation >= generation]
    under_way = sum(each.outdated_workers > 0 or each.awaited_workers > 0 for each in reported)
    is_any_through = any(each.renewed_workers and not each.outdated_workers for each in reported)
    is_exclusive = any(row.is_exclusive for row in there)
    at_once = max(1, int(len(there) * ROLLOUT_HOSTS_FRACTION)) if is_any_through and not is_exclusive else 1
    return [*nothing_to_do, *waiting[: max(0, at_once - under_way)]]


def progress_of(hosts: Sequence[Host], rows: Iterable[Assignment], pool: str, generation: int) -> Progress:
    """How far the restart of ``pool`` to ``generation`` is on ``hosts``, which are to run ``rows``."""
    known = {host.host_id for host in hosts if host.is_known}
    counted = [(host, each) for host in hosts for each in host.workers if each.pool == pool and each.state in COUNTED]
    there = [worker for host, worker in counted if host.is_known]
    renewed = sum(worker.restart_generation >= generation and worker.state is WorkerState.RUNNING for worker in there)
    outdated = sum(worker.restart_generation < generation for worker in there)
    wanted = sum(row.workers for row in rows if row.pool == pool and row.is_exclusive and row.host_id in known)
    return Progress(
        renewed_workers=renewed,
        outdated_workers=outdated,
        awaited_workers=max(0, wanted - renewed - outdated),
        silent_workers=sum(worker.restart_generation < generation for host, worker in counted if not host.is_known),
    )
