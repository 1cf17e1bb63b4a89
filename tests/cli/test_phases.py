"""Rehearsals in processes beside each other: they end whatever the process that waits for them does with signals."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.cli import phases
from headway.cli.rehearsal import base_profile, cases
from headway.cli.traces import Columns, read_trace
from headway.scaling.strategies import BUILT_IN
from headway.simulate.single import Setting


@pytest.fixture
def deaf_to_sigterm() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


def _slow(*_: Any, **__: Any) -> None:
    time.sleep(60.0)


@pytest.mark.usefixtures("deaf_to_sigterm")
def test_what_goes_wrong_ends_every_rehearsal_though_this_process_takes_the_signal_that_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phases, "BESIDE_FROM_S", 0.0)
    (tmp_path / "mail.csv").write_text("t_arrival,service_s\n0,1\n1,1\n")
    trace = read_trace(tmp_path / "mail.csv", Columns())
    wanted = cases([trace], [base_profile(None)], [])
    began_s = time.monotonic()
    with (
        pytest.raises(ZeroDivisionError),
        phases.bench(wanted, [Setting(), Setting()], BUILT_IN, _slow) as on,
    ):
        next(on.rows(wanted, lambda _: 1 / 0))
    assert time.monotonic() - began_s < 30.0
