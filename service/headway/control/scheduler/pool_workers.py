"""The workers of known hosts, counted once for all pools of a tick."""

from collections import Counter
from collections.abc import Iterable, Sequence

from headway.scaling.metrics.sampling_instant import NOTHING_RECENT, SAMPLE_RECENT_S, RecentStarts, recent_of
from headway.scaling.metrics.shared_queues import NOTHING_SHARED, SharedQueues, of_own_queues
from headway.scaling.model import Host, StartFailure, Worker, WorkerState


class PoolWorkers:
    """The workers of known hosts by pool, at one moment. Those that take no jobs count where that is said."""

    def __init__(
        self, known: Iterable[Host], *, ahead_s: float, now_s: float, sharing: SharedQueues = NOTHING_SHARED
    ) -> None:
        """Count the workers of these hosts; ``ahead_s`` is what the clock of their states is behind ``now_s``.

        Of ``sharing``, the jobs of other pools' queues count apart.
        """
        workers = [worker for host in known for worker in host.workers]
        self._helpers: dict[str, list[Worker]] = {}
        if not sharing.is_empty:
            self._helpers = _by_pool(worker for worker in workers if sharing.helped_by(worker.pool))
            workers = [of_own_queues(worker, sharing.helped_by(worker.pool)) for worker in workers]
        able = [worker for worker in workers if worker.inability is None]
        self._ahead_s = ahead_s
        self._states = Counter((worker.pool, worker.state) for worker in able)
        self._running = _by_pool(worker for worker in able if worker.state is WorkerState.RUNNING)
        self._all_running = _by_pool(
            worker for worker in workers if worker.state is WorkerState.RUNNING and not worker.is_left_behind
        )
        self._alive = Counter(worker.pool for worker in workers if worker.pid)
        self._start_failures = {
            worker.pool: worker.start_failure for worker in workers if worker.start_failure is not None
        }
        self._recent = recent_of(workers, since_s=now_s - SAMPLE_RECENT_S, ahead_s=ahead_s)

    def in_state(self, pool: str, state: WorkerState) -> int:
        """How many workers of the pool are in this state."""
        return self._states[pool, state]

    def ready(self, pool: str, *, by_s: float | None) -> list[Worker]:
        """The running workers of the pool that were ready by then; all of them without a time."""
        running = self._running.get(pool, [])
        if by_s is None:
            return running
        until_s = by_s - self._ahead_s
        return [worker for worker in running if worker.state_since_s is None or worker.state_since_s <= until_s]

    def all_running(self, pool: str) -> Sequence[Worker]:
        """The running workers of the pool, also those that take no jobs."""
        return self._all_running.get(pool, ())

    def alive(self, pool: str) -> int:
        """How many workers of the pool have a process; the broker may list one that starts or drains."""
        return self._alive[pool]

    def of_helper(self, pool: str) -> Sequence[Worker]:
        """All workers of a pool that helps with queues of others, with whatever they report."""
        return self._helpers.get(pool, ())

    def recent(self, pool: str) -> RecentStarts:
        """What the workers of the pool did in the last minute."""
        return self._recent.get(pool, NOTHING_RECENT)

    def start_failure(self, pool: str) -> StartFailure | None:
        """Why workers of the pool fail to start; ``None`` if that is not known, or none does."""
        return self._start_failures.get(pool)


def _by_pool(workers: Iterable[Worker]) -> dict[str, list[Worker]]:
    found: dict[str, list[Worker]] = {}
    for worker in workers:
        found.setdefault(worker.pool, []).append(worker)
    return found
