"""One application a queue library: how its jobs are sent, and a host on which an agent runs its real workers."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import dramatiq
import procrastinate
import redis
from celery import Celery
from dramatiq.brokers.redis import RedisBroker
from rq import Queue

from headway.wire.v1 import agent_pb2
from support.fake_control import FakeControl, row
from support.waiting import eventually
from support.workers import Stage

APPS = Path(__file__).parent / "apps"
QUEUE = "mail"

Send = Callable[[str, float], None]
"""Sends the job of this id that takes so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """An application with jobs in one queue."""

    library: str
    slots: int
    environment: Mapping[str, str]
    send: Send
    gives_back: str | None = None
    """What a worker says when it hands jobs back to the broker as it ends, of which it may have begun one: the
    library's own guarantee then is that each is done at least once.
    """


@contextmanager
def celery_shop(valkey_url: str) -> Iterator[Shop]:
    parts = urlsplit(valkey_url)
    url = valkey_url if parts.scheme == "redis" else f"redis+socket://{parts.path}?virtual_host=0"
    with Celery("shop", broker=url) as app:
        yield Shop(
            library="celery",
            slots=4,
            environment={"BROKER_URL": url},
            send=lambda job_id, seconds: app.send_task("work", (job_id, seconds), queue=QUEUE),
            # A job that its pool began in the moment of the signal is not acknowledged any more: celery/celery#3796.
            gives_back="unacknowledged message(s)",
        )


@contextmanager
def rq_shop(valkey_url: str) -> Iterator[Shop]:
    with redis.Redis.from_url(valkey_url) as client:
        queue = Queue(QUEUE, connection=client)
        yield Shop(
            library="rq",
            slots=1,
            environment={"RQ_REDIS_URL": valkey_url},
            send=lambda job_id, seconds: queue.enqueue("rq_app.work", job_id, seconds),
        )


@contextmanager
def dramatiq_shop(valkey_url: str) -> Iterator[Shop]:
    broker = RedisBroker(url=valkey_url)
    broker.declare_queue(QUEUE)

    def send(job_id: str, seconds: float) -> None:
        broker.enqueue(
            dramatiq.Message(queue_name=QUEUE, actor_name="work", args=(job_id, seconds), kwargs={}, options={})
        )

    yield Shop(library="dramatiq", slots=4, environment={"BROKER_URL": valkey_url}, send=send)
    broker.close()


@contextmanager
def procrastinate_shop(database_url: str) -> Iterator[Shop]:
    with procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=database_url)).open() as app:
        app.schema_manager.apply_schema()
        task = app.configure_task("work", queue=QUEUE)
        yield Shop(
            library="procrastinate",
            slots=1,
            environment={"BROKER_URL": database_url},
            send=lambda job_id, seconds: task.defer(job_id=job_id, seconds=seconds),
        )


SHOPS = {"celery": celery_shop, "rq": rq_shop, "dramatiq": dramatiq_shop, "procrastinate": procrastinate_shop}


class Site:
    """A host with an agent that runs a shop's workers as ``headway agent init`` writes it down, and their ledger."""

    def __init__(
        self,
        shop: Shop,
        control: FakeControl,
        *,
        port: int,
        folder: Path,
        drain_timeout_s: int,
        core_share: float,
    ) -> None:
        self.control = control
        self.shop = shop
        self._state = folder / "state"
        self._ledger = folder / "ledger"
        self._log = folder / "agent.log"
        self._host_file = folder / "host.toml"
        self.sent = 0
        self._environment = {
            **os.environ,
            **shop.environment,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LEDGER": str(self._ledger),
            "CORE_SHARE": f"{core_share}",
            "HEADWAY_CONTROL": f"127.0.0.1:{port}",
            "HEADWAY_HOST_FILE": str(self._host_file),
            "HEADWAY_STATE_DIR": str(self._state),
        }
        self._ledger.touch()
        self._write_host_file(drain_timeout_s)

    def _write_host_file(self, drain_timeout_s: int) -> None:
        self._headway("agent", "init", self.shop.library, "--file", str(self._host_file)).wait(100)
        text = self._host_file.read_text()
        text = text.replace('"APP', f'"{self.shop.library}_app').replace('"QUEUE"', f'"{QUEUE}"')
        text = text.replace('working_directory = "."', f'working_directory = "{APPS}"')
        self._host_file.write_text(
            re.sub("^stop_signal", f"drain_timeout_s = {drain_timeout_s}\nstop_signal", text, flags=re.MULTILINE)
        )

    def _headway(self, *words: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            argv = [sys.executable, "-m", "headway", *words]
            return subprocess.Popen(argv, stdout=log, stderr=log, env=self._environment, start_new_session=True)

    @contextmanager
    def agent(self) -> Iterator[None]:
        """An agent that works while the block runs; whatever it leaves is ended."""
        agent = self._headway("agent")
        try:
            yield
        finally:
            agent.kill()
            agent.wait()
            Stage(self._state).clear()

    def scale(self, workers: int) -> None:
        """Want so many workers."""
        self.control.assign(row(workers, template=self.shop.library))

    def send(self, seconds: float) -> str:
        """Send a job. Returns its id."""
        self.sent += 1
        job_id = f"job{self.sent}"
        self.shop.send(job_id, seconds)
        return job_id

    # --- what is seen ------------------------------------------------------------------------------------------------

    def logged(self) -> str:
        """What the agent has said."""
        return self._log.read_text()

    def lines(self, kind: str) -> list[tuple[str, str]]:
        """(job, worker) of every line of the ledger of this kind, in order."""
        rows = (line.split() for line in self._ledger.read_text().splitlines())
        return [(job_id, worker_id) for found, job_id, worker_id in rows if found == kind]

    def count(self, kind: str) -> Counter[str]:
        """How often each job has such a line."""
        return Counter(job_id for job_id, _ in self.lines(kind))

    def run_again(self) -> set[str]:
        """Jobs that began more than once, but for those that their first worker may have given back."""
        first = dict(reversed(self.lines("start")))
        return {job for job, times in self.count("start").items() if times > 1 and not self._gave_back(first[job])}

    def _gave_back(self, worker_id: str) -> bool:
        said = (self._state / "workers" / f"{worker_id}.log").read_text()
        return self.shop.gives_back is not None and self.shop.gives_back in said

    def unfinished(self) -> int:
        """Jobs that were sent and have not ended."""
        return self.sent - len(self.count("end"))

    def at_work(self) -> set[str]:
        """The workers that have a job just now."""
        ended = self.count("end")
        return {worker_id for job_id, worker_id in self.lines("start") if job_id not in ended}

    def running(self) -> set[str]:
        """The workers that run and were not asked to end, by the last report."""
        return {each.worker_id for each in self.control.workers() if each.state == agent_pb2.WORKER_STATE_RUNNING}

    def until_running(self, workers: int) -> set[str]:
        """Those workers, once they are so many."""
        return eventually(lambda: len(found := self.running()) == workers and (found or {""}), within_s=150)

    def exit_codes(self) -> dict[str, int | None]:
        """Worker -> exit code, of all that are gone."""
        gone = (
            worker
            for report in list(self.control.reports)
            for worker in report.workers
            if worker.state == agent_pb2.WORKER_STATE_GONE
        )
        return {each.worker_id: each.exit_code if each.HasField("exit_code") else None for each in gone}
