"""Forecasts of arrivals: one interface, one rule of trust, and each can be left out."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headway.scaling
from headway.scaling.demands import safety_stock
from headway.scaling.demands.safety_stock import SafetyStock
from headway.scaling.forecasts import FORECASTS
from headway.scaling.forecasts.arrival_forecast import ArrivalForecast, Outlook, trusted
from headway.scaling.strategies.hybrid import HYBRID
from scaling.bands import parts, reloaded
from support.pools import NOW_S, queue, view

SERVICE = Path(headway.scaling.__file__).parents[2]
REST = """
from headway.scaling.decide import decide
from headway.scaling.forecasts import FORECASTS
from headway.scaling.model import Memory, QueueMetrics
from headway.scaling.profile import Profile
from headway.scaling.view import PoolView

memory = Memory()
for at_s in (0.0, 5.0, 10.0):
    seen = QueueMetrics(
        queue="mail", sampled_at_s=at_s, waiting_jobs=0, in_flight_jobs=0, arrived_jobs=3, arrived_until_s=at_s
    )
    profile = Profile(pool="mail", queues=("mail",), template="mail", workers_max=9)
    view = PoolView(profile=profile, queues=(seen,), start_up_s=60.0, capacity_workers=9)
    decision, memory = decide(view, memory, now_s=at_s)
print(len(FORECASTS), decision.binding)
"""


@pytest.mark.parametrize(
    ("may_raise", "may_lower", "below", "above"),
    [
        (False, False, 5.0, 5.0),
        (True, False, 5.0, 9.0),
        (False, True, 2.0, 5.0),
        (True, True, 2.0, 9.0),
    ],
)
def test_a_forecast_moves_the_spare_as_far_as_it_is_trusted(
    may_raise: bool, may_lower: bool, below: float, above: float
) -> None:
    found = [trusted(5.0, Outlook(own, may_raise=may_raise, may_lower=may_lower)) for own in (2.0, 9.0)]
    assert found == [below, above]
    assert trusted(5.0, None) == 5.0


@pytest.mark.parametrize("kind", FORECASTS)
def test_a_forecast_goes_with_its_file_and_its_lines(kind: type[ArrivalForecast], tmp_path: Path) -> None:
    shutil.copytree(SERVICE / "headway" / "scaling", tmp_path / "headway" / "scaling")
    shutil.copy2(SERVICE / "headway" / "errors.py", tmp_path / "headway" / "errors.py")
    (tmp_path / "headway" / "__init__.py").touch()
    forecasts = tmp_path / "headway" / "scaling" / "forecasts"
    (forecasts / f"{kind.__module__.rpartition('.')[2]}.py").unlink()
    lines = (forecasts / "__init__.py").read_text().splitlines(keepends=True)
    left = [line for line in lines if kind.__name__ not in line]
    assert len(lines) - len(left) == 2  # its import and its line
    (forecasts / "__init__.py").write_text("".join(left))
    run = subprocess.run(
        [sys.executable, "-c", REST], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, check=False
    )
    assert (run.stdout, run.stderr) == (b"%d standing\n" % (len(FORECASTS) - 1), b"")


@pytest.mark.parametrize("kind", FORECASTS)
def test_what_a_forecast_had_learned_is_passed_over_once_it_is_gone(
    kind: type[ArrivalForecast], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = reloaded(SafetyStock(began_at_s=0.0, at_s=NOW_S))
    monkeypatch.setattr(safety_stock, "FORECASTS", tuple(each for each in FORECASTS if each is not kind))
    left = SafetyStock.of(stored)
    assert stored.keys() - vars(parts(left)).keys() == kind.__dataclass_fields__.keys()
    slow = view(queue(arrived_jobs=3, arrived_until_s=NOW_S), start_up_s=60.0)
    after = HYBRID.advise(slow.queues[0], slow, {"guard": stored}, NOW_S)
    assert after.state["guard"].keys() == vars(parts(left)).keys()
