"""What ``reconcile`` must know beside the orders to replace this host's workers: changed, worn, and how much room."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from headway.agent.config.host_file import HostFile
from headway.agent.workers.crash_backoff import CRASH_WITHIN_S
from headway.scaling.model import COUNTED, Assignment, HostCapacity, Template, Worker
from headway.scaling.reconcile import Drain, Upkeep, reconcile


def upkeep(
    host_file: HostFile,
    *,
    workers: Iterable[Worker],
    templates: Mapping[str, Template],
    capacity: HostCapacity,
    free_gpus: int,
    now_s: float,
) -> Upkeep:
    """What makes workers outdated here, and of which templates one more than wanted has no room.

    Args:
        host_file: how workers are started now.
        workers: every worker of the host.
        templates: what one worker of each takes.
        capacity: what the host can give to workers.
        free_gpus: GPUs that no worker has.
        now_s: on the clock of their starts.
    """
    workers = tuple(workers)
    left_bytes = capacity.memory_bytes - sum(
        worker.memory_bytes or templates[worker.template].memory_bytes
        for worker in workers
        if worker.pid and worker.template in templates
    )
    return Upkeep(
        template_hashes={name: template.content_hash for name, template in host_file.templates.items()},
        unproven={worker.worker_id for worker in workers if now_s - worker.started_at_s < CRASH_WITHIN_S},
        cramped={
            name
            for name, template in templates.items()
            if template.gpus > free_gpus or template.memory_bytes > left_bytes
        },
    )


def surplus(workers: Iterable[Worker], assignments: Iterable[Assignment]) -> tuple[Drain, ...]:
    """What ends where nothing can be started: more than is wanted, and nothing for the sake of a replacement."""
    rows = {row.pool: row for row in assignments}
    as_wanted = (
        replace(worker, template=row.template, restart_generation=row.restart_generation)
        if (row := rows.get(worker.pool)) is not None
        else worker
        for worker in workers
    )
    return tuple(action for action in reconcile(as_wanted, rows.values()) if isinstance(action, Drain))


def held_back(
    assignments: Iterable[Assignment],
    doubtful: Collection[str],
    workers: Iterable[Worker],
    *,
    is_perhaps_forgotten: bool = False,
) -> tuple[Assignment, ...]:
    """The assignments with no more than runs of what is not sure: of that nothing is started, and nothing is ended.

    Args:
        assignments: what the host is to run.
        doubtful: templates of which nobody knows whether their workers were replaced elsewhere.
        workers: every worker of the host.
        is_perhaps_forgotten: nobody stands by the orders yet. Of an exclusive pool two would be worse than none.
    """
    rows = tuple(assignments)
    unsure = {row.pool for row in rows if row.template in doubtful or (is_perhaps_forgotten and row.is_exclusive)}
    if not unsure:
        return rows
    there = Counter((worker.pool, worker.is_burst) for worker in workers if worker.state in COUNTED)
    return tuple(
        replace(
            row,
            base_workers=min(row.base_workers, there[row.pool, False]),
            burst_workers=min(row.burst_workers, there[row.pool, True]),
        )
        if row.pool in unsure
        else row
        for row in rows
    )
