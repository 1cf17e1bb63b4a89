"""An installation that is well, of real parts, into which a test injects one fault after another.

A Postgres, two brokers, a control plane, collectors, a pipeline, two hosts with an agent and RQ workers each, and
somebody who sends jobs. The second host calls through a proxy, which can be cut. Each role is a process of its own
that nobody starts again: what is shown is shown of a thing that stays away.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import redis
from rq import Queue

from headway.control.auth.pki import make_ca, make_server, write_pair
from headway.store.embedded import Server, ensure_postgres, ensure_valkey
from lab.hosts import TESTS, skewed_by
from lab.programs import Program, sees
from shown.disks import Disks, disks
from shown.hosts import JOBS, QUEUES, WORKERS, host_file
from shown.proxy import Proxy, proxy
from support.ports import free_port
from support.processes import javas_below

TOKEN = "k7Qm2vX9tL4pZ8sR3wN6yB1c"  # of these control planes alone
WELL_WITHIN_S = 300.0
ANSWER_S = 10.0
HOSTS = ("alpha", "beta")


class Site:
    """See above."""

    def __init__(self, folder: Path, *, has_spark: bool, is_encrypted: bool = False) -> None:
        self.folder = folder
        self.has_spark = has_spark
        self.is_encrypted = is_encrypted
        self.sends = {"mail", "news"}
        """The queues that get jobs."""
        self.fails = False
        """Whether the jobs of ``errands`` do."""
        self.http, self.grpc = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.clocks = {name: folder / f"{name}.clock" for name in ("control", "collect", "agent-beta")}
        self.programs: dict[str, Program] = {}
        self.postgres: Server
        self.held: psycopg.Connection[tuple[object, ...]] | None = None
        """Of a cause that keeps others from a table."""
        self.brokers: dict[str, Server] = {}
        self.held_client: redis.Redis
        """Of a cause that leaves a broker no connection for others."""
        self.stopped_pid = 0
        """Of a worker that a cause has stopped."""
        self.proxy: Proxy
        self.disks: Disks
        self._over = threading.Event()
        self._clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}

    @property
    def url(self) -> str:
        return f"http{'s' if self.is_encrypted else ''}://{self.http}"

    @property
    def verify(self) -> Any:
        """What a client checks the control plane by."""
        return str(self.folder / "ca.crt") if self.is_encrypted else False

    @property
    def environment(self) -> dict[str, str]:
        """Of whoever calls the control plane from a shell."""
        made = {**self._clean, "HEADWAY_URL": self.url, "HEADWAY_TOKEN_FILE": str(self.secret("admin", TOKEN))}
        return {**made, **({"HEADWAY_TLS_CA": str(self.folder / "ca.crt")} if self.is_encrypted else {})}

    def secret(self, name: str, token: str) -> Path:
        """A file with a token, which only this user reads."""
        file = self.folder / f"{name}.token"
        file.touch(mode=0o600)
        file.write_text(token)
        return file

    # --- what people do ----------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: object = None, *, headers: dict[str, str] | None = None) -> Any:
        """What the control plane answers. Raises ``httpx.HTTPError``."""
        shown = {"Authorization": f"Bearer {TOKEN}", **(headers or {})}
        with httpx.Client(base_url=self.url, verify=self.verify, trust_env=False, timeout=ANSWER_S) as client:
            answer = client.request(method, path, json=body, headers=shown)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def serve(self, pool: str, **profile: Any) -> None:
        """Apply a profile, whether there is one or not."""
        body = {"queues": [f"{QUEUES.get(pool, 'redis')}/{pool}"], "template": pool, "workers_max": 1, **profile}
        there = {each["pool"]: each["version"] for each in self.ask("GET", "/v1/profiles")["profiles"]}
        headers = {"If-Match": f'"{there[pool]}"'} if pool in there else {"If-None-Match": "*"}
        self.ask("PUT", f"/v1/profiles/{pool}", body, headers=headers)

    def drop(self, pool: str) -> None:
        """Delete a profile."""
        version = self.ask("GET", f"/v1/profiles/{pool}")["version"]
        self.ask("DELETE", f"/v1/profiles/{pool}", headers={"If-Match": f'"{version}"'})

    def state(self, pool: str) -> str:
        (found,) = self.ask("GET", f"/v1/pools?pool={pool}")["pools"]
        return str(found["state"])

    def enqueue(self, queue: str, seconds: float, *, fails: bool = False, times: int = 1) -> None:
        with redis.Redis.from_url(self.brokers[QUEUES[queue]].url, socket_timeout=1.0) as client:
            for _ in range(times):
                Queue(queue, connection=client).enqueue("jobs.work", seconds, fails)

    # --- its parts ---------------------------------------------------------------------------------------------------

    def jvm(self) -> int:
        (java,) = javas_below(self.programs["pipeline"].pid)
        return java.pid

    def postgres_pids(self) -> list[int]:
        server = psutil.Process(self.postgres.pid)
        return [server.pid, *(child.pid for child in server.children(recursive=True))]

    def start(self, stack: ExitStack) -> None:
        self.start_postgres()
        stack.callback(lambda: self.postgres.wait_stopped())
        for name in ("redis", "second"):
            self.start_broker(name)
            stack.callback(lambda name=name: self.brokers[name].wait_stopped())
        self.proxy = stack.enter_context(proxy(("127.0.0.1", int(self.grpc.rpartition(":")[2]))))
        if self.is_encrypted:
            self.certify()
        (self.folder / "jobs.py").write_text(JOBS)
        (self.folder / "workers.py").write_text(WORKERS)
        self.disks = stack.enter_context(disks(self.folder / "log", agent=self._state("agent-beta")))
        self._make_programs()
        stack.callback(self._stop)
        for name in ("control", "pipeline", *(f"agent-{host}" for host in HOSTS)):
            self.programs[name].start()
            if name == "control":
                self.programs[name].await_ready()
                self.collect_with(self.token("collect"))
        self.serve("mail", workers_min=1, workers_max=2, objective={"target_s": 10})
        self.serve("news", workers_min=1, objective={"target_s": 10})
        for program in self.programs.values():
            program.await_ready()
        sender = threading.Thread(target=self._send, daemon=True)
        sender.start()
        stack.callback(self._over.set)

    def start_postgres(self) -> None:
        """Start Postgres, with what it held, where it was."""
        self.postgres = ensure_postgres(self.folder / "postgres", is_durable=False)

    def start_broker(self, name: str) -> None:
        """Start a broker, empty, where the last one of its name was."""
        self.brokers[name] = ensure_valkey(self.folder / name)

    def token(self, name: str) -> str:
        """A token for a collector."""
        return str(self.ask("POST", "/v1/tokens", {"role": "ingest", "name": name})["secret"])

    def collect_with(self, token: str) -> None:
        """Start the collectors anew, with this token."""
        self.secret("collect", token)
        program = self.programs["collect"]
        program.stop()
        program.start()
        program.await_ready()

    def certify(self, *, days: int = 30) -> None:
        """Give the control plane a certificate that ends in so many days, in the place of the one it has."""
        if not (self.folder / "ca.crt").exists():
            self._ca = make_ca("the proof")
            write_pair(self._ca, certificate=self.folder / "ca.crt", key=self.folder / "ca.key", is_replacing=False)
        pair = make_server(self._ca, ["localhost"], days=days)
        certificate, key = self.folder / "server.crt", self.folder / "server.key"
        write_pair(pair, certificate=certificate, key=key, is_replacing=True)

    def _state(self, name: str) -> Path:
        """The state folder of a role."""
        return self.folder / f"{name}.state"

    def _make_programs(self) -> None:
        headway = [sys.executable, "-m", "headway"]
        tls = {"HEADWAY_TLS_CA": str(self.folder / "ca.crt")} if self.is_encrypted else {}
        events = str(self.folder / "log" / "events")
        data = {"HEADWAY_DATABASE_URL": self.postgres.url, "HEADWAY_EVENT_LOG": events}
        serving = {"HEADWAY_HTTP_ADDRESS": self.http, "HEADWAY_GRPC_ADDRESS": self.grpc}
        if self.is_encrypted:
            serving |= {f"HEADWAY_TLS_{name.upper()}": str(self.folder / f"server.{ext}") for name, ext in PAIR}
        shared = {"HEADWAY_TOKEN_FILE": str(self.secret("admin", TOKEN))}
        self._program(
            "control", [*headway, "control"], {**data, **serving, **shared, **self._skewed("control")}, "serving"
        )
        brokers = ",".join(f"{name}={server.url}" for name, server in self.brokers.items())
        collecting = {"HEADWAY_BROKERS": brokers, "HEADWAY_CONTROL": self.grpc, **tls, **self._skewed("collect")}
        collecting |= {"HEADWAY_TOKEN_FILE": str(self.folder / "collect.token")}
        self._program("collect", [*headway, "collect"], collecting, "watching connection=second")
        stand_in = {} if self.has_spark else {"PYTHONPATH": str(TESTS)}
        measuring = [*headway, "pipeline"] if self.has_spark else [sys.executable, "-m", "shown.stand_in"]
        checkpoint = {"HEADWAY_CHECKPOINT": str(self.folder / "checkpoint"), "HEADWAY_REBUILD": "auto"}
        java = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}  # it ends before the thorough compiler pays
        self._program("pipeline", measuring, {**data, **checkpoint, **java, **stand_in}, "ready after")
        for host in HOSTS:
            control = self.grpc if host == "alpha" else self.proxy.address
            file = self._host_file(host)
            running = {"HEADWAY_CONTROL": control, "HEADWAY_HOST_NAME": host, "HEADWAY_HOST_FILE": str(file)}
            if f"agent-{host}" in self.clocks:
                running |= self._skewed(f"agent-{host}")
            self._program(
                f"agent-{host}", [*headway, "agent", "--stop-workers"], {**running, **shared, **tls}, "agent of host="
            )

    def _program(self, name: str, argv: Sequence[str], env: dict[str, str], says: str) -> None:
        state = {"HEADWAY_STATE_DIR": str(self._state(name))}
        path = os.pathsep.join(filter(None, (env.get("PYTHONPATH"), self._clean.get("PYTHONPATH"))))
        made = {**self._clean, **state, **env, **({"PYTHONPATH": path} if path else {})}
        self.programs[name] = Program(name, self.folder, argv, made, says_when_ready=says)

    def _skewed(self, name: str) -> dict[str, str]:
        return skewed_by(self.clocks[name])

    def _host_file(self, host: str) -> Path:
        file = self.folder / f"{host}.toml"
        file.write_text(
            host_file(host, urls={name: broker.url for name, broker in self.brokers.items()}, folder=self.folder)
        )
        return file

    def _send(self) -> None:
        """Jobs for the queues that always have some, for as long as their brokers take them."""
        while not self._over.wait(0.7):
            for queue in sorted(self.sends):
                seconds, fails = (0.05, self.fails) if queue == "errands" else (0.2, False)
                with contextlib.suppress(redis.RedisError, OSError):
                    self.enqueue(queue, seconds, fails=fails)

    def _stop(self) -> None:
        for name, program in reversed(self.programs.items()):
            with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
                if name == "pipeline" and self.has_spark and program.is_running:
                    for java in javas_below(program.pid):
                        java.resume()
            program.stop()

    def words(self) -> str:
        """The last words of each role."""
        return "\n".join(f"--- {name}\n{program.last_words()[-1500:]}" for name, program in self.programs.items())


PAIR = (("cert", "crt"), ("key", "key"))


@contextmanager
def site(folder: Path, *, has_spark: bool, is_encrypted: bool = False) -> Iterator[Site]:
    """An installation that runs. Nothing of it is left but its folder."""
    made = Site(folder, has_spark=has_spark, is_encrypted=is_encrypted)
    with ExitStack() as stack:
        try:
            made.start(stack)
        except BaseException as error:
            error.add_note(made.words())
            raise
        yield made


def until(site: Site, holds: Any, *, within_s: float = WELL_WITHIN_S) -> None:
    """Return once ``holds()``; a call that is not answered is one that does not hold."""

    def answered() -> bool:
        try:
            return bool(holds())
        except (httpx.HTTPError, ValueError, json.JSONDecodeError):
            time.sleep(0.2)
            return False

    assert sees(answered, within_s=within_s), site.words()


def end(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
