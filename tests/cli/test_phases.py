"""Rehearsals in processes beside each other: they end whatever the process that waits for them does with signals."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from headway.cli.rehearse import tick_phases
from headway.cli.rehearse.rehearsal import Case, base_profile
from headway.cli.rehearse.trace_files import Columns, read_trace
from headway.scaling.strategies import BUILT_IN
from headway.simulate.studies.single_pool import Setting


@pytest.fixture
def deaf_to_sigterm() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


class Slow(Case):
    """A case whose rehearsal does not end while the test waits."""

    def rows(self, *_: Any, **__: Any) -> Any:
        time.sleep(60.0)


@pytest.mark.usefixtures("deaf_to_sigterm")
def test_what_goes_wrong_ends_every_rehearsal_though_this_process_takes_the_signal_that_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick_phases, "BESIDE_FROM_S", 0.0)
    (tmp_path / "mail.csv").write_text("t_arrival,service_s\n0,1\n1,1\n")
    trace = read_trace(tmp_path / "mail.csv", Columns())
    wanted = [Slow(workload=trace, profile=base_profile(None))]
    began_s = time.monotonic()
    with (
        pytest.raises(ZeroDivisionError),
        tick_phases.bench(wanted, [Setting(), Setting()], BUILT_IN) as rehearsed,
    ):
        next(rehearsed(lambda _: 1 / 0))
    assert time.monotonic() - began_s < 30.0


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="on one core they run in the command's own process")
def test_rehearsals_end_with_the_command_that_began_them_also_by_kill_9() -> None:
    month = ("--synthetic", "weekly:days=1,rate=0.05,service=2s,for=28d", "--begins-at", "2026-03-02", "--no-weeks")
    words = [sys.executable, "-m", "headway", "simulate", *month]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
        known, ends_s = psutil.Process(command.pid), time.monotonic() + 60.0
        while not (rehearsals := known.children()):
            assert command.poll() is None
            assert time.monotonic() < ends_s
            time.sleep(0.05)
        command.kill()
    alive = psutil.wait_procs(rehearsals, timeout=30.0)[1]
    for each in alive:
        each.kill()
    assert alive == []
