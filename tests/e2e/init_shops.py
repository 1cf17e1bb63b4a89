"""An application as its developer has it, with a worker by hand, for which ``headway init`` writes the files."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.environments import python_with
from support.rabbitmq import RabbitServer
from support.valkeys import Valkey
from support.waiting import eventually

LEDGER = """
import os, time

def done(job, seconds):
    note("start", job)
    time.sleep(seconds)
    note("end", job)

def note(kind, job):
    # One write to a file that is open for appending: lines of many processes do not mix.
    file = os.open({ledger!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{{kind}} {{job}} {{time.time()}}\\n".encode())
    os.close(file)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A library, and how its developer starts a worker by hand."""

    text: str
    """Of ``shop.py``."""
    words: Sequence[str]
    url_variable: str
    requirements: Sequence[str] = ()
    """Of an environment of its own."""
    is_on_rabbitmq: bool = False
    """Else on a Redis."""
    may_begin_twice: bool = False
    """Whether the library gives back what it begins in the moment of the signal to stop: celery/celery#3796."""

    @property
    def python(self) -> Path:
        return python_with(*self.requirements) if self.requirements else Path(sys.executable)


class Shop:
    """The application in its folder, with a broker of its own."""

    def __init__(self, row: Row, folder: Path, broker: Valkey | RabbitServer) -> None:
        self.folder = folder
        self._row = row
        self._url = broker.url
        self._management_url = broker.management_url if isinstance(broker, RabbitServer) else None
        self._ledger = folder / "jobs.log"
        (folder / "ledger.py").write_text(LEDGER.format(ledger=str(self._ledger)))
        (folder / "shop.py").write_text(row.text)
        self._ledger.touch()
        self.sent = 0
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("HEADWAY_", "PYTHON"))},
            row.url_variable: self._url,
            "PATH": os.pathsep.join([str(row.python.parent), str(Path(sys.executable).parent), os.environ["PATH"]]),
        }

    def send(self, jobs: int, seconds: float, **more: float) -> None:
        """Send so many, all at once; ``more`` is for an application whose ``send`` takes more."""
        given = ", ".join([f"{self.sent}, {jobs}, {seconds}", *(f"{name}={value}" for name, value in more.items())])
        words = [str(self._row.python), "-c", f"import shop; shop.send({given})"]
        subprocess.run(words, cwd=self.folder, env=self.env, check=True, timeout=200)
        self.sent += jobs

    @contextmanager
    def worker_by_hand(self) -> Iterator[None]:
        """One worker as its developer starts it, who ends it as well."""
        program, *words = self._row.words
        with (self.folder / "by-hand.log").open("wb") as log:
            argv = [str(self._row.python.with_name(program)), *words]
            worker = subprocess.Popen(argv, cwd=self.folder, env=self.env, stdout=log, stderr=log)
        try:
            yield
        finally:
            worker.terminate()
            worker.wait(60)

    def headway_init_beside_a_worker(self) -> str:
        """What `init` prints while a worker by hand runs that has done a first job."""
        with self.worker_by_hand():
            self.send(1, 0.0)
            eventually(lambda: self.count("end").total() == 1)
            return self.headway_init()

    def headway_init(self) -> str:
        """What it prints; its files stay as it writes them."""
        words = [sys.executable, "-m", "headway", "init", "--broker", self._url]
        if self._management_url is not None:
            words += ["--management-url", self._management_url]
        done = subprocess.run(
            words, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def count(self, kind: str) -> Counter[str]:
        """How often each job has such a line."""
        return Counter(job for found, job, _ in self._lines() if found == kind)

    def times_s(self, kind: str) -> dict[str, float]:
        """When each job had its last such line."""
        return {job: float(at_s) for found, job, at_s in self._lines() if found == kind}

    def _lines(self) -> Iterator[list[str]]:
        return (line.split() for line in self._ledger.read_text().splitlines())
