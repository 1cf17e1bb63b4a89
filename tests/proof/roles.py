"""Headway's roles as processes that a proof kills and starts again, and the Postgres they share."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import psutil

from headway.cli.process.parent_watch import PARENT_FD
from headway.store.embedded import Server, ensure_postgres
from proof.logged import put_past
from proof.producers import Endpoint, Ledger, endpoints
from support.ports import free_port
from support.processes import end, javas_below

READY_WITHIN_S = 600.0
STOP_WITHIN_S = 120.0
NOTICED_WITHIN_S = 15.0
WORDS_SHOWN = 4000
PAST_FILES = 100  # of each hour that is to be merged


class Role:
    """One role of Headway: a process, its log, and how often it was killed or came to its end by itself."""

    def __init__(
        self, name: str, folder: Path, env: Mapping[str, str], *, says_when_ready: str, python: str = sys.executable
    ) -> None:
        self.log = folder / f"{name}.log"
        self.ends = 0
        self._argv = [python, "-m", "headway", name.split("-")[0]]
        self._env = {**os.environ, **env}
        self._says_when_ready = says_when_ready.encode()
        self._began = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._jvms: list[psutil.Process] = []
        self._ours, self._theirs = os.pipe()  # its end is the end of the role, however the proof ends

    def start(self) -> None:
        self._began = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv,
                env={**self._env, PARENT_FD: str(self._ours)},
                pass_fds=(self._ours,),
                stdout=log,
                stderr=log,
            )

    def is_ready(self) -> bool:
        """Whether this life of it has said so."""
        with self.log.open("rb") as log:
            log.seek(self._began)
            return self._says_when_ready in log.read()

    def await_ready(self) -> float:
        """Returns the seconds it took."""
        began_s = time.monotonic()
        while not self.is_ready():
            assert self._process is not None
            assert self._process.poll() is None, self.last_words()
            assert time.monotonic() < began_s + READY_WITHIN_S, self.last_words()
            time.sleep(0.05)
        return time.monotonic() - began_s

    def tend(self) -> None:
        """Start it again where it has ended."""
        if self._process is not None and self._process.poll() is not None:
            self.ends += 1
            self.start()

    def kill(self) -> None:
        """``kill -9`` and wait for its end."""
        assert self._process is not None
        self._jvms += self.jvms()
        self._process.kill()
        self._process.wait()

    def kill_jvm(self) -> bool:
        """``kill -9`` of its Java. Whether the role ended by it: one that was only asked its version is not missed."""
        assert self._process is not None
        end(self.jvms(), within_s=0)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(NOTICED_WITHIN_S)
        return self._process.poll() is not None

    def jvms(self) -> list[psutil.Process]:
        assert self._process is not None
        return javas_below(self._process.pid)

    def stop(self) -> None:
        """Ask it to end, and see it off with its Java."""
        if self._process is None:
            return
        self._jvms += self.jvms()
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        end(self._jvms, within_s=STOP_WITHIN_S)
        self._process = None

    def last_words(self) -> str:
        return self.log.read_text()[-WORDS_SHOWN:]


class Scene:
    """Ingests behind one Postgres and one event log, and the pipeline that reads it."""

    def __init__(
        self, folder: Path, database_url: str, *, ingests: int, past_hours: int = 1, jvm_options: str = ""
    ) -> None:
        self.folder, self.database_url = folder, database_url
        self.server: Server | None = None
        self.ledgers: list[Ledger] = []
        self.event_log = folder / "events"
        self.past_hours = past_hours
        env = {"HEADWAY_DATABASE_URL": database_url, "HEADWAY_EVENT_LOG": str(self.event_log)}
        self.ports = [(free_port(), free_port()) for _ in range(ingests)]
        self.ingests = [
            Role(
                f"control-{number}",
                folder,
                {**env, "HEADWAY_GRPC_ADDRESS": f"127.0.0.1:{grpc}", "HEADWAY_HTTP_ADDRESS": f"127.0.0.1:{http}"},
                says_when_ready="serving http=",
            )
            for number, (grpc, http) in enumerate(self.ports)
        ]
        state = {"HEADWAY_CHECKPOINT": str(folder / "checkpoint"), "HEADWAY_STATE_DIR": str(folder / "pipeline")}
        java = {"JAVA_TOOL_OPTIONS": jvm_options} if jvm_options else {}
        self.pipeline = Role("pipeline", folder, {**env, **state, **java}, says_when_ready="ready after")

    @property
    def roles(self) -> list[Role]:
        return [*self.ingests, self.pipeline]

    def ways(self, ingests: int) -> list[Endpoint]:
        """Every way to the first so many ingests."""
        ports = self.ports[:ingests]
        return [way for grpc, http in ports for way in endpoints(grpc=f"127.0.0.1:{grpc}", http=f"127.0.0.1:{http}")]

    def start(self) -> None:
        for role in self.ingests:
            role.start()
            role.await_ready()  # one after the other: the first migrates
        put_past(self.event_log, hours=self.past_hours, files_an_hour=PAST_FILES)
        self.pipeline.start()

    def tend(self) -> None:
        for role in self.roles:
            role.tend()

    def await_ingests(self) -> None:
        """Wait until each ingest accepts, started again where it went with Postgres."""
        until_s = time.monotonic() + READY_WITHIN_S
        while not all(role.is_ready() for role in self.ingests):
            assert time.monotonic() < until_s, self.ingests[0].last_words()
            self.tend()
            time.sleep(0.05)

    def stop(self) -> None:
        for role in (self.pipeline, *self.ingests):
            role.stop()

    # --- trouble: each returns what it did, for the ledger -----------------------------------------------------------

    def kill_pipeline(self, rng: Random) -> str:
        """The JVM, whenever; now and then the Python process, whose JVM then ends by itself."""
        if rng.random() < 0.75:
            return "jvm" if self.pipeline.kill_jvm() else ""
        self.pipeline.kill()
        return "pipeline"

    def kill_first_ingest(self, _: Random) -> str:
        self.ingests[0].kill()
        return "ingest"

    def kill_ingest(self, rng: Random) -> str:
        rng.choice(self.ingests).kill()
        return "ingest"

    def restart_postgres(self, rng: Random) -> str:
        """An immediate stop, as a crash is, and a start after a moment."""
        assert self.server is not None
        os.kill(self.server.pid, signal.SIGQUIT)
        time.sleep(rng.uniform(0.2, 3.0))
        self.server = ensure_postgres(self.folder / "postgres")
        assert self.server.url == self.database_url
        return "postgres"


Trouble = Callable[[Scene, Random], str]


@contextmanager
def scene(folder: Path, *, ingests: int = 1, past_hours: int = 1, jvm_options: str = "") -> Iterator[Scene]:
    """A scene that runs, over a Postgres of its own, with so many hours to merge. Nothing of it is left."""
    server = ensure_postgres(folder / "postgres")
    made = Scene(folder, server.url, ingests=ingests, past_hours=past_hours, jvm_options=jvm_options)
    made.server = server
    try:
        made.start()
        yield made
    finally:
        made.stop()
        if made.server is not None:
            assert made.server.wait_stopped()
