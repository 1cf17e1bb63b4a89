"""What is kept of workers that have ended: those not yet reported, the burst places they spent, and their ids.

The ids, because a job may leave a process that is nobody's worker and bears the marks of the one that it began in.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headway.scaling.model import Worker

EXIT_LOG_IDS_KEPT = 200  # those of longer ago have no log any more, which means the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A worker whose process has ended: it is gone, or its kind backs off."""

    worker: Worker
    exit_code: int | None


class ExitLog:
    """The ends of one host's workers."""

    def __init__(self, *, spent: Mapping[str, int] | None = None, worker_ids: Iterable[str] = ()) -> None:
        self.spent = dict(spent or {})
        """Pool -> burst workers that ended by themselves under the orders in force."""
        self.worker_ids = deque(worker_ids, maxlen=EXIT_LOG_IDS_KEPT)
        """Of those that ended last."""
        self._pending: list[Ended] = []

    def note(self, ended: Ended, *, is_spent: bool) -> None:
        """Keep what the next report contains of a worker that has ended."""
        worker = ended.worker
        self._pending.append(ended)
        self.worker_ids.append(worker.worker_id)
        if is_spent:
            self.spent[worker.pool] = self.spent.get(worker.pool, 0) + 1

    def take(self) -> list[Ended]:
        """The workers that ended since the last call."""
        pending, self._pending = self._pending, []
        return pending
