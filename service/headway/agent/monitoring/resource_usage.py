"""What each worker takes with all its children: memory, what is shared counted once, and processor time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.agent.workers.worker_record import Record
from headway.local import procfs


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerUsage:
    """One worker at one moment."""

    at_s: float
    memory_bytes: int
    cpu_s: float
    """Since its start."""
    cpu_cores: float | None = None
    """On average since it was weighed before; ``None`` the first time."""


class ResourceUsage:
    """The newest weight of every worker."""

    def __init__(self) -> None:
        self._weights: dict[str, WorkerUsage] = {}

    def weigh(self, records: Sequence[Record], *, now_s: float, again: int) -> int:
        """Weigh those of these workers that never were, and ``again`` many in all, the oldest weights first.

        A worker with much memory takes milliseconds: all at once would hold up whoever waits. Others are forgotten.

        Returns:
            The memory of all these workers together, by their newest weights.
        """
        weights = {each.worker_id: self._weights[each.worker_id] for each in records if each.worker_id in self._weights}
        due = sorted(records, key=lambda each: _weighed_at_s(weights.get(each.worker_id)))
        for record in due[: max(again, len(records) - len(weights))]:
            process = procfs.stat(record.pid)
            if process is None:
                continue
            family = (process, *procfs.descendants(record.pid))
            weights[record.worker_id] = weighed(
                now_s,
                memory_bytes=sum(procfs.proportional_memory_bytes(each.pid) for each in family),
                cpu_s=sum(each.cpu_s for each in family),
                before=weights.get(record.worker_id),
            )
        self._weights = weights
        return sum(weight.memory_bytes for weight in weights.values())

    def weight(self, worker_id: str) -> WorkerUsage | None:
        """The worker's newest weight, ``None`` if it was never weighed."""
        return self._weights.get(worker_id)

    def by_template(self, records: Iterable[Record], *, older_than_s: float) -> dict[str, Sequence[WorkerUsage]]:
        """Template -> the weights of its workers that had run for so long when they were weighed."""
        found: dict[str, list[WorkerUsage]] = {}
        for record in records:
            weight = self._weights.get(record.worker_id)
            if weight is not None and weight.at_s - record.life.started_at_s >= older_than_s:
                found.setdefault(record.template, []).append(weight)
        return dict(found)


def _weighed_at_s(weight: WorkerUsage | None) -> float:
    return float("-inf") if weight is None else weight.at_s


def weighed(at_s: float, *, memory_bytes: int, cpu_s: float, before: WorkerUsage | None) -> WorkerUsage:
    """The weight of a worker that was weighed ``before``. A child that took its processor time along counts as none."""
    cpu_cores = None
    if before is not None and at_s > before.at_s:
        cpu_cores = max(0.0, cpu_s - before.cpu_s) / (at_s - before.at_s)
    return WorkerUsage(at_s=at_s, memory_bytes=memory_bytes, cpu_s=cpu_s, cpu_cores=cpu_cores)
