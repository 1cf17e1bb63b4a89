"""`headway backtest` before Spark starts: what is asked for, and one clear line for each mistake."""

import time
from pathlib import Path

import pytest

from headway.__main__ import main
from headway.cli.backtesting.candidate_files import read_candidates, read_grid, refuse_unfit
from headway.cli.backtesting.history_source import Asked, past_of
from headway.cli.terminal.units import moment_s
from headway.errors import Invalid, Misconfigured
from headway.scaling.model import Mode
from headway.scaling.profile import Profile
from headway.scaling.strategies import BUILT_IN
from headway.simulate.studies.candidates import AS_IT_IS, Candidate, with_base

TRACE = "t_arrival,service_s\n" + "".join(f"{number},1.5\n" for number in range(60))
POOLS = """
pools:
  mail: {queues: [redis/mail], template: rq, workers_max: 9, mode: pause}
  images: {queues: [redis/images], template: rq, preset: critical}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "mail.csv"
    path.write_text(TRACE)
    return path


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    path = tmp_path / "profiles.yaml"
    path.write_text(POOLS)
    return path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "say whose past is played: one of --event-log DIR"),
        (["TRACE", "--event-log", "."], "one of --event-log DIR"),
        (["--event-log", "nowhere"], "--event-log=nowhere is no folder"),
        (["nowhere.csv"], "nowhere.csv cannot be read"),
        (["TRACE", "--pools", "mails"], "--pools: mails is not there; there is mail"),
        (["TRACE", "--grid", "risk"], "--grid='risk' must be a key of a profile and its values"),
        (["TRACE", "--grid", "risk=1", "--grid", "risk=2"], "risk is there twice"),
        (["TRACE", "--grid", "risks=1"], "candidate 'risks=1': profile 'rehearsed': unknown key 'risks'"),
        (["TRACE", "--grid", "strategy=hybrids"], "strategy 'hybrids' is not known"),
        (["TRACE", "--grid", "queues=a"], "queues is no policy and stays as it is"),
        (["TRACE", "--from", "tomorrow"], "--from='tomorrow' is no moment"),
        (["TRACE", "--from", "2026-03-02", "--until", "2026-03-01"], "--from must be earlier than --until"),
        (["TRACE", "--cores", "0"], "--cores=0 must be 1 or more"),
        (["TRACE", "--report", "nowhere/out.html"], "nowhere/out.html cannot be written"),
        (["--database-url", "mysql://here"], "HEADWAY_DATABASE_URL must begin with postgresql://"),
    ],
)
def test_a_mistake_is_reported_in_a_line_before_anything_starts(
    words: list[str], message: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backtest", *(str(trace) if word == "TRACE" else word for word in words)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_trace_has_the_profile_of_its_name(trace: Path, profiles: Path) -> None:
    past = past_of(Asked(traces=(trace,), profiles_file=profiles))
    assert past.profiles["mail"].workers_max == 9
    assert past.profiles["mail"].mode is Mode.ACT, "a pool that is paused is played as if it were not"
    assert [load.pool for load in past.loads] == ["mail"]
    assert list(past.loads[0].jobs.at_s)[:2] == [0.0, 1.0]


def test_a_trace_without_a_profile_of_its_name_is_refused(tmp_path: Path, profiles: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(TRACE)
    with pytest.raises(Invalid, match="has no pool 'other'"):
        past_of(Asked(traces=(other,), profiles_file=profiles))


def test_two_traces_of_one_name_are_two_pools(trace: Path) -> None:
    assert list(past_of(Asked(traces=(trace, trace))).profiles) == ["mail", "mail (2)"]


def test_a_grid_is_every_combination(tmp_path: Path) -> None:
    found = read_grid(["risk=0.5,2", "hold_down_s=auto,60"])
    assert [each.name for each in found] == [
        "risk=0.5 hold_down_s=auto",
        "risk=0.5 hold_down_s=60",
        "risk=2 hold_down_s=auto",
        "risk=2 hold_down_s=60",
    ]
    assert found[0].changes == {"risk": 0.5, "hold_down_s": None}
    assert with_base(found)[0] == AS_IT_IS


def test_a_file_of_candidates_names_what_each_sets(tmp_path: Path) -> None:
    path = tmp_path / "candidates.yaml"
    path.write_text("calm: {risk: 2, hold_down_s: 300}\nbare:\n")
    assert read_candidates(path) == (
        Candidate(name="calm", changes={"risk": 2, "hold_down_s": 300}),
        Candidate(name="bare"),
    )
    path.write_text("calm: 3\nodd: {queues: [a]}\n")
    with pytest.raises(Invalid) as refused:
        read_candidates(path)
    assert len(refused.value.breaches) == 2


def nested(depth: int, mapping: str) -> str:
    """A candidate in ``depth`` lines, each of which holds the one before nine times."""
    lines = [f"l{n}: &l{n} {mapping.format(', '.join([f'*l{n - 1}'] * 9))}" for n in range(1, depth + 1)]
    return "\n".join(["l0: &l0 {risk: 1}", *lines])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (nested(6, "{{<<: [{}]}}"), "more than 10000 keys come together here"),
        ("calm: " + "[" * 20_000, "nested too deeply"),
        ("calm: {risk: 2}\ncalm: {risk: 3}", "'calm' stands there twice, first in line 1"),
        ("calm: [risk", "expected ',' or ']', but got '<stream end>'"),
    ],
)
def test_a_file_of_candidates_is_read_with_the_bounds_of_profiles(tmp_path: Path, text: str, message: str) -> None:
    """Six lines of merges became half a million keys, and brackets in brackets a trace."""
    path = tmp_path / "candidates.yaml"
    path.write_text(text)
    with pytest.raises(Invalid, match=message.replace("[", r"\[")) as refused:
        read_candidates(path)
    assert len(str(refused.value)) < 1_000


def test_a_few_lines_of_aliases_in_a_file_of_candidates_make_no_endless_sentence(tmp_path: Path) -> None:
    path = tmp_path / "candidates.yaml"
    lists = nested(6, "{{risk: [{}]}}")  # a candidate each, of which the last one is read
    path.write_text(f"{lists}\ncalm: {{risk: [*l6, *l6]}}\n")
    profile = Profile(pool="mail", queues=("redis/mail",), template="rq")
    with pytest.raises(Invalid) as refused:
        read_candidates(path)[-1].of(profile)
    assert sum(map(len, refused.value.breaches)) < 10_000


def test_a_file_of_candidates_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"none\.yaml cannot be read: No such file.*--candidates"):
        read_candidates(tmp_path / "none.yaml")


def test_a_candidate_changes_what_it_names_and_nothing_else() -> None:
    profile = Profile(
        pool="mail", queues=("redis/mail",), template="rq", strategy="fixed", strategy_options={"workers": 3}
    )
    assert AS_IT_IS.of(profile) is profile
    changed = Candidate(name="hybrid", changes={"strategy": "hybrid", "objective": {"target_s": 30}}).of(profile)
    assert changed.strategy_options == {}, "another strategy's numbers are not its own"
    assert (changed.objective.target_s, changed.objective.percentile) == (30, profile.objective.percentile)
    assert changed.workers_max == profile.workers_max


def test_a_candidate_may_leave_a_key_to_the_default_where_a_preset_would_set_it(profiles: Path) -> None:
    past = past_of(Asked(traces=(), event_log=profiles.parent, profiles_file=profiles))
    critical = past.profiles["images"]
    assert critical.hold_down_s is not None or critical.risk != 1.0 or critical.workers_min, "the preset says something"
    assert Candidate(name="auto", changes={"hold_down_s": None}).of(critical).hold_down_s is None


def test_a_candidate_that_fits_one_pool_is_taken() -> None:
    pools = {
        name: Profile(pool=name, queues=(f"redis/{name}",), template="rq", workers_min=low, workers_max=9)
        for name, low in (("mail", 0), ("images", 5))
    }
    refuse_unfit([Candidate(name="few", changes={"workers_max": 4})], pools, BUILT_IN)
    with pytest.raises(Invalid, match="candidate 'none'"):
        refuse_unfit([Candidate(name="none", changes={"workers_max": -4})], pools, BUILT_IN)


def test_a_moment_is_a_date_or_how_long_ago() -> None:
    assert moment_s("2026-03-02T06:00", option="--from") == 1_772_431_200.0
    assert moment_s("1772431200", option="--from") == 1_772_431_200.0
    ago_s = moment_s("24h", option="--from")
    assert ago_s is not None
    assert time.time() - ago_s == pytest.approx(86_400, abs=60)
