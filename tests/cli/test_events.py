"""`headway events`: what happened, each thing once and in order, and on as it happens."""

import json
import time
from types import SimpleNamespace

import pytest

from headway.__main__ import main
from headway.cli.operator.events import events
from headway.errors import Unavailable
from headway.scaling.model import Decision
from headway.scaling.profile import Profile
from support.seed import Seed


@pytest.fixture(autouse=True)
def two(served: object, seed: Seed) -> None:
    for pool in ("mail", "news"):
        seed.profile(Profile(pool=pool, queues=(f"redis/{pool}",), template="rq"))


def alert(seed: Seed, pool: str, *, since_s: float, until_s: float | None) -> None:
    seed.execute_with(
        "insert into alerts (rule, severity, pool, host, kind, since_s, until_s, summary, action)"
        " values ('pool_late', 'page', %s, '', '', %s, %s, 'jobs wait', 'See it.')",
        *(pool, since_s, until_s),
    )


def decided(seed: Seed, pool: str, *, at_s: float, before: int, after: int) -> None:
    decision = Decision(pool=pool, at_s=at_s, target_workers=after, binding="backlog_drain")
    seed.decision(decision, ago_s=time.time() - at_s, previous_workers=before)


def lines(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["events", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_decisions_alerts_and_changes_stand_in_their_order(capsys: pytest.CaptureFixture[str], seed: Seed) -> None:
    now_s = time.time()
    decided(seed, "mail", at_s=now_s - 300, before=2, after=5)
    decided(seed, "mail", at_s=now_s - 200, before=5, after=5)  # no change: no event
    decided(seed, "news", at_s=now_s - 150, before=4, after=1)
    alert(seed, "mail", since_s=now_s - 7200, until_s=now_s - 100)  # it began before the hour
    assert main(["pause", "mail", "--reason", "a sale"]) == 0
    capsys.readouterr()
    found = [json.loads(line) for line in lines(capsys, "-o", "json")]
    assert [(each["kind"], each["about"]) for each in found] == [
        ("scaled", "pool mail"),
        ("scaled", "pool news"),
        ("alert ended", "pool mail"),
        ("change", "profile mail"),
    ]
    assert found[0]["text"] == "2 → 5 workers: starting all waiting jobs in time"
    assert found[0]["source"]["previous_workers"] == 2
    shown = lines(capsys, "--pool", "news")
    assert len(shown) == 1
    assert shown[0].endswith("scaled       pool news  4 → 1 workers: starting all waiting jobs in time")
    assert [json.loads(line)["kind"] for line in lines(capsys, "-o", "json", "--limit", "1")] == ["change"]
    assert len(lines(capsys, "--since", "3h")) == 5


def test_nothing_and_nonsense_are_said_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "nothing happened in that time: --since 7d goes further back\n")
    for words, refusal in ((["--pool", "mial"], "no profile 'mial'"), (["--since", "soon"], "is no moment")):
        assert main(["events", *words]) == 2
        assert refusal in capsys.readouterr().err


def test_watching_prints_each_event_once_and_outlives_an_absence(
    capsys: pytest.CaptureFixture[str], seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    began_s = time.time() - 60
    alert(seed, "mail", since_s=began_s, until_s=None)
    read, rounds = events.events_of, iter(range(6))

    def paused(_: float) -> None:
        match next(rounds):
            case 1:
                decided(seed, "news", at_s=began_s + 1, before=1, after=2)
            case 2 | 3:
                monkeypatch.setattr(events, "events_of", away)
            case 4:
                monkeypatch.setattr(events, "events_of", read)
                seed.execute_with("update alerts set until_s = %s", began_s + 2)
            case 5:
                raise KeyboardInterrupt

    def away(*_: object, **__: object) -> None:
        raise Unavailable("no control plane answers")

    monkeypatch.setattr(events, "time", SimpleNamespace(sleep=paused))
    assert main(["events", "--watch", "-o", "json"]) == 130
    said = capsys.readouterr()
    assert [json.loads(line)["kind"] for line in said.out.splitlines()] == ["alert", "scaled", "alert ended"]
    assert said.err == "headway: no control plane answers\n"
