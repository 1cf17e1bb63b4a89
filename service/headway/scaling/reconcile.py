"""What a host must start and drain so that it runs what it was assigned. Doing it and asking again yields nothing more.

Draining workers do not count: they are on their way out. A worker that backs off counts: its place is taken, and it is
started again when its pause is over.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headway.scaling.model import Assignment, Worker, WorkerState

COUNTED = frozenset({WorkerState.STARTING, WorkerState.RUNNING, WorkerState.BACKING_OFF})
SURGE_WORKERS = 1  # how many more than wanted run while outdated workers are replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start one worker."""

    pool: str
    template: str
    is_burst: bool = False
    restart_generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Ask one worker to finish what it is doing and end."""

    worker_id: str


Action = Start | Drain


def reconcile(
    workers: Iterable[Worker], assignments: Iterable[Assignment], *, spent: Mapping[str, int] | None = None
) -> tuple[Action, ...]:
    """The actions that turn ``workers`` of one host into its ``assignments``.

    Workers of a pool without a row are drained. Where some must go, those without a job go first, then those whose job
    is the youngest. Workers of an older restart generation or another template are replaced one by one: one goes when
    its replacement runs.

    Args:
        workers: every worker of the host.
        assignments: all that the host is to run, at most one row a pool.
        spent: pool -> burst workers that ended by themselves under this revision; their places stay empty.
    """
    wanted = {row.pool: row for row in assignments}
    present: dict[tuple[str, bool], list[Worker]] = {}
    for worker in workers:
        if worker.state in COUNTED:
            present.setdefault((worker.pool, worker.is_burst), []).append(worker)
    places = set(present) | {(pool, is_burst) for pool in wanted for is_burst in (False, True)}
    actions: list[Action] = []
    for pool, is_burst in sorted(places):
        row, there = wanted.get(pool), present.get((pool, is_burst), [])
        if row is None:
            actions += _drains(there, len(there))
        else:
            count = max(0, row.burst_workers - (spent or {}).get(pool, 0)) if is_burst else row.base_workers
            actions += _of_one_place(there, row, count=count, is_burst=is_burst)
    return tuple(actions)


def _of_one_place(there: Sequence[Worker], row: Assignment, *, count: int, is_burst: bool) -> list[Action]:
    """What makes ``there`` into ``count`` workers of ``row``."""
    current = [worker for worker in there if _is_current(worker, row)]
    outdated = [worker for worker in there if not _is_current(worker, row)]
    running = sum(worker.state is WorkerState.RUNNING for worker in current)
    # An outdated worker holds its place until a replacement runs. What is too much of the current ones goes anyway.
    kept = min(len(outdated), max(0, count - running))
    missing = count - len(current)
    room = missing - kept + (SURGE_WORKERS if kept else 0)
    start = Start(pool=row.pool, template=row.template, is_burst=is_burst, restart_generation=row.restart_generation)
    return [
        *_drains(outdated, len(outdated) - kept),
        *_drains(current, -missing),
        *[start] * min(missing, room),
    ]


def _is_current(worker: Worker, row: Assignment) -> bool:
    return worker.template == row.template and worker.restart_generation >= row.restart_generation


def _drains(workers: Sequence[Worker], count: int) -> list[Action]:
    return [Drain(worker_id=worker.worker_id) for worker in sorted(workers, key=_cost_of_leaving)[: max(0, count)]]


def _cost_of_leaving(worker: Worker) -> tuple[int, float, float, str]:
    """Orders workers by what is lost when they go. Whether one is busy may be not known: it is treated as busy."""
    if worker.state is WorkerState.BACKING_OFF:
        rank = 0
    elif worker.state is WorkerState.STARTING and not worker.is_busy:
        rank = 1  # it has hardly had the time to take a job, and serves nobody yet
    elif worker.is_busy is False:
        rank = 2
    else:
        rank = 3
    busy_since_s = worker.started_at_s if worker.busy_since_s is None else worker.busy_since_s
    return rank, -busy_since_s, -worker.started_at_s, worker.worker_id
