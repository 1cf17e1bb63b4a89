"""What a demo needs of its jobs in their broker, whichever library they are of."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import redis

from headway.cli.demo.demo_report import JobRecord
from headway.simulate.replay import RecordedJob

SEND_AGAIN_S = 0.5
STARTS = "demo:starts"
"""Hash in the demo's broker: how often each job was begun, by the demo's workers, which no library records."""


class DemoJobs(ABC):
    """The jobs that one demo sends. Everything is asked of the broker; nothing is remembered but what was sent."""

    UNREACHED: tuple[type[Exception], ...] = (redis.RedisError,)
    """What sending raises where the broker cannot be reached."""

    def __init__(self, url: str, wait: Callable[[float], bool]) -> None:
        self._redis = redis.Redis.from_url(url)
        self._run = f"{time.time():.0f}"
        self._wait = wait
        self._sent: list[tuple[str, str]] = []
        """Queue and id of each job."""

    def clear(self) -> None:
        """Forget what an earlier demo left in this broker, which is the demo's own."""
        self._redis.flushdb()

    @property
    def sent(self) -> int:
        """How many jobs were sent."""
        return len(self._sent)

    def send(self, queue: str, index: int, job: RecordedJob) -> None:
        """Enqueue ``job``; while the broker cannot be reached, try again until the demo ends. Any thread may."""
        job_id = f"{self._run}-{queue}-{index:05d}"
        while True:
            try:
                self._enqueue(queue, job_id, job)
            except self.UNREACHED:
                if self._wait(SEND_AGAIN_S):
                    return
            else:
                self._sent.append((queue, job_id))
                return

    def waiting(self) -> int | None:
        """How many jobs wait, None while the broker cannot be reached."""
        with suppress(redis.RedisError):
            return self._waiting_jobs()
        return None

    def ended(self) -> int | None:
        """How many jobs have ended, well or not; None while the broker cannot be reached."""
        with suppress(redis.RedisError):
            return self._ended_jobs()
        return None

    @abstractmethod
    def records(self) -> list[JobRecord]:
        """Every job that was sent, as it is now; one that is not known, or cannot be asked for, is ``gone``."""

    def close(self) -> None:
        """Let the broker go."""
        self._redis.close()

    @abstractmethod
    def _enqueue(self, queue: str, job_id: str, job: RecordedJob) -> None:
        """Put the job into its queue, once however often it is tried."""

    @abstractmethod
    def _waiting_jobs(self) -> int: ...

    @abstractmethod
    def _ended_jobs(self) -> int: ...


OpenJobs = Callable[[str, Sequence[str], Callable[[float], bool], Mapping[str, str]], DemoJobs]
"""Given the broker's URL, the names of the queues, a wait that says whether the demo ends, and the settings with which
the control plane is reached.
"""
