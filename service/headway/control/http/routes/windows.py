"""What queues and pools did over 1, 5, 15 and 60 minutes, and each job class of a queue over an hour."""

from collections import defaultdict
from collections.abc import Sequence

from headway.control.http.dependencies import PoolPath, QueuePath, WithContext, operations
from headway.control.http.problems import declared
from headway.control.http.schemas.queue_names import IN_PATH
from headway.control.http.schemas.schema_base import Given
from headway.errors import Invalid, NotFound
from headway.scaling.measure import BucketRow
from headway.scaling.metrics.unreported import unreported
from headway.scaling.metrics.windows import WINDOWS_S, WindowMetrics, window_metrics
from headway.store.engine import Connection, transaction
from headway.store.hosts.template_counts import read_template_facts, reported_workers
from headway.store.metrics.windows import WindowRows, measured_until_s, read_window_rows
from headway.store.overview import TargetRow, read_queues, read_samples, read_target_history
from headway.store.pools.profiles import get_profile

WINDOW_FINE_S = 300.0  # windows so long or shorter are of buckets of 5 s, longer ones of minutes
HOUR_S = max(WINDOWS_S)

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
    """What the pool's workers can run at once, at present; null where no host says how many slots they have."""
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
        rows = await _rows(conn, [queue], now_s=now_s)
        samples = await read_samples(conn, queues=[queue])
    return _windows(rows, slots, unreported(rows.minutes, samples, [queue]))


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
        rows = await _rows(conn, queues, now_s=now_s)
        samples = await read_samples(conn, queues=queues)
    return _windows(rows, slots, unreported(rows.minutes, samples, queues))


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
    template = (await get_profile(conn, pool)).profile.template
    facts = (await read_template_facts(conn, [template])).get(template)
    if facts is None:
        return None
    history = await read_target_history(conn, pool=pool, from_s=now_s - HOUR_S)
    running_workers, _ = await reported_workers(conn, pool)
    return _Slots(history, facts.slots, running_workers)


async def _rows(conn: Connection, queues: Sequence[str], *, now_s: float) -> WindowRows:
    measured_s = await measured_until_s(conn)
    until_s = now_s if measured_s is None else min(now_s, measured_s)
    return await read_window_rows(
        conn, queues=queues, until_s=until_s, from_s=until_s - HOUR_S, fine_from_s=until_s - WINDOW_FINE_S
    )


def _windows(rows: WindowRows, slots: _Slots | None, unknown: frozenset[str]) -> WindowsOut:
    until_s = rows.until_s
    classes: dict[str, list[BucketRow]] = defaultdict(list)
    for row in rows.classes:
        classes[row.job_class or ""].append(row)
    return WindowsOut(
        until_s=until_s,
        running_slots=None if slots is None else slots.now,
        windows=[
            window_metrics(
                rows.buckets if window_s <= WINDOW_FINE_S else rows.minutes,
                until_s=until_s,
                window_s=window_s,
                running_slots=None if slots is None else slots.mean(from_s=until_s - window_s, until_s=until_s),
                unknown=unknown,
            )
            for window_s in WINDOWS_S
        ],
        job_classes=[
            JobClassWindow(
                job_class=name,
                window=window_metrics(classes[name], until_s=until_s, window_s=HOUR_S, unknown=unknown),
            )
            for name in sorted(classes)
        ],
    )
