"""Jobs whose every start and end is a line of a file: what was lost, doubled or killed is counted, not guessed."""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import redis
from rq import Queue
from rq.job import Job

SEND_AGAIN_S = 0.2
WORDS_SHOWN = 300
STUCK = "stuck in intermediate queue"
OUT_OF_REACH = "redis.exceptions."  # what the last line of such a failure begins with
LONG_FRACTION = 0.03
LONG_S = (4.0, 8.0)
SHORT_S = (0.2, 1.5)


def work(job: str, service_s: float, ledger: str) -> None:
    """The job itself, as a worker runs it."""
    _note(ledger, f"start {job} {os.getpid()}")
    time.sleep(service_s)
    _note(ledger, f"end {job} {os.getpid()}")


def _note(ledger: str, line: str) -> None:
    file = os.open(ledger, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, f"{line}\n".encode())  # one write: lines of many processes do not mix
    finally:
        os.close(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCounts:
    """What the ledger says."""

    starts: Counter[str]
    ends: Counter[str]
    cut_short: tuple[str, ...]
    """Executions that began in a process that is no more, and never ended: `job pid`."""

    @property
    def done(self) -> int:
        return len(self.ends)

    @property
    def doubled(self) -> int:
        """Executions beyond the first of each job."""
        return sum(self.starts.values()) - len(self.starts)


class Traffic:
    """Sends jobs to the queues, so many a second in all, from a thread of its own, until it is asked to end."""

    def __init__(
        self, url: str, shares: Mapping[str, float], ledger: Path, *, per_s: float, rng: random.Random
    ) -> None:
        self.sent: list[str] = []
        self.requeued: set[str] = set()
        self._ledger = ledger
        self._rng = rng
        self._per_s = per_s
        self._redis = redis.Redis.from_url(url)
        self._queues = [Queue(name, connection=self._redis) for name in shares]
        self._shares = list(shares.values())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic")
        ledger.touch()

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Send no more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def counts(self) -> JobCounts:
        gone = {each for each in self._read()[2] if not Path("/proc", each.split()[1]).exists()}
        starts, ends, running = self._read()  # again: what has gone by now has written all that it ever will
        cut_short = tuple(each for each in running.elements() if each in gone)
        return JobCounts(starts=starts, ends=ends, cut_short=cut_short)

    def left(self) -> list[str]:
        """The jobs that were sent and have not ended."""
        ends = self.counts().ends
        return [job for job in self.sent if job not in ends]

    def stuck(self) -> set[str]:
        """Jobs that RQ gave to a worker that never received them, as it was partitioned: RQ calls them failed later."""
        aside = {
            job_id.decode()
            for queue in self._queues
            for job_id in self._redis.lrange(queue.intermediate_queue_key, 0, -1)
        }
        return aside | {failure.partition(":")[0] for failure in self.failures() if STUCK in failure}

    def failures(self) -> list[str]:
        """The last words of jobs that RQ calls failed."""
        return [f"{job_id}: {_failure(job)[-WORDS_SHOWN:]}" for _, job_id, job in self._failed()]

    def requeue(self) -> None:
        """Do with ``rq requeue`` what an operator does with jobs whose worker lost the broker just before they began.

        RQ calls these failed, and not one line of them has run.
        """
        for queue, job_id, job in self._failed():
            is_out_of_reach = _failure(job).rstrip().rpartition("\n")[2].startswith(OUT_OF_REACH)
            if is_out_of_reach and job_id not in self._read()[0]:
                queue.failed_job_registry.requeue(job_id)
                self.requeued.add(job_id)

    def _failed(self) -> list[tuple[Queue, str, Job | None]]:
        return [
            (queue, job_id, queue.fetch_job(job_id))
            for queue in self._queues
            for job_id in queue.failed_job_registry.get_job_ids()
        ]

    def _read(self) -> tuple[Counter[str], Counter[str], Counter[str]]:
        """Starts and ends by job, and what has started and not ended as ``job pid``."""
        starts: Counter[str] = Counter()
        ends: Counter[str] = Counter()
        running: Counter[str] = Counter()
        for line in self._ledger.read_text().splitlines():
            what, job, pid = line.split()
            (starts if what == "start" else ends)[job] += 1
            running[f"{job} {pid}"] += 1 if what == "start" else -1
        return starts, ends, +running

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(self._rng.expovariate(self._per_s)):
            job, number = f"job-{number:06d}", number + 1
            bounds = LONG_S if self._rng.random() < LONG_FRACTION else SHORT_S
            self._send(self._rng.choices(self._queues, self._shares)[0], job, self._rng.uniform(*bounds))

    def _send(self, queue: Queue, job: str, service_s: float) -> None:
        while True:
            try:
                # RQ writes job and queue in one transaction: what the last try left is all there or not at all.
                if not self._redis.exists(f"rq:job:{job}"):
                    args = (job, service_s, str(self._ledger))
                    queue.enqueue("lab.jobs.work", *args, job_id=job, job_timeout=600, result_ttl=3600)
                self.sent.append(job)
                return
            except redis.RedisError:
                if self._ended.wait(SEND_AGAIN_S):
                    return


def _failure(job: Job | None) -> str:
    """What RQ recorded of it."""
    result = job.latest_result() if job else None
    return (result.exc_string or "") if result else "gone"
