"""The workers of one host that are not gone. Everything that starts, watches or ends workers shares this table."""

from collections.abc import Iterator

from headway.agent.workers.managed_worker import ManagedWorker
from headway.agent.workers.worker_record import Record
from headway.scaling.model import WorkerState


class WorkerTable:
    """The workers of one host, by id: those with a process, and those that back off."""

    def __init__(self) -> None:
        self._workers: dict[str, ManagedWorker] = {}

    def __iter__(self) -> Iterator[ManagedWorker]:
        """Every worker of this moment: the table may change meanwhile."""
        return iter(tuple(self._workers.values()))

    def __len__(self) -> int:
        return len(self._workers)

    def __getitem__(self, worker_id: str) -> ManagedWorker:
        return self._workers[worker_id]

    def get(self, worker_id: str) -> ManagedWorker | None:
        """The worker of this id, ``None`` if there is none."""
        return self._workers.get(worker_id)

    def add(self, record: Record, *, is_ours: bool = True) -> ManagedWorker:
        """A new worker in the table; ``is_ours`` if this agent starts it."""
        worker = self._workers[record.worker_id] = ManagedWorker(record=record, is_ours=is_ours)
        return worker

    def remove(self, worker: ManagedWorker) -> None:
        """Forget the worker: its place is free."""
        del self._workers[worker.record.worker_id]

    def remove_if_gone(self, worker: ManagedWorker) -> None:
        """Forget the worker if its life is over. One that backs off keeps its place."""
        if worker.state is WorkerState.GONE:
            self.remove(worker)

    def records(self) -> Iterator[Record]:
        """The record of each worker."""
        return (worker.record for worker in self._workers.values())

    def has_trial(self, kind: tuple[str, str], *, now_s: float) -> bool:
        """Whether a process of the kind has yet to show that it stays."""
        return any(
            worker.record.kind == kind and worker.process is not None and worker.record.life.is_on_trial(now_s=now_s)
            for worker in self._workers.values()
        )
