"""Which behaviour a rehearsal is given, and when what was learned live is taken."""

import json
from pathlib import Path

import psycopg
import pytest

from headway.__main__ import main
from headway.cli.backtesting.history_source import Asked, past_of
from headway.cli.rehearse import simulate as command
from headway.cli.rehearse.behaviour_source import given_behaviour
from headway.cli.rehearse.recorded_history import Recorded
from headway.cli.rehearse.shared_options import WorkerOptions
from headway.cli.rehearse.trace_files import Workload
from headway.errors import Invalid
from headway.scaling.metrics.behaviour import Behaviour, Spread
from headway.scaling.profile import Profile
from headway.simulate.workloads.jobs import Jobs
from support.seed import Seed

MAIL = Profile(pool="mail", queues=("redis/mail",), template="rq", workers_max=7)
LEARNED = Behaviour(start_up=Spread(p50_s=1.5, p95_s=2.5), exit=Spread(p50_s=0.5, p95_s=1.0), dispatch_overhead_s=0.02)


@pytest.mark.parametrize(
    ("text", "is_start_up_given", "source", "takes"),
    [
        (None, False, "mail", True),
        (None, True, "mail", False),  # whoever says how long a start takes means it
        (None, False, None, False),
        ("learned", True, "mail", True),
        ("plain", False, "mail", False),
        ("some/file.json", False, "mail", False),
    ],
)
def test_what_was_learned_is_taken_where_nothing_else_is_said(
    text: str | None, is_start_up_given: bool, source: str | None, takes: bool
) -> None:
    options = WorkerOptions(behaviour=text, start_up="8s" if is_start_up_given else None)
    assert options.takes_learned(source) is takes


def test_what_was_learned_can_only_come_from_a_control_plane() -> None:
    with pytest.raises(Invalid, match="only a control plane has learned any"):
        WorkerOptions(behaviour="learned").takes_learned(None)


@pytest.mark.parametrize("text", [None, "learned", "plain"])
def test_a_word_names_no_file(text: str | None) -> None:
    assert given_behaviour(text) is None


def test_a_history_is_rehearsed_as_its_pool_behaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = Jobs(at_s=[float(number) for number in range(60)], service_s=[1.0] * 60)
    recorded = Recorded(workload=Workload(name="mail", jobs=jobs), profile=MAIL)
    monkeypatch.setattr(command, "read_history", lambda *_, **__: recorded)
    monkeypatch.setattr(command, "learned_behaviour", lambda *_: LEARNED)
    file = tmp_path / "out.json"
    for words, start_up_s in (([], 1.5), (["--start-up", "4s"], None), (["--behaviour", "plain"], None)):
        assert main(["simulate", "--history", "mail", "--phases", "1", "--json", str(file), *words]) == 0
        behaviour = json.loads(file.read_text())["behaviour"]
        assert (behaviour and behaviour["start_up"]["p50_s"]) == start_up_s
        said = capsys.readouterr().out
        assert ("behave as measured: start-up 1.5 s, p95 2.5 s." in said) is (start_up_s is not None)


def test_what_was_learned_of_stored_pools_is_read_with_their_past(migrated_url: str, seed: Seed) -> None:
    seed.profile(MAIL)
    seed.profile(Profile(pool="new", queues=("redis/new",), template="other"))
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("insert into hosts (host_id, name) values ('h', 'h')")
        connection.execute(
            "insert into template_start_ups (host_id, template, start_up_s, starts, recent_s, start_up_cpu_s) "
            "values ('h', 'rq', 1.5, 3, '{1.5, 2.5, 1.4}', 0.4)"
        )
        summary = {"behaviour": {"sample_lag": {"p50_s": 0.7, "p95_s": 1.1}, "dispatch_overhead_s": 0.02}}
        connection.execute(
            "insert into pool_behaviours (pool, body, summary) values ('mail', '{}', %s)", [json.dumps(summary)]
        )
    asked = Asked(database_url=migrated_url)
    assert past_of(asked).behaviours == {}
    (pool, behaviour), *others = past_of(asked, with_behaviours=True).behaviours.items()
    assert (pool, others) == ("mail", [])  # of a pool none of whose workers was seen to start nothing is known
    assert behaviour.start_up == Spread(p50_s=1.5, p95_s=2.5, count=3)
    assert behaviour.start_up_cpu_s == pytest.approx(0.4)
    assert behaviour.dispatch_overhead_s == 0.02
    assert behaviour.sample_lag == Spread(p50_s=0.7, p95_s=1.1)
