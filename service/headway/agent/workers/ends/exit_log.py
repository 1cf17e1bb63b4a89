"""What is kept of workers that have ended: those not yet reported, the burst places they spent, and their ids.

The ids, because a job may leave a process that is nobody's worker and bears the marks of the one that it began in.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headway.scaling.model import Exit, Worker

EXIT_LOG_IDS_KEPT = 200  # those of longer ago have no log any more, which means the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A worker whose process has ended: it is gone, or its kind backs off."""

    worker: Worker
    exit_code: int | None


class ExitLog:
    """The ends of one host's workers."""

    def __init__(self) -> None:
        self.spent: dict[str, int] = {}
        """Pool -> burst workers that ended by themselves under the orders in force."""
        self.worker_ids: deque[str] = deque(maxlen=EXIT_LOG_IDS_KEPT)
        """Of those that ended last."""
        self._pending: list[Ended] = []
        self._exits: list[Exit] = []

    def resume(self, *, spent: Mapping[str, int], worker_ids: Iterable[str]) -> None:
        """Go on with what an earlier agent has written down."""
        self.spent = dict(spent)
        self.worker_ids.extend(worker_ids)

    def note(self, ended: Ended, *, is_spent: bool) -> None:
        """Keep what the next report contains of a worker that has ended."""
        worker = ended.worker
        self._pending.append(ended)
        self.worker_ids.append(worker.worker_id)
        if is_spent:
            self.spent[worker.pool] = self.spent.get(worker.pool, 0) + 1

    def note_exit(self, taken: Exit) -> None:
        """Keep how long a worker took to end that had no job when it was asked to stop."""
        self._exits.append(taken)

    def take(self) -> list[Ended]:
        """The workers that ended since the last call."""
        pending, self._pending = self._pending, []
        return pending

    def take_exits(self) -> list[Exit]:
        """The ends since the last call of workers that had no job when they were asked to stop."""
        exits, self._exits = self._exits, []
        return exits
