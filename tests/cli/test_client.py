"""`headway apply` and `headway get` against a real control plane's HTTP API."""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headway.__main__ import main
from headway.cli.doctor import control_plane
from headway.cli.operator.apply import apply_profiles
from headway.errors import Invalid, Misconfigured, Unauthenticated, Unavailable
from headway.scaling.measure import sketch_index
from headway.scaling.model import Decision, Demand
from headway.scaling.profile import Profile
from support.seed import Seed
from support.served import TOKEN, Served, profiles_file


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """A server that answers all with ``body``; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """A test's output is no access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_apply_reports_what_became_of_each_pool_and_where(
    served: Served, seed: Seed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "pools:\n  mail: {queues: [redis/mail], template: rq}\n  news: {queues: [redis/news], template: rq}\n"
    seed.host("a")
    assert main(["apply", profiles_file(tmp_path, text)]) == 0
    assert capsys.readouterr().out == f"created mail at {served.url}\ncreated news at {served.url}\n"
    assert (
        main(["apply", profiles_file(tmp_path, text.replace("[redis/news], ", "[redis/news], workers_max: 3, "))]) == 0
    )
    assert capsys.readouterr().out == f"unchanged mail at {served.url}\nupdated news at {served.url}\n"


def test_apply_refuses_with_every_breach_and_changes_nothing(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = profiles_file(tmp_path, "pools:\n  mail: {queues: [], template: rq, colour: red}\n", "one.yaml")
    two = profiles_file(tmp_path, "pools:\n  news: {queues: [redis/news], workers_min: many}\n", "two.yaml")
    assert main(["apply", one, two]) == 2
    said = capsys.readouterr().err
    for word in ("colour", "workers_min", "template is missing"):
        assert word in said
    assert said.count("\n") == 1
    assert main(["get", "profiles"]) == 0
    assert "no profiles" in capsys.readouterr().out


def test_a_queue_may_move_from_one_pool_to_another_whatever_their_order(served: Served) -> None:
    def pool(name: str, *queues: str) -> Profile:
        return Profile(pool=name, queues=queues, template="rq")

    assert apply_profiles(served.url, TOKEN, [pool("b", "q/1", "q/2")]) == [("b", "created")]
    moved = apply_profiles(served.url, TOKEN, [pool("a", "q/1"), pool("b", "q/2")])
    assert moved == [("a", "created"), ("b", "updated")]
    with pytest.raises(Invalid, match="queue 'q/2' belongs to pool 'b'"):
        apply_profiles(served.url, TOKEN, [pool("c", "q/2"), pool("d", "q/4")])
    assert apply_profiles(served.url, TOKEN, [pool("d", "q/4")]) == [("d", "unchanged")]  # the good one was applied


def test_what_one_file_excludes_no_other_file_may_serve(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = profiles_file(tmp_path, "exclude: [redis/test-*]\n", "one.yaml")
    two = profiles_file(tmp_path, "pools:\n  tests: {queues: [redis/test-1], template: rq}\n", "two.yaml")
    for files in ((one, two), (two, one)):
        assert main(["apply", *files]) == 2
        assert f"{two}: profile 'tests': queue 'redis/test-1' is excluded by 'redis/test-*'" in capsys.readouterr().err
    assert main(["get", "profiles"]) == 0
    assert "no profiles" in capsys.readouterr().out


def test_what_a_file_excludes_is_checked_against_every_pool_that_the_control_plane_holds(
    served: Served, seed: Seed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one that another file brought, or an earlier version of this one. What the file itself brings is applied."""
    seed.profile(Profile(pool="tests", queues=("redis/a", "redis/test-1"), template="rq"))
    file = profiles_file(tmp_path, "exclude: [redis/test-*]\npools:\n  mail: {queues: [redis/mail], template: rq}\n")
    sentence = (
        "profile 'tests': queue 'redis/test-1' is excluded by 'redis/test-*'; the control plane holds that profile: "
        "change it, or `headway delete tests`"
    )
    assert main(["apply", file]) == 2
    said = capsys.readouterr()
    assert (said.out.splitlines()[0], said.err) == (f"created mail at {served.url}", f"headway: {sentence}\n")
    warned: list[str] = []
    mail = Profile(pool="mail", queues=("redis/mail",), template="rq")
    apply_profiles(served.url, TOKEN, [mail], exclude=("redis/test-*",), warn=warned.append)
    assert warned == [sentence]


@pytest.mark.parametrize("what", ["decisions", "queues", "profiles"])
def test_get_refuses_a_pool_that_there_is_not(served: Served, capsys: pytest.CaptureFixture[str], what: str) -> None:
    assert main(["get", what, "--pool", "mial"]) == 2
    assert capsys.readouterr() == ("", "headway: no profile 'mial': `headway get profiles` lists them\n")


def test_get_lists_what_is_and_calls_unknown_what_is_not_known(
    served: Served, seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.sample("redis/mail", at_s=1000.0, waiting_jobs=7, poll_interval_s=2.5)
    seed.host("a")
    seed.host("b", lease_s=-1.0)
    seed.worker("b", "mail", 1)
    decision = Decision(
        pool="mail", at_s=1.0, target_workers=4, binding="workers_max", demands=(Demand(name="trend", slots=5.25),)
    )
    seed.decision(decision, previous_workers=2)

    def listed(*words: str) -> str:
        assert main(["get", *words]) == 0
        return capsys.readouterr().out

    assert "99 % within 10 s" in listed("profiles", "--pool", "mail")
    # how long the oldest has waited, what is at work, what arrives, p50, the objective's percentile, what failed
    assert [word for word in listed("queues").splitlines()[1].split() if word == "unknown"] == ["unknown"] * 6
    assert " ago, each 2.5 s" in " ".join(listed("queues").split())
    assert "unknown (was 1)" in listed("hosts")
    assert "2 → 4" in listed("decisions", "--pool", "mail")
    assert "profile's maximum" in listed("decisions")
    assert json.loads(listed("decisions", "--json"))["decisions"][0]["decision"]["target_workers"] == 4


def test_health_shows_each_stage_and_what_is_wrong(
    served: Served, seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.pipeline(age_s=3.0)
    assert main(["get", "health"]) == 0
    said = capsys.readouterr().out
    assert "degraded" in said
    assert "no control plane has led yet" in said
    for stage in ("received → durable", "durable → read", "pipeline metrics", "received → metrics"):
        assert stage in said
    assert "nothing waits" in said


def test_what_was_recorded_of_a_pool_is_rehearsed_under_its_profile(
    served: Served, seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq", workers_max=7))
    words = ["simulate", "--history", "mail", "--minutes", "10"]
    assert main(words) == 2
    assert "no job of pool 'mail' arrived in that time" in capsys.readouterr().err
    seed.bucket("redis/mail", at_s=time.time() - 100, arrived_jobs=20)
    assert main(words) == 2
    assert "how long its jobs take is not known" in capsys.readouterr().err
    seed.bucket("redis/mail", at_s=time.time() - 90, service_sketch=json.dumps({sketch_index(2.0): 20}))
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "up to 7 workers" in said
    assert "hybrid" in said
    assert main(["simulate", "--history", "nobody"]) == 2
    assert "no profile 'nobody'" in capsys.readouterr().err


def test_explain_shows_the_newest_decision(served: Served, seed: Seed, capsys: pytest.CaptureFixture[str]) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    assert main(["explain", "mail"]) == 2
    assert "pool 'mail' has no decision yet" in capsys.readouterr().err
    seed.decision(Decision(pool="mail", at_s=1.0, target_workers=4, binding="idle"), previous_workers=2)
    assert main(["explain", "mail"]) == 0
    assert "Pool mail should have 4 workers; the previous target was 2." in capsys.readouterr().out
    assert main(["explain", "nobody"]) == 2
    assert "no profile 'nobody'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["get", "profiles", "--pool", "nobody"], "no profile 'nobody'"),
        (["get", "hosts", "--pool", "mail"], "leave --pool out"),
    ],
)
def test_a_refusal_is_one_line(served: Served, words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_a_typing_error_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "everything"]) == 2
    assert "everything" in capsys.readouterr().err


def test_a_control_plane_that_is_slow_is_not_said_to_be_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an overloaded machine `headway doctor` said to start a second one."""
    monkeypatch.setattr(control_plane, "DOCTOR_ANSWER_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listens:
        url = f"http://127.0.0.1:{listens.getsockname()[1]}"
        (found,) = control_plane.ask({"HEADWAY_URL": url}).findings
    assert found.text.startswith(f"what listens at {url} took the call and did not answer in time: repeat it")
    assert found.cure is not None
    assert found.cure.startswith("wait and repeat")


def test_who_does_not_answer_or_asks_for_a_token_is_named(served: Served) -> None:
    with pytest.raises(Unavailable, match=r"no control plane answers at http://127\.0\.0\.1:1: start one"):
        apply_profiles("http://127.0.0.1:1", None, [Profile(pool="a", queues=("q",), template="t")])
    with pytest.raises(Unauthenticated, match="set HEADWAY_TOKEN"):
        apply_profiles(served.url, None, [Profile(pool="a", queues=("q",), template="t")])
    with pytest.raises(Unauthenticated, match="does not take the token"):
        apply_profiles(served.url, "wrong", [Profile(pool="a", queues=("q",), template="t")])
    with pytest.raises(Misconfigured, match="HEADWAY_URL"):
        apply_profiles("127.0.0.1:8460", None, [Profile(pool="a", queues=("q",), template="t")])


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"[" * 100_000], ids=["a page", "a list", "lists in lists"])
@pytest.mark.parametrize("words", [("get", "pools"), ("top", "--once"), ("queue", "forget", "a/b"), ("apply",)])
def test_what_is_no_headway_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    body: bytes,
    words: tuple[str, ...],
) -> None:
    """A web server that answers each path ended every command with a trace."""
    file = profiles_file(tmp_path, "pools:\n  mail: {queues: [redis/mail], template: rq}\n")
    with answering(body) as url:
        monkeypatch.setenv("HEADWAY_URL", url)
        assert main([*words, *([file] if words == ("apply",) else [])]) == 2
    assert (
        capsys.readouterr().err == f"headway: what answers at {url} is not Headway (status 200): correct HEADWAY_URL\n"
    )


def test_apply_reports_what_a_profile_cannot_keep(
    served: Served, seed: Seed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.host("a")
    text = "pools:\n  mail: {queues: [redis/mail], template: rq, objective: {target_s: 7}}\n"
    assert main(["apply", profiles_file(tmp_path, text)]) == 0
    assert capsys.readouterr().out == (
        f"created mail at {served.url}\n"
        "  note: keep 1 worker warm (workers_min): start-up 3 s (a guess) + tick 5 s + lag 1 s + margin 0.5 s > 7 s\n"
    )
    assert main(["get", "profiles"]) == 0
    assert "keep 1 worker warm (workers_min)" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["apply", "validate"])
def test_a_forecast_policy_that_the_strategy_does_not_read_is_refused(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    text = "pools:\n  mail: {queues: [redis/mail], template: rq, forecast: aggressive}\n"
    assert main([command, profiles_file(tmp_path, text)]) == 2
    said = "forecast=aggressive is a policy of strategy 'hybrid_v3'; strategy 'hybrid' reads auto or off"
    assert said in capsys.readouterr().err


def test_a_pool_is_set_by_hand_and_left_to_itself_again(
    served: Served, seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))

    def said(*words: str) -> str:
        assert main(list(words)) == 0
        return capsys.readouterr().out.strip().replace(f" at {served.url}", "")

    assert re.fullmatch(
        r"mail: 12 workers until \d{4}-\d\d-\d\d \d\d:\d\d \S+: sale",
        said("scale", "mail", "12", "--for", "2h", "--reason", "sale"),
    )
    assert "override of 12 workers for 2.0 h more: sale" in said("get", "profiles")
    assert said("scale", "mail", "auto") == "mail: goes by its profile, whose mode is act"
    assert said("pause", "mail") == "mail: paused until `headway resume mail`"
    assert said("resume", "mail", "--up") == "mail: paused downwards until `headway resume mail`"
    assert said("pause", "mail", "--down") == "mail: paused downwards until `headway resume mail`"
    assert "pause down" in said("get", "profiles")
    assert said("pause", "mail", "--up") == "mail: paused until `headway resume mail`"
    assert said("resume", "mail") == "mail: goes by its profile, whose mode is act"


def test_a_pause_says_why_and_until_when(served: Served, seed: Seed, capsys: pytest.CaptureFixture[str]) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))

    def said(*words: str) -> str:
        assert main(list(words)) == 0
        return capsys.readouterr().out.strip().replace(f" at {served.url}", "")

    moment = r"until \d{4}-\d\d-\d\d \d\d:\d\d \S+"
    assert re.fullmatch(
        rf"mail: paused downwards {moment}: deploying",
        said("pause", "mail", "--down", "--for", "30m", "--reason", "deploying"),
    )
    for listed in (said("get", "profiles"), said("describe", "pool", "mail")):
        assert re.search(r"paused downwards manually for (30|29\.\d|30\.0) min more: deploying", listed)
    # Another direction: what it does not say stays.
    assert re.fullmatch(rf"mail: paused {moment}: deploying", said("pause", "mail", "--up"))
    assert re.fullmatch(
        rf"mail: paused {moment}: still deploying", said("pause", "mail", "--reason", "still deploying")
    )
    assert re.fullmatch(rf"mail: paused upwards {moment}: still deploying", said("resume", "mail", "--down"))
    assert said("resume", "mail") == said("resume", "mail") == "mail: goes by its profile, whose mode is act"
    assert said("pause", "mail", "--reason", "no end") == "mail: paused until `headway resume mail`: no end"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["scale", "mail", "many", "--reason", "x"], "'many' is no number of workers: expected 0 or more, or auto"),
        (["scale", "mail", "3"], "say why"),
        (["scale", "mail", "3", "--for", "soon", "--reason", "x"], "--for='soon' is no duration above 0"),
        (["scale", "mail", "99", "--reason", "x"], "lies outside workers_min=0..workers_max=20"),
        (["pause", "news"], "no profile 'news'"),
        (["pause", "news", "--for", "30m"], "no profile 'news'"),
        (["pause", "redis/mail"], "redis/mail is a queue of pool mail: headway pause mail"),
        (["resume", "redis/mail"], "redis/mail is a queue of pool mail: headway resume mail"),
        (["scale", "redis/mail", "3", "--reason", "sale"], "redis/mail is a queue of pool mail: headway scale mail"),
        (["explain", "redis/mail"], "redis/mail is a queue of pool mail: headway explain mail"),
        (["pause", "redis/news"], "'redis/news' is no pool, and no pool has a queue of that name"),
        (["pause", "mail", "--for", "soon"], "--for='soon' is no duration above 0"),
        (["pause", "mail", "--for", "0"], "--for='0' is no duration above 0"),
        (["pause", "mail", "--for", "-5m"], "--for='-5m' is no duration above 0"),
        (["pause", "mail", "--for", "40d"], "for_s"),
        (["pause", "mail", "--reason", " "], "reason is empty"),
        (["pause", "mail", "--reason", ""], "reason"),
    ],
)
def test_what_cannot_be_set_by_hand_is_one_line(
    served: Served, seed: Seed, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    assert main(words) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_a_template_that_no_host_has_is_a_warning(
    served: Served, seed: Seed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.host("a")  # whose template is rq
    text = "pools:\n  mail: {queues: [redis/mail], template: qr, objective: {target_s: 60}}\n"
    assert main(["apply", profiles_file(tmp_path, text)]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  note: no reachable host has template 'qr': its workers cannot run until a host.toml names it"
    ]


def test_a_count_by_hand_names_the_installation(served: Served, seed: Seed, capsys: pytest.CaptureFixture[str]) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    assert main(["scale", "mail", "auto"]) == 0
    assert capsys.readouterr().out == f"mail at {served.url}: goes by its profile, whose mode is act\n"


def test_a_profile_is_deleted_and_a_name_that_is_none_deletes_nothing(
    served: Served, seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    for pool in ("mail", "news"):
        seed.profile(Profile(pool=pool, queues=(f"redis/{pool}",), template="rq"))
    assert main(["delete", "mail", "nwes"]) == 2
    assert "no profile 'nwes'" in capsys.readouterr().err
    assert main(["delete", "mail", "news"]) == 0
    assert capsys.readouterr().out == f"deleted mail at {served.url}\ndeleted news at {served.url}\n"
    assert main(["get", "profiles"]) == 0
    assert "no profiles" in capsys.readouterr().out
