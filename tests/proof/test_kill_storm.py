"""Killing what runs, by ``kill -9`` and at any moment, loses no job and leaves nothing behind."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from proof.conftest import Proof

pytestmark = pytest.mark.proof

SENDING_S = 90
READY_WITHIN_S = 240
DONE_WITHIN_S = 400
PAUSE_S = (4.0, 15.0)  # the shortest is less than the pipeline needs to come back


def test_kill_storm(proof: Proof) -> None:
    """Roles and the database of a demo are killed one after the other while jobs come in; every job is done."""
    for seed in proof.seeds():
        data = Path(tempfile.mkdtemp(prefix="headway-proof-"))  # kept where the round fails: its logs tell why
        folder = data / "demo"
        began_s = time.monotonic()
        kills, report = _round(folder, random.Random(seed))
        assert report["lost_jobs"] == 0
        assert report["jobs"] > 0
        assert _left_behind(folder) == []
        figures = ("jobs", "picked_up_in_time_fraction", "pickup_p95_s", "workers_max_seen", "scale_actions", "ready_s")
        took_s = round(time.monotonic() - began_s, 1)
        proof.record(seed, kills=dict(kills), took_s=took_s, **{name: report[name] for name in figures})
        shutil.rmtree(data)


def _round(folder: Path, rng: random.Random) -> tuple[Counter[str], dict[str, Any]]:
    """One demo under fire. Returns how often each part was killed, and the demo's own report."""
    report, output = folder.with_suffix(".json"), folder.with_suffix(".log")
    played = ["--workload", "bursts", "--for", f"{SENDING_S}s"]
    words = [*played, "--plain", "--no-browser", "--data-dir", str(folder), "--report", str(report)]
    with output.open("wb") as log:
        demo = subprocess.Popen([sys.executable, "-m", "headway", "demo", *words], stdout=log, stderr=log)
    try:
        _await_ready(demo, output)
        kills = _kill_until_done(demo, folder, rng)
    finally:
        demo.kill()  # nothing where it has ended; else its children see the pipe close
        demo.wait()
    assert demo.returncode == 0, output.read_text()[-4000:]
    return kills, json.loads(report.read_text())


def _await_ready(demo: subprocess.Popen[bytes], output: Path) -> None:
    until_s = time.monotonic() + READY_WITHIN_S
    while b"dashboard:" not in output.read_bytes():
        assert demo.poll() is None, output.read_text()[-4000:]
        assert time.monotonic() < until_s, output.read_text()[-4000:]
        time.sleep(0.2)


def _kill_until_done(demo: subprocess.Popen[bytes], folder: Path, rng: random.Random) -> Counter[str]:
    kills: Counter[str] = Counter()
    began_s = time.monotonic()
    while time.monotonic() - began_s < DONE_WITHIN_S:
        try:
            demo.wait(timeout=rng.uniform(*PAUSE_S))
            return kills
        except subprocess.TimeoutExpired:
            # The last seconds are left alone: what is killed at the very end cannot show that it recovers.
            if time.monotonic() - began_s < SENDING_S:
                kills.update(_kill_one(folder, rng))
    raise AssertionError(f"the demo did not end within {DONE_WITHIN_S} s; its logs are in {folder / 'logs'}")


def _kill_one(folder: Path, rng: random.Random) -> list[str]:
    victims = {child["name"]: child["pid"] for child in json.loads((folder / "children.json").read_text())}
    victims["postgres"] = json.loads((folder / "postgres" / "state.json").read_text())["server_pid"]
    name = rng.choice(sorted(victims))
    try:
        os.kill(victims[name], signal.SIGKILL)
    except ProcessLookupError:
        return []  # it is on its way back from the last time
    return [name]


def _left_behind(folder: Path) -> list[str]:
    """Processes that still belong to the demo of ``folder``, after the seconds that ending may take."""
    for _ in range(100):
        left = [process for process in psutil.process_iter() if _belongs(process, str(folder))]
        if not left:
            return []
        time.sleep(0.1)
    return [f"{process.pid} {process.name()}" for process in left]


def _belongs(process: psutil.Process, folder: str) -> bool:
    try:
        environment = process.environ().values()
        return process.pid != os.getpid() and any(folder in word for word in (*process.cmdline(), *environment))
    except psutil.Error:
        return False
