"""What the control plane does not know yet. Whoever shares it between threads holds a lock."""

from dataclasses import replace

from headway.agent.controlplane.client import HostUpdate
from headway.agent.workers.ends.exit_log import Ended
from headway.scaling.model import Exit, StartUp

PENDING_MAX = 1_000


class ReportQueue:
    """How the host is, and every end and start-up until it was reported."""

    def __init__(self) -> None:
        self._update: HostUpdate | None = None
        self._ended: dict[str, Ended] = {}
        self._start_ups: list[StartUp] = []
        self._exits: list[Exit] = []
        self._idle: frozenset[str] = frozenset()
        """Workers that are known to be idle."""
        self._steadily_idle: frozenset[str] = frozenset()
        """Those of them that were so in the update before."""
        self._reported_idle: frozenset[str] = frozenset()

    @property
    def has_idle_news(self) -> bool:
        """Whether the control plane goes by it that a busy worker is idle, or one that is idle for a while is not.

        It decides how many workers stay by that. A worker of short jobs is idle for moments, which are no news.
        """
        return bool(self._reported_idle - self._idle or self._steadily_idle - self._reported_idle)

    @property
    def has_update(self) -> bool:
        """Whether it is known how the host is."""
        return self._update is not None

    def add(self, update: HostUpdate) -> None:
        """Note how the host is now, and what has happened since the update before."""
        self._update = update
        before, self._idle = self._idle, _idle(update)
        self._steadily_idle = before & self._idle
        self._ended |= {each.worker.worker_id: each for each in update.ended}
        # After a long partition, the oldest are forgotten: what counts is what runs.
        self._ended = dict(list(self._ended.items())[-PENDING_MAX:])
        self._start_ups = [*self._start_ups, *update.start_ups][-PENDING_MAX:]
        self._exits = [*self._exits, *update.exits][-PENDING_MAX:]

    def batch(self) -> HostUpdate | None:
        """All of it, as it stands: the contents of one report; ``None`` before anything is known."""
        if self._update is None:
            return None
        return replace(
            self._update,
            ended=tuple(self._ended.values()),
            start_ups=tuple(self._start_ups),
            exits=tuple(self._exits),
        )

    def reported(self, batch: HostUpdate) -> None:
        """Forget what was reported; what has come since stays."""
        self._reported_idle = _idle(batch)
        for each in batch.ended:
            self._ended.pop(each.worker.worker_id, None)
        del self._start_ups[: len(batch.start_ups)]
        del self._exits[: len(batch.exits)]


def _idle(update: HostUpdate) -> frozenset[str]:
    return frozenset(each.worker_id for each in update.workers if each.is_busy is False)
