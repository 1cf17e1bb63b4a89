"""Roles that run apart are upgraded one by one, in any order, while jobs come in; the tables first.

The old version is the one that recorded the newest state in ``tests/upgrade/states``. Its wheel is built from the
history of this repository, and installed with what its own lock file names.
"""

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
import redis
from rq import Queue

from headway.store.embedded import ensure_postgres, ensure_valkey
from lab.programs import sees
from proof.conftest import Proof
from proof.roles import Role
from support.archives import open_tar
from support.ports import free_port
from support.tree import ROOT
from upgrade.recorded import TOTALS, states

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]

WAITS_S = 600.0
READY = {"control": "serving http=", "pipeline": "ready after", "collect": "watching", "agent": "agent of host="}
PROFILE = {"queues": ["redis/mail"], "template": "rq", "workers_min": 2, "workers_max": 3}
HOST = """
[templates.rq]
argv = ["rq", "worker", "--worker-class", "headway.workers.rq.DrainingWorker", "mail"]
ready_pattern = "Listening on"
"""


@pytest.fixture(scope="module")
def old_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment in which the old wheel is installed."""
    commit = states()[-1].facts["commit"]
    found = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"the commit {commit} is not in this clone: {found.stderr.decode().strip()}")
    folder = tmp_path_factory.mktemp("old")
    with open_tar(found.stdout) as tree:
        tree.extractall(folder)
    uv = Path(sys.executable).with_name("uv")
    words = ["sync", "--quiet", "--frozen", "--no-editable", "--no-dev", "--all-extras", "--python", sys.executable]
    env = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(folder / "venv"), "UV_HTTP_TIMEOUT": "180"}
    subprocess.run([uv, *words], cwd=folder, env=env, check=True)
    return str(folder / "venv" / "bin" / "python")


def test_upgrade_in_any_order(proof: Proof, old_python: str, tmp_path: Path) -> None:
    for seed in proof.seeds():
        rng, folder = random.Random(seed), tmp_path / str(seed)
        folder.mkdir()
        order = rng.sample(sorted(READY), k=len(READY))
        with _roles(folder, old_python) as roles, roles.jobs(rng):
            roles.until_counted(20)
            roles.headway("migrate")
            kept = []
            for name in order:
                before = {worker["pid"] for worker in roles.workers()}
                done = roles.ended()
                roles.upgrade(name)
                roles.until(lambda done=done: roles.ended() >= done + 10)
                roles.until(lambda: roles.workers())
                kept.append(len(before & {worker["pid"] for worker in roles.workers()}))
            roles.until_counted(roles.ended() + 20)
            roles.finish()
            assert roles.begun_again() == 0
        proof.record(seed, order=order, jobs=roles.sent, workers_kept=kept)


class _Roles:
    """Every role as a process of its own, old at first, over one Postgres and one broker."""

    def __init__(self, folder: Path, old_python: str, *, database_url: str, broker_url: str) -> None:
        self.sent = 0
        self._folder, self._database_url = folder, database_url
        self._broker = redis.Redis.from_url(broker_url)
        self._queue = Queue("mail", connection=self._broker)
        http, grpc = free_port(), free_port()
        self._url = f"http://127.0.0.1:{http}"
        (folder / "host.toml").write_text(HOST)
        self._env = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "RQ_REDIS_URL": broker_url,
            "HEADWAY_DATABASE_URL": database_url,
            "HEADWAY_EVENT_LOG": str(folder / "events"),
            "HEADWAY_CHECKPOINT": str(folder / "checkpoint"),
            "HEADWAY_BROKERS": f"redis={broker_url}",
            "HEADWAY_HTTP_ADDRESS": f"127.0.0.1:{http}",
            "HEADWAY_GRPC_ADDRESS": f"127.0.0.1:{grpc}",
            "HEADWAY_CONTROL": f"127.0.0.1:{grpc}",
            "HEADWAY_HOST_FILE": str(folder / "host.toml"),
        }
        self._roles = {name: self._role(name, python=old_python) for name in READY}

    def _role(self, name: str, *, python: str) -> Role:
        env = {**self._env, "HEADWAY_STATE_DIR": str(self._folder / f"{name}-state")}
        return Role(name, self._folder, env, says_when_ready=READY[name], python=python)

    def start(self) -> None:
        for name in ("control", "pipeline", "collect", "agent"):
            self._roles[name].start()
            self._roles[name].await_ready()
        httpx.put(f"{self._url}/v1/profiles/mail", json=PROFILE, timeout=30, trust_env=False).raise_for_status()
        self.until(lambda: len(self.workers()) >= PROFILE["workers_min"])

    def upgrade(self, name: str) -> None:
        """Put this version's role in the place of the old one."""
        self._roles[name].stop()
        self._roles[name] = self._role(name, python=sys.executable)
        self._roles[name].start()
        self._roles[name].await_ready()

    def headway(self, *words: str) -> None:
        env = {**os.environ, **self._env}
        subprocess.run([sys.executable, "-m", "headway", *words], env=env, check=True, capture_output=True)

    def stop(self) -> None:
        for role in reversed(self._roles.values()):
            role.stop()
        for process in psutil.process_iter():
            try:
                if process.environ().get("RQ_REDIS_URL") == self._env["RQ_REDIS_URL"]:
                    process.kill()
            except psutil.Error:
                continue
        self._broker.close()

    @contextmanager
    def jobs(self, rng: random.Random) -> Iterator[None]:
        """While the block runs, jobs come in."""
        self._is_over = threading.Event()

        def send() -> None:
            while not self._is_over.wait(rng.expovariate(2.0)):
                self._queue.enqueue("time.sleep", rng.uniform(0.1, 0.8), result_ttl=3600)
                self.sent += 1

        sender = threading.Thread(target=send)
        sender.start()
        try:
            yield
        finally:
            self._is_over.set()
            sender.join()

    def finish(self) -> None:
        """Send no more, wait until all is done and counted, and compare the counts."""
        self._is_over.set()
        self.until(lambda: self.ended() == self.sent)
        self.until_counted(self.sent)
        assert self.totals() == (self.sent,) * 3

    def until_counted(self, jobs: int) -> None:
        self.until(lambda: min(self.totals()) >= jobs)

    def ended(self) -> int:
        assert self._queue.failed_job_registry.count == 0
        return self._queue.finished_job_registry.count

    def begun_again(self) -> int:
        """Executions beyond the first of each job."""
        return sum(
            len(found) - 1
            for job_id in self._queue.finished_job_registry.get_job_ids()
            if (job := self._queue.fetch_job(job_id)) and (found := job.results())
        )

    def totals(self) -> tuple[int, int, int]:
        """Jobs that arrived, started and ended, by the metrics."""
        with psycopg.connect(self._database_url) as connection:
            rows = connection.execute(TOTALS).fetchall()
        return next(((row[1], row[2], row[3]) for row in rows if row[0] == "redis/mail"), (0, 0, 0))

    def workers(self) -> list[dict[str, Any]]:
        """Those that are reported; none while no control plane answers."""
        try:
            hosts = httpx.get(f"{self._url}/v1/hosts", timeout=30, trust_env=False).raise_for_status().json()["hosts"]
        except httpx.HTTPError:
            return []
        return [worker for host in hosts for worker in host["workers"] if worker["state"] == "running"]

    def until(self, is_so: Any) -> None:
        assert sees(is_so, within_s=WAITS_S), "\n".join(role.last_words() for role in self._roles.values())


@contextmanager
def _roles(folder: Path, old_python: str) -> Iterator[_Roles]:
    with ExitStack() as stack:
        database = stack.enter_context(ensure_postgres(folder / "postgres"))
        broker = stack.enter_context(ensure_valkey(folder / "broker"))
        roles = _Roles(folder, old_python, database_url=database.url, broker_url=broker.url)
        stack.callback(roles.stop)
        roles.start()
        yield roles
