"""`headway host`, `headway restart` and what `headway get` shows of hosts, against a real control plane's HTTP API."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.__main__ import main
from headway.cli.operator import queue, workers
from headway.scaling.profile import Profile
from support.seed import Seed
from support.served import TOKEN, Served, profiles_file


@pytest.fixture
def served(migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    served = Served(migrated_url, tmp_path)
    monkeypatch.setenv("HEADWAY_URL", served.url)
    monkeypatch.setenv("HEADWAY_TOKEN", TOKEN)
    yield served
    served.close()


@pytest.fixture
def say(served: Served, capsys: pytest.CaptureFixture[str]):
    """Runs a command; gives its status and what it said."""

    def said(*words: str) -> tuple[int, str]:
        status = main(list(words))
        printed = capsys.readouterr()
        return status, (printed.out + printed.err).replace(f" at {served.url}", "").replace(f"at {served.url}\n", "")

    return said


def test_a_host_is_cordoned_drained_and_serves_again_and_the_list_says_so(say, seed: Seed) -> None:
    seed.host("a")
    seed.worker("a", "mail", 1)
    assert say("host", "cordon", "a", "--reason", "new disk") == (0, "a: cordoned; it keeps 1 worker\n")
    assert say("host", "drain", "a", "--reason", "new disk")[1].startswith("a: draining, 1 worker to go;")
    listed = say("get", "hosts")[1]
    assert "draining" in listed
    assert "new disk (" in listed
    assert say("host", "uncordon", "a") == (0, "a: serving\n")


def test_a_cordon_for_a_while_says_until_when(say, seed: Seed) -> None:
    seed.host("a")
    until = r"until \d{4}-\d\d-\d\d \d\d:\d\d \S+"
    assert re.match(rf"a: cordoned {until}; it keeps", say("host", "cordon", "a", "--reason", "x", "--for", "2h")[1])
    assert re.search(until, re.sub(r"\s+", " ", say("get", "hosts", "-o", "csv")[1]))


def test_a_drained_host_in_a_zone_under_pressure_is_listed_as_such(say, seed: Seed) -> None:
    seed.host("a")
    seed.host_is(
        "a",
        state="draining",
        labels=json.dumps({"zone": "b"}),
        memory_pressure=0.25,
        cordon_reason="x",
        cordoned_by="y",
    )
    words = say("get", "hosts")[1].split()
    assert "drained" in words
    assert "b" in words
    assert "25%" in words


def test_a_template_that_fails_on_a_host_is_named(say, seed: Seed) -> None:
    seed.host("a")
    seed.host_is("a", failing=json.dumps({"rq": time.time()}))
    assert "rq (fails)" in say("get", "hosts")[1]


def test_workers_that_were_ended_by_force_are_shown_with_their_host(say, seed: Seed) -> None:
    seed.host("a")
    assert "forced" not in say("describe", "host", "a")[1]
    seed.execute("insert into forced_ends (host_id, pool, workers) select host_id, 'mail', 3 from hosts")
    assert "3 of mail" in say("describe", "host", "a")[1]


def test_a_reason_is_asked_for(say, seed: Seed) -> None:
    seed.host("a")
    status, said = say("host", "drain", "a")
    assert (status, "--reason" in said) == (2, True)


def test_a_worker_is_killed_by_its_agent_and_one_that_is_none_is_named(say, seed: Seed) -> None:
    seed.host("a")
    seed.worker("a", "mail", 1)
    status, said = say("kill", "a-mail-1", "--reason", "hangs")
    assert (status, "its agent kills it" in said) == (0, True)
    assert seed.rows("select worker_id from kill_orders") == [("a-mail-1",)]
    assert seed.rows("select after ->> 'reason' from audit_log where action = 'worker killed'") == [("hangs",)]
    status, said = say("kill", "nothing")
    assert (status, "no worker 'nothing'" in said) == (2, True)


def test_only_a_silent_host_is_forgotten(say, seed: Seed) -> None:
    seed.host("a")
    status, said = say("host", "forget", "a", "--reason", "gone")
    assert (status, "still reports" in said) == (2, True)
    seed.host("b", lease_s=-1.0)
    assert say("host", "forget", "b", "--reason", "gone") == (0, "b: forgotten; what it ran is replaced\n")


def test_a_restart_shows_its_progress_until_it_is_through(say, seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.host("a")
    seed.worker("a", "mail", 1)
    monkeypatch.setattr(workers.time, "sleep", lambda _: seed.renewed("a", generation=1))
    status, said = say("restart", "mail", "--reason", "new release", "--wait")
    assert (status, said) == (0, "mail: restart 1: 0 renewed, 1 to go\nmail: restart 1: 1 renewed, through\n")


def test_a_restart_of_a_pinned_pool_is_through_once_its_new_worker_runs(
    say, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its old one has ended by then: there is a while in which there is neither."""
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.host("a")
    seed.worker("a", "mail", 1)
    seed.exclusive("a", "mail", 1)

    def replaced() -> None:
        seed.worker("a", "mail", 2)
        seed.renewed("a", generation=1)

    happens = iter([lambda: seed.ended("a", "mail"), replaced])
    monkeypatch.setattr(workers.time, "sleep", lambda _: next(happens)())
    status, said = say("restart", "mail", "--reason", "new release", "--wait")
    lines = [f"mail: restart 1: {each}\n" for each in ("0 renewed, 1 to go", "1 renewed, through")]
    assert (status, said) == (0, "".join(lines))


def test_a_restart_that_is_through_names_workers_on_unreachable_hosts(say, seed: Seed) -> None:
    """Nobody knows what they do; to wait for them could take for ever."""
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.host("lost", lease_s=-1.0)
    seed.worker("lost", "mail", 1)
    status, said = say("restart", "mail", "--reason", "new release", "--wait")
    printed = "0 renewed, through, except 1 on unreachable hosts: replaced when they return"
    assert (status, said) == (0, f"mail: restart 1: {printed}\n")


def test_a_host_that_takes_no_orders_says_so_and_what_to_do(say, seed: Seed) -> None:
    seed.leader()
    for name, epoch in (("a", 3), ("b", 4)):
        seed.host(name)
        seed.epoch_seen(name, epoch)
    assert "takes none" not in say("describe", "host", "a")[1]
    status, said = say("describe", "host", "b")
    printed = " ".join(said.split())
    assert status == 0
    assert "orders none: the host reports epoch 4, later than the leader's" in printed
    assert "stop its agent, `headway host forget` it and start that again" in printed


def test_where_hosts_are_as_many_as_it_takes_it_says_so(say) -> None:
    assert say("get", "wanted") == (0, "hosts are as many as it takes\n")


def test_placement_is_applied_and_read_back(say, tmp_path: Path) -> None:
    places = "placement: {labels: {disk: ssd}, spread: zone}"
    file = profiles_file(tmp_path, f"pools:\n  mail: {{queues: [redis/mail], template: rq, {places}}}\n")
    assert say("apply", file)[1].splitlines()[0] == "created mail"
    assert say("apply", file)[1].splitlines()[0] == "unchanged mail"
    (row,) = json.loads(say("get", "profiles", "--json")[1])["profiles"]
    assert row["profile"]["placement"] == {"labels": {"disk": "ssd"}, "spread": "zone"}


def test_a_queue_that_is_gone_is_forgotten_and_all_pages_of_the_others_are_listed(
    say, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "PAGE_QUEUES", 2)
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    for name in ("mail", "a", "b", "gone"):
        seed.sample(f"redis/{name}", at_s=1.0)
    assert say("queue", "forget", "redis/gone") == (0, "redis/gone: forgotten\n")
    status, printed = say("queue", "forget", "redis/mail")
    assert (status, "belongs to pool 'mail'" in printed) == (2, True)
    listed = json.loads(say("get", "queues", "--json")[1])
    assert [row["queue"] for row in listed["queues"]] == ["redis/a", "redis/b", "redis/mail"]


def test_queues_are_forgotten_by_their_names_or_by_how_they_begin(
    say, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "QUEUES_FORGOTTEN_AT_ONCE", 2)
    odd = ["x/\n", "x/../..", "x/\x1b[2J", "x/%2F", "x/\u202e"]
    seed.profile(Profile(pool="mail", queues=("x/mail",), template="rq"))
    for name in ("..", "y/a", "x/mail", *odd, *(f"x/{number}" for number in range(130))):
        seed.sample(name, at_s=1.0)
    names = [row["queue"] for row in json.loads(say("get", "queues", "--json")[1])["queues"]]
    assert {"..", *odd} <= set(names)  # as they are, for a program to pass on
    status, printed = say("queue", "forget", *odd[:3], "..")
    assert (status, printed) == (0, "x/\\n: forgotten\nx/../..: forgotten\nx/\\x1b[2J: forgotten\n..: forgotten\n")
    status, printed = say("queue", "forget", "--prefix", "x/")
    assert (status, len(printed.splitlines())) == (0, 132)
    left = json.loads(say("get", "queues", "--json")[1])["queues"]
    assert [row["queue"] for row in left] == ["x/mail", "y/a"]
    for words in ((), ("y/a", "--prefix", "x")):
        status, printed = say("queue", "forget", *words)
        assert (status, "--prefix" in printed) == (2, True)
