"""What queues and pools did over 1, 5, 15 and 60 minutes, and each job class of a queue over an hour."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from headway.control.http.dependencies import PoolPath, QueuePath, WithContext, operations
from headway.control.http.problems import declared
from headway.control.http.schemas.queue_names import IN_PATH
from headway.control.http.schemas.schema_base import Given
from headway.errors import Invalid, NotFound
from headway.scaling.measure import BUCKET_S, BucketRow
from headway.scaling.metrics.unreported import unreported
from headway.scaling.metrics.windows import WINDOWS_S, RunningTime, WindowMetrics, window_metrics
from headway.scaling.model import Worker, WorkerState
from headway.store.engine import Connection, transaction
from headway.store.hosts.hosts import list_workers
from headway.store.hosts.template_counts import read_template_facts, reported_workers
from headway.store.metrics.windows import WindowRows, measured_until_s, read_window_rows
from headway.store.overview import TargetRow, read_queues, read_samples, read_target_history
from headway.store.pools.profiles import get_profile, is_shared

WINDOW_FINE_S = 300.0  # windows so long or shorter are of buckets of 5 s, longer ones of minutes
HOUR_S = max(WINDOWS_S)
WORKERS_MAX = 2_000  # of a pool; of more, what their jobs have run so far is of the first

router = operations(prefix="/v1")


class JobClassWindow(Given):
    """The last hour of one job class."""

    job_class: str
    window: WindowMetrics


class WindowsOut(Given):
    """Windows that end at `until_s`, the shortest first."""

    until_s: float
    """Now, or where the pipeline has come to, if that is earlier: of what came since, nothing is known."""
    running_slots: float | None
    """What the pool's workers can run at once, at present; null where no host says how many slots they have, and where
    workers of several pools take from its queues, or its own from those of others."""
    busy_slots: int | None
    """Of these, the ones that have a job now, as workers or their broker last said; null as `running_slots`."""
    unknown_workers: int | None
    """Workers of which nobody knows whether they have a job: they are in no count of busy slots."""
    windows: list[WindowMetrics]
    job_classes: list[JobClassWindow]


@router.get(
    f"/queues/{IN_PATH}/metrics",
    summary="Read a queue's windows",
    tags=["queues"],
    responses=declared(Invalid, NotFound),
)
async def get_queue_metrics(queue: QueuePath, context: WithContext) -> WindowsOut:
    """What a queue did over 1, 5, 15 and 60 minutes, and its job classes over the last.

    Counts and rates of events that nobody reports of it are null.
    Utilization is known of a queue that has its pool for itself.
    """
    now_s = context.clock()
    async with transaction(context.engine) as conn:
        queues = await read_queues(conn)
        if queue not in queues:
            raise NotFound(f"queue {queue!r}: not seen, and no profile names it")
        pool = queues[queue]
        has_pool_alone = pool is not None and sum(owner == pool for owner in queues.values()) == 1
        slots = await _slots(conn, pool, now_s=now_s) if pool is not None and has_pool_alone else None
        workers = await _workers(conn, pool) if pool is not None and has_pool_alone else ()
        rows = await _rows(conn, [queue], now_s=now_s)
        samples = await read_samples(conn, queues=[queue])
    return _windows(rows, slots, workers, unreported(rows.minutes, samples, [queue]))


@router.get(
    "/pools/{pool}/metrics", summary="Read a pool's windows", tags=["queues"], responses=declared(Invalid, NotFound)
)
async def get_pool_metrics(pool: PoolPath, context: WithContext) -> WindowsOut:
    """What all queues of a pool did together over 1, 5, 15 and 60 minutes, and how busy that kept its workers.

    Counts and rates of events that are not reported of one of them are null.
    """
    now_s = context.clock()
    async with transaction(context.engine) as conn:
        queues = (await get_profile(conn, pool)).profile.queues
        slots = await _slots(conn, pool, now_s=now_s)
        workers = await _workers(conn, pool)
        rows = await _rows(conn, queues, now_s=now_s)
        samples = await read_samples(conn, queues=queues)
    return _windows(rows, slots, workers, unreported(rows.minutes, samples, queues))


class _Slots:
    """How many slots of a pool ran, and when."""

    def __init__(self, history: Sequence[TargetRow], slots_per_worker: int, running_workers: int) -> None:
        self._history = history
        self._slots_per_worker = slots_per_worker
        self.now = float(running_workers * slots_per_worker)

    def mean(self, *, from_s: float, until_s: float) -> float:
        """On average. A decision records what ran then, which holds until the next; they repeat every 5 minutes."""
        changes = [(row.at_s, row.running_workers) for row in self._history]
        if not changes:
            return self.now
        ends = [at_s for at_s, _ in changes[1:]] + [until_s]
        # What ran before the first that is known is taken for the same.
        starts = [from_s] + [at_s for at_s, _ in changes[1:]]
        worker_s = sum(
            workers * max(0.0, min(end_s, until_s) - max(start_s, from_s))
            for (_, workers), start_s, end_s in zip(changes, starts, ends, strict=True)
        )
        return worker_s / (until_s - from_s) * self._slots_per_worker


async def _slots(conn: Connection, pool: str, *, now_s: float) -> _Slots | None:
    """The slots of a pool; ``None`` where no host has its template, and where its jobs may run in slots of others, or
    others' in its own: nothing counts which.
    """
    profile = (await get_profile(conn, pool)).profile
    facts = (await read_template_facts(conn, [profile.template])).get(profile.template)
    if facts is None or await is_shared(conn, profile):
        return None
    history = await read_target_history(conn, pool=pool, from_s=now_s - HOUR_S)
    running_workers, _ = await reported_workers(conn, pool)
    return _Slots(history, facts.slots, running_workers)


async def _workers(conn: Connection, pool: str) -> Sequence[Worker]:
    """The workers of ``pool`` that run or drain, on hosts that report."""
    found = await list_workers(conn, pool=pool, limit=WORKERS_MAX)
    at_work = {WorkerState.RUNNING, WorkerState.DRAINING}
    return [each.worker for each in found if each.is_reachable and each.worker.state in at_work]


def _running(workers: Sequence[Worker]) -> Iterator[RunningTime]:
    """How long their jobs have run so far, where that is known."""
    for worker in workers:
        if not worker.is_busy or worker.activity_known_at_s is None:
            continue
        known_at_s, unnamed_jobs = worker.activity_known_at_s, max(1, worker.running_jobs or 0) - len(worker.running)
        yield from (RunningTime(started_at_s=job.started_at_s, known_at_s=known_at_s) for job in worker.running)
        if unnamed_jobs > 0 and worker.busy_since_s is not None:
            yield RunningTime(started_at_s=worker.busy_since_s, known_at_s=known_at_s, jobs=unnamed_jobs)


async def _rows(conn: Connection, queues: Sequence[str], *, now_s: float) -> WindowRows:
    measured_s = await measured_until_s(conn)
    until_s = now_s if measured_s is None else min(now_s, measured_s)
    return await read_window_rows(
        conn, queues=queues, until_s=until_s, from_s=until_s - HOUR_S, fine_from_s=until_s - WINDOW_FINE_S
    )


def _windows(rows: WindowRows, slots: _Slots | None, workers: Sequence[Worker], unknown: frozenset[str]) -> WindowsOut:
    until_s, since_s = rows.until_s, rows.since_s
    running = () if slots is None else tuple(_running(workers))  # of a pool that shares queues, nothing says whose
    classes: dict[str, list[BucketRow]] = defaultdict(list)
    for row in rows.classes:
        classes[row.job_class or ""].append(row)
    return WindowsOut(
        until_s=until_s,
        running_slots=None if slots is None else slots.now,
        busy_slots=None if slots is None else sum(max(1, each.running_jobs or 0) for each in workers if each.is_busy),
        unknown_workers=None if slots is None else sum(each.is_busy is None for each in workers),
        windows=[
            window_metrics(
                rows.buckets if window_s <= WINDOW_FINE_S else rows.minutes,
                until_s=until_s,
                window_s=window_s,
                since_s=since_s,
                running_slots=None
                if slots is None
                else slots.mean(
                    from_s=max(until_s - window_s, min(since_s or 0.0, until_s - BUCKET_S)), until_s=until_s
                ),
                running=running,
                unknown=unknown,
            )
            for window_s in WINDOWS_S
        ],
        job_classes=[
            JobClassWindow(
                job_class=name,
                window=window_metrics(
                    classes[name], until_s=until_s, window_s=HOUR_S, since_s=since_s, unknown=unknown
                ),
            )
            for name in sorted(classes)
        ],
    )
