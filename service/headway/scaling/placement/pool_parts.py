"""The parts of pools that are placed, and which of their workers are, or may be, busy.

Base and burst workers of a pool are two parts that are placed apart: a worker that exits by itself never turns into one
that stays.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from headway.errors import Invalid
from headway.scaling.model import Assignment, Host, WorkerState
from headway.scaling.placement.host_choice import HostCapacities


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTarget:
    """How many workers of a pool to place. Greater ``priority`` is placed first when room is short."""

    pool: str
    template: str
    workers: int
    burst_workers: int = 0
    """How many of ``workers`` are burst."""
    priority: int = 100
    labels: Mapping[str, str] = field(default_factory=dict)
    """What a host, or the template there, must be labelled with."""
    spread: str | None = None
    """What workers are spread across where there is a choice: ``host``, or a label's name."""

    def __post_init__(self) -> None:
        if not 0 <= self.burst_workers <= self.workers:
            raise Invalid(f"target of pool {self.pool!r}: {self.burst_workers} burst workers of {self.workers}")


class Part:
    """The base workers of a pool, or its burst workers: how many are wanted, and where they are so far."""

    __slots__ = ("before", "by_host", "is_burst", "kind", "placed", "target", "wanted")

    def __init__(self, target: PoolTarget, kind: str, *, is_burst: bool, present: Mapping[str, int]) -> None:
        self.target = target
        self.kind = kind
        self.is_burst = is_burst
        self.before = present
        self.by_host = dict(present)
        self.placed = sum(present.values())
        self.wanted = target.burst_workers if is_burst else target.workers - target.burst_workers

    @property
    def missing(self) -> int:
        """How many are wanted and have no place; negative where too many have one."""
        return self.wanted - self.placed

    def spread_counts(self, rooms: HostCapacities) -> dict[str, int]:
        """The workers by what they are spread across."""
        counts: dict[str, int] = {}
        for host_id, workers in self.by_host.items():
            value = rooms.spread_value(host_id, self.target.spread or "")
            counts[value] = counts.get(value, 0) + workers
        return counts


class Doing(IntEnum):
    """What a worker does, in the order in which workers leave."""

    NOTHING = 0
    UNKNOWN = 1
    WORK = 2


class Busy:
    """Busy workers by part and host, as hosts report them; counted when first asked for: most evaluations take nobody
    away.
    """

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = hosts
        self._counts: Mapping[tuple[str, str, bool, bool | None], int] | None = None

    def workers(self, part: Part, host_id: str) -> int:
        """How many of ``part`` on a host have a job, or may have one: unknown is treated as busy."""
        there = part.by_host.get(host_id, 0)
        return min(there, self._count(part, host_id, is_busy=True) + self._count(part, host_id, is_busy=None))

    def at_work(self, part: Part, host_id: str) -> int:
        """How many of ``part`` on a host are known to have a job."""
        return min(part.by_host.get(host_id, 0), self._count(part, host_id, is_busy=True))

    def next_does(self, part: Part, host_id: str) -> Doing:
        """What the next of ``part`` to leave a host does: places without a busy worker are left first."""
        there = part.by_host[host_id]
        if there > self.workers(part, host_id):
            return Doing.NOTHING
        return Doing.UNKNOWN if there > self.at_work(part, host_id) else Doing.WORK

    def _count(self, part: Part, host_id: str, *, is_busy: bool | None) -> int:
        if self._counts is None:
            # One that starts has hardly had the time to take a job.
            self._counts = Counter(
                (worker.pool, host.host_id, worker.is_burst, worker.is_busy)
                for host in self._hosts
                for worker in host.workers
                if worker.state is WorkerState.RUNNING
            )
        return self._counts.get((part.target.pool, host_id, part.is_burst, is_busy), 0)


def parts_of(target: PoolTarget, present: Sequence[Assignment], rooms: HostCapacities) -> Iterator[Part]:
    """The parts of one pool: base, and burst if any is wanted or ``present``."""
    kind = rooms.kind(target.template, target.labels)
    yield Part(target, kind, is_burst=False, present={row.host_id: row.base_workers for row in present})
    if target.burst_workers or any(row.burst_workers for row in present):
        yield Part(target, kind, is_burst=True, present={row.host_id: row.burst_workers for row in present})


def rows_of(parts: Sequence[Part], present: Sequence[Assignment]) -> Iterator[Assignment]:
    """The assignments of a pool by host. One in which nothing changed is the very one that was ``present``."""
    target = parts[0].target
    # Of most pools nothing has changed.
    if all(part.by_host == part.before for part in parts) and all(row.template == target.template for row in present):
        yield from present
        return
    base, burst = parts[0].by_host, parts[1].by_host if len(parts) > 1 else {}
    rows = {row.host_id: row for row in present}
    for host_id in sorted(base.keys() | burst.keys() if burst else base):
        row, base_workers, burst_workers = rows.get(host_id), base.get(host_id, 0), burst.get(host_id, 0)
        if (
            row is not None
            and row.base_workers == base_workers
            and row.burst_workers == burst_workers
            and row.template == target.template
        ):
            yield row
        elif base_workers or burst_workers:
            yield Assignment(
                pool=target.pool,
                host_id=host_id,
                template=target.template,
                base_workers=base_workers,
                burst_workers=burst_workers,
                restart_generation=row.restart_generation if row else 0,
            )


def placed_workers(rows: Iterable[Assignment]) -> dict[str, int]:
    """Pool -> its workers in ``rows``."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.pool] = counts.get(row.pool, 0) + row.workers
    return counts
