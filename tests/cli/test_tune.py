"""`headway tune` beside Spark: what it refuses, where it cuts the past, and the patch it writes."""

from pathlib import Path

import pytest
import yaml

from headway.__main__ import main
from headway.cli.backtesting.tune import changes_of, patch_of
from headway.cli.backtesting.tuning_rounds import split_s
from headway.cli.profiles_file import load_profiles_file
from headway.scaling.profile import Profile
from headway.simulate.studies.candidates import Candidate
from headway.simulate.studies.tuning import Suggestion, Verdict
from headway_spark.studies.backtest import Size

DAY_S = 86_400.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--grid", "workers_max=50"], "candidate 'workers_max=50': workers_max is the operator's word and not tuned"),
        (["--grid", "budget_per_day=5"], "budget_per_day is the operator's word"),
        (["--train", "95%"], "--train=95% must lie in 10%..90%"),
        (["--train", "most"], "--train='most' is no share"),
        (["--patch", "nowhere/patch.yaml"], "nowhere/patch.yaml cannot be written"),
    ],
)
def test_a_mistake_is_reported_in_a_line_before_anything_starts(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "mail.csv"
    trace.write_text("t_arrival,service_s\n0,1\n1,1\n")
    assert main(["tune", str(trace), *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("begins_at_s", "length_s", "cut_s"),
    [
        (0.0, 3600.0, 2412.0),  # 67 % of an hour
        (0.0, 7 * DAY_S, 5 * DAY_S),  # 4.69 days are nearest to five whole ones
        (DAY_S / 4, 3 * DAY_S, 0.75 * DAY_S + 1 * DAY_S),  # the midnight nearest to day 2.01
    ],
)
def test_the_past_is_cut_at_a_midnight_where_there_are_days(begins_at_s: float, length_s: float, cut_s: float) -> None:
    size = Size(pool="mail", jobs=9, ended_jobs=9, begins_at_s=begins_at_s, length_s=length_s)
    assert split_s(size, 0.67) == cut_s


def test_the_patch_changes_what_is_suggested_and_nothing_else(tmp_path: Path) -> None:
    profiles = {
        pool: Profile(pool=pool, queues=(f"redis/{pool}",), template="rq", hold_down_s=30.0) for pool in ("mail", "on")
    }
    candidate = Candidate(name="calm", changes={"risk": 2.0, "hold_down_s": None})
    found = [
        Suggestion(pool="mail", verdict=Verdict.CHANGE, why="keeps the promise: cheaper", candidate=candidate),
        Suggestion(pool="on", verdict=Verdict.KEEP, why="as good"),
    ]
    text = patch_of(found, profiles)
    assert yaml.safe_load(text) == {"pools": {"mail": {"risk": 2.0, "hold_down_s": None}}}
    whole = {"pools": {"mail": {"queues": ["redis/mail"], "template": "rq", **yaml.safe_load(text)["pools"]["mail"]}}}
    (tmp_path / "profiles.yaml").write_text(yaml.safe_dump(whole))
    (merged,) = load_profiles_file(tmp_path / "profiles.yaml").profiles
    assert merged == candidate.of(profiles["mail"])


def test_a_patch_without_changes_says_so() -> None:
    assert yaml.safe_load(patch_of([], {})) == {"pools": {}}


def test_another_strategy_gives_up_the_numbers_of_the_old_one() -> None:
    profile = Profile(
        pool="mail", queues=("redis/mail",), template="rq", strategy="fixed", strategy_options={"workers": 3.0}
    )
    assert changes_of(Candidate(name="hybrid", changes={"strategy": "hybrid"}), profile) == {
        "strategy": "hybrid",
        "strategy_options": {},
    }
