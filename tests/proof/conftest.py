"""Proofs: rounds of trouble, each drawn from a seed of its own, until the time asked for is used up.

A round that ends is a line of ``tests/proof/results/NAME.jsonl``: its seed, how long it took, its figures, the machine
and the load it had. A proof that is broken off goes on after its last whole round when it is started again. What this
run has found is printed at its end, also where it is broken off.
"""

import itertools
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proof.containers import Podman, why_not
from proof.ledger import summary

RESULTS = Path(__file__).parent / "results"
ROUNDS = pytest.StashKey[dict[str, list[dict[str, Any]]]]()
"""Proof -> the rounds that this run has ended."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One proof's rounds, those of earlier runs included."""

    ledger: Path
    minutes: float
    log: Callable[[dict[str, Any]], None] = lambda _: None
    """Receives each round that has ended."""

    def seeds(self) -> Iterator[int]:
        """The seeds of the rounds that have not ended, until the minutes of this run are over; at least one."""
        ends_at_s = time.monotonic() + 60 * self.minutes
        done = {line["seed"] for line in self.lines()}
        for seed in (each for each in itertools.count(1) if each not in done):
            yield seed
            if time.monotonic() >= ends_at_s:
                return

    def record(self, seed: int, **figures: Any) -> None:
        """Write down a round that has ended."""
        self.ledger.parent.mkdir(parents=True, exist_ok=True)
        machine = {
            "cores": len(os.sched_getaffinity(0)),
            "load_1m": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
        }
        ended_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = {"seed": seed, "ended_at": ended_at, "commit": proven_commit(), **figures, **machine}
        is_whole = not self.ledger.exists() or self.ledger.read_bytes().endswith(b"\n")
        with self.ledger.open("a") as ledger:
            ledger.write(("" if is_whole else "\n") + json.dumps(line) + "\n")
            ledger.flush()
            os.fsync(ledger.fileno())
        self.log(line)

    def lines(self) -> list[dict[str, Any]]:
        """Every round so far. A line that a crash cut short does not count."""
        lines = []
        for line in self.ledger.read_text().splitlines() if self.ledger.exists() else []:
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue
        return lines


def proven_commit() -> str | None:
    """What was proven; ``None`` where this is no checkout."""
    words = ["git", "-C", str(RESULTS), "rev-parse", "--short", "HEAD"]
    output = subprocess.run(words, capture_output=True, text=True, check=False)
    return output.stdout.strip() or None


@pytest.fixture
def proof(request: pytest.FixtureRequest) -> Proof:
    name = request.node.name.removeprefix("test_").replace("_", "-").replace("[", "-").rstrip("]")
    config = request.config

    def log(line: dict[str, Any]) -> None:
        config.stash.setdefault(ROUNDS, {}).setdefault(name, []).append(line)
        capture = config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            sys.stdout.write(f"\n{name}: the round of seed {line['seed']} has ended well\n")
            sys.stdout.flush()

    return Proof(ledger=RESULTS / f"{name}.jsonl", minutes=config.getoption("--proof-minutes"), log=log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for name, rounds in config.stash.get(ROUNDS, {}).items():
        terminalreporter.write_sep("=", f"{RESULTS / name}.jsonl")
        for line in summary(name, rounds):
            terminalreporter.write_line(line)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """Podman with a store of its own, which goes with the last test of the file."""
    if reason := why_not():
        pytest.skip(reason)
    engine = Podman(tmp_path_factory.mktemp("engine"))
    try:
        yield engine
    finally:
        engine.remove()
