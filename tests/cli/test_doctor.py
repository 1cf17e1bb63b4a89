"""`headway doctor`: each planted fault is found with its cure, and nothing where everything is as it should be."""

import json
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from headway.__main__ import main
from headway.cli.doctor import control_plane, outside, this_machine
from headway.cli.doctor.certificates import certificate_findings
from headway.cli.doctor.finding import Finding, Level
from headway.cli.doctor.profiles_and_hosts import pool_findings, template_findings
from headway.cli.doctor.this_machine import Place
from headway.cli.operator.pools_table import state_of
from headway.control.auth.pki import make_ca
from headway.scaling.conditions.condition_table import CONDITIONS, HEALTH_KINDS
from headway.scaling.measure import sketch_index
from headway.scaling.profile import Profile
from support.ports import free_port
from support.seed import Seed
from support.served import Served

HOST_FILE = "[templates.rq]\nargv = ['sleep', '600']\n"


@dataclass
class Site:
    """A healthy installation: each test breaks one thing of it."""

    folder: Path
    seed: Seed
    patch: pytest.MonkeyPatch
    broker_url: str

    def profiles(self, text: str) -> None:
        (self.folder / "profiles.yaml").write_text(text)

    def file(self, name: str, text: str, mode: int = 0o600) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)


@pytest.fixture
def site(
    served: Served,
    migrated_url: str,
    valkey_url: str,
    seed: Seed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Site]:
    now_s = time.time()
    seed.leader()
    seed.pipeline()
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.sample("redis/mail", at_s=now_s)
    seed.bucket("redis/mail", at_s=now_s - 5)
    seed.host("a")
    folder = tmp_path / "site"
    (folder / ".headway/agent").mkdir(parents=True, mode=0o700)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(control_plane, "DOCTOR_ANSWER_S", 60.0)  # other tests keep the machine busy
    monkeypatch.setenv("HEADWAY_DATABASE_URL", migrated_url)
    site = Site(folder, seed, monkeypatch, valkey_url)
    brokers = f"brokers: {{redis: {{url: '{valkey_url}', library: rq}}}}"
    site.profiles(f"{brokers}\npools: {{mail: {{queues: [redis/mail], template: rq}}}}\n")
    site.file("host.toml", HOST_FILE)
    yield site
    with closing(redis.Redis.from_url(valkey_url)) as client:
        client.acl_deluser("doctor")


def examined(capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
    """The status, and everything that is wrong."""
    status = main(["doctor", "-o", "json"])
    said = json.loads(capsys.readouterr().out)
    wrong = [each for each in said["findings"] if each["level"] in {"fault", "warning"}]
    assert (said["status"], status) == (("wrong", 1) if wrong else ("ok", 0))
    return status, wrong


def test_nothing_is_found_on_a_healthy_installation(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1].startswith("nothing wrong; ")


def test_json_names_no_fault_of_a_healthy_installation(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """With metrics of its own: on a busy machine those of a first run would be old in a second one."""
    assert examined(capsys) == (0, [])


def away(site: Site) -> None:
    site.patch.setenv("HEADWAY_URL", f"http://127.0.0.1:{free_port()}")
    for name in ("HEADWAY_HTTP_ADDRESS", "HEADWAY_GRPC_ADDRESS"):
        site.patch.setenv(name, f"127.0.0.1:{free_port()}")


def wrong_token(site: Site) -> None:
    site.patch.setenv("HEADWAY_TOKEN", "wrong")


def no_broker(site: Site) -> None:
    site.patch.setenv("HEADWAY_BROKERS", f"redis=redis://127.0.0.1:{free_port()}/0")


def no_rights(site: Site) -> None:
    with closing(redis.Redis.from_url(site.broker_url)) as client:
        client.execute_command("ACL", "SETUSER", "doctor", "on", ">secret", "~*", "+@connection")
    site.patch.setenv("HEADWAY_BROKERS", with_login(site.broker_url))


def wrong_password(site: Site) -> None:
    site.patch.setenv("HEADWAY_BROKERS", with_login(site.broker_url))


def with_login(url: str) -> str:
    return "redis=" + re.sub(r"://(?:[^@/]*@)?", "://doctor:secret@", url, count=1)


def wrong_clock(site: Site) -> None:
    class Ahead:
        time = staticmethod(lambda: time.time() + 60)

    site.patch.setattr(control_plane, "time", Ahead)


def no_template(site: Site) -> None:
    site.seed.profile(Profile(pool="news", queues=("redis/news",), template="rqq"))
    site.seed.sample("redis/news", at_s=time.time())
    site.seed.bucket("redis/news", at_s=time.time() - 5)


def late_pipeline(site: Site) -> None:
    site.seed.execute("update pipeline_health set written_at = now() - interval '5 minutes', beat_at = written_at")


def other_version(site: Site) -> None:
    site.seed.host_is("a", agent_version="0.0.7")


def no_java(site: Site) -> None:
    site.patch.setattr("headway_spark.java._wheel_java", lambda: None)
    site.patch.delenv("JAVA_HOME", raising=False)
    (site.folder / "bin").mkdir()
    (site.folder / "bin/sleep").symlink_to(shutil.which("sleep") or "")  # the host file's program
    site.patch.setenv("PATH", str(site.folder / "bin"))


def no_tables(site: Site) -> None:
    name = "doctor_empty"
    url = os.environ["HEADWAY_DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"drop database if exists {name}")
        connection.execute(f"create database {name} template template0")
    site.patch.setenv("HEADWAY_DATABASE_URL", re.sub(r"/[^/?]*(\?|$)", rf"/{name}\1", url))


def full_disk(site: Site) -> None:
    site.patch.setattr(this_machine, "DOCTOR_FREE_BYTES_MIN", 1 << 62)


def expired_certificate(site: Site) -> None:
    site.patch.setenv("HEADWAY_TLS_CERT", site.file("ended.pem", make_ca("ended", days=-2).certificate.decode()))
    site.patch.setenv("HEADWAY_TLS_KEY", site.file("ended.key", "not read"))


def two_collectors(site: Site) -> None:
    for producer in ("collect@a", "collect@b"):
        site.seed.execute_with(
            "insert into collectors (connection, producer, began_at, seen_at) "
            "values ('redis', %s, now() - interval '1 hour', now())",
            producer,
        )


def open_host_file(site: Site) -> None:
    site.file("host.toml", HOST_FILE, mode=0o666)


def missing_program(site: Site) -> None:
    site.file("host.toml", "[templates.rq]\nargv = ['no-such-program']\n")


def unseen_queue(site: Site) -> None:
    site.seed.profile(Profile(pool="spelt", queues=("redis/nwes",), template="rq"))
    site.seed.sample("redis/nwe", at_s=time.time())


def early_deadline(site: Site) -> None:
    template = {"name": "slow", "content_hash": "1", "slots": 1, "drain_timeout_s": 60.0}
    site.seed.execute_with("update hosts set templates = templates || %s", json.dumps([template]))
    site.seed.profile(Profile(pool="slow", queues=("redis/slow",), template="slow"))
    now_s = time.time()
    site.seed.sample("redis/slow", at_s=now_s)
    sketch = json.dumps({sketch_index(240.0): 100})
    site.seed.bucket("redis/slow", at_s=now_s - 5, finished_jobs=100, service_sketch=sketch)


def failing_starts(site: Site) -> None:
    site.seed.host_is("a", failing=json.dumps({"rq": time.time()}), state="serving")


def no_leader(site: Site) -> None:
    site.seed.leader(age_s=60)


def open_brokers(site: Site) -> None:
    site.patch.setenv("HEADWAY_JOIN_TOKEN_FILE", site.file("join", "secret", mode=0o644))


def open_state(site: Site) -> None:
    (site.folder / ".headway/agent").chmod(0o777)


def wrong_profiles(site: Site) -> None:
    site.profiles("pools: {mail: {queues: [redis/mail], template: rq, workers_mix: 3}}\n")


INSTALLATION = (
    (wrong_clock, "clock", r"(59|60) s ahead of", r"timedatectl"),
    (no_template, "template", r"names template rqq, which .*did you mean 'rq'", r"\[templates.NAME\]"),
    (late_pipeline, "pipeline", r"pipeline", r"headway pipeline"),
    (other_version, "version", r"agents are version 0.0.7", r"upgrade"),
    (two_collectors, "collectors", r"several collectors", r"end every collector .* but one"),
    (
        unseen_queue,
        "queue",
        r"queue redis/nwes, which no collector has read.*did you mean 'redis/nwe'",
        r"correct the name",
    ),
    (failing_starts, "worker start", r"template rq end as soon as they start on a", r"workers/ of the agent"),
    (early_deadline, "deadline", r"pool slow: template slow kills workers that drain after 60 s", r"host.toml"),
    (no_leader, "leader", r"no control plane leads", r"headway control"),
)
MACHINE = (
    (wrong_token, "token", r"does not take the token", r"headway token create"),
    (no_rights, "broker", r"refuses a command", r"docs/how-to/collect-rq.md"),
    (no_java, "java", r"Spark needs Java 17", r"apt install"),
    (no_tables, "database", r"has no tables of Headway", r"headway migrate"),
    (full_disk, "disk", r"MiB free", r"make room"),
    (expired_certificate, "certificate", r"expired 2.0 days ago", r"headway keys server"),
    (open_host_file, "host file", r"can be written by others \(mode 0666\)", r"headway agent check"),
    (open_state, "state folder", r"can be written by others", r"chmod go-w"),
    (open_brokers, "credential", r"mode 0644", r"chmod 600"),
    (wrong_profiles, "profiles", r"workers_mix.*did you mean 'workers_m", r"headway validate"),
)
AWAY = (
    (away, "control plane", r"no control plane answers at http", r"headway control"),
    (no_broker, "broker", r"cannot be reached", r"start the broker"),
    (missing_program, "host file", r"program 'no-such-program' is not on PATH", r"headway agent check"),
)


@pytest.mark.parametrize("planted", [INSTALLATION, MACHINE, AWAY], ids=["installation", "machine", "away"])
def test_each_planted_fault_is_found_with_its_cure_and_nothing_else(
    site: Site, planted: tuple[tuple[Callable[[Site], None], str, str, str], ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault that is shown as three sends people to the wrong places."""
    for plant, *_ in planted:
        plant(site)
    _, wrong = examined(capsys)
    assert sorted(each["check"] for each in wrong) == sorted(check for _, check, *_ in planted), wrong
    found = {each["check"]: each for each in wrong}
    for _, check, says, cure in planted:
        assert re.search(says, found[check]["text"]), found[check]
        assert re.search(cure, found[check]["cure"]), found[check]


def test_a_login_that_the_broker_refuses_is_found(site: Site) -> None:
    wrong_password(site)
    place = Place(env=dict(os.environ), profiles=Path("profiles.yaml"), host_file=Path("-"), data_dir=Path("-"))
    (found,) = outside.broker_findings(place, None)
    assert "refuses the login" in found.text
    assert "user and password" in found.cure


def test_a_pool_that_is_only_recommended_for_needs_no_host() -> None:
    """`headway up --recommend-only` runs no agent."""
    row = {"pool": "mail", "template": "rq", "mode": "act"}
    health: dict[str, Any] = {"reasons": [], "kinds": []}
    for pool, more, levels in (
        (row, {}, [Level.FAULT]),
        ({**row, "mode": "recommend"}, {}, []),
        (row, {"recommends_only": True}, []),
    ):
        known = control_plane.Installation(health={**health, **more}, version="", pools=[pool], queues=[], hosts=[])
        assert [each.level for each in template_findings(known)] == levels


def test_templates_whose_workers_run_another_number_of_jobs_than_host_toml_says_are_named() -> None:
    templates = [{"name": "py", "slots": 8, "written_slots": 4}, {"name": "rq", "slots": 1, "written_slots": None}]
    hosts = [
        {"name": name, "is_known": True, "failing_templates": [], "templates": templates} for name in ("one", "two")
    ]
    health: dict[str, Any] = {"reasons": [], "kinds": []}
    known = control_plane.Installation(health=health, version="", pools=[], queues=[], hosts=hosts)
    (found,) = [each for each in template_findings(known) if each.level is Level.WARNING]
    assert found.text == "workers of template py run 8 jobs at once on one, two, and slots = 4"
    assert found.cure.startswith("write slots = 8 in host.toml, or have the workers run 4 at once")


def test_a_port_that_another_program_holds_is_found() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        env = {
            "HEADWAY_GRPC_ADDRESS": f"127.0.0.1:{other.getsockname()[1]}",
            "HEADWAY_HTTP_ADDRESS": f"127.0.0.1:{free_port()}",
        }
        free, taken = this_machine.port_findings(env)
    assert (free.level, taken.level) == (Level.OK, Level.FAULT)
    assert "HEADWAY_GRPC_ADDRESS" in taken.cure


def test_a_check_whose_extra_is_not_installed_is_left_out_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a host that has the command line and neither the control plane's packages nor Spark's."""
    monkeypatch.setattr(outside, "find_spec", lambda _: None)
    monkeypatch.setattr(this_machine, "find_spec", lambda _: None)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    certificate = tmp_path / "server.pem"
    certificate.write_text("not read")
    env = {"HEADWAY_DATABASE_URL": "postgresql://127.0.0.1:1/headway", "HEADWAY_TLS_CERT": str(certificate)}
    place = Place(env=env, profiles=Path("-"), host_file=Path("-"), data_dir=Path("-"))
    (database,) = outside.database_findings(place)
    (java,) = this_machine.java_findings(env)
    (tls,) = certificate_findings(env, now_s=time.time())
    found = [(each.level, each.text.rpartition("extra ")[2].split()[0].rstrip(",")) for each in (database, java, tls)]
    assert found == [(Level.SKIPPED, "control"), (Level.SKIPPED, "spark"), (Level.SKIPPED, "control")]


WARMING_UP = {"stage": "warming_up", "written_age_s": 20.0, "beat_age_s": 0.5}


@pytest.mark.parametrize(
    ("pipelines", "level"),
    [
        ([WARMING_UP], Level.SKIPPED),
        ([{**WARMING_UP, "stage": "starting", "beat_age_s": None}], Level.SKIPPED),
        ([{**WARMING_UP, "beat_age_s": 9.0}], Level.FAULT),
        ([{**WARMING_UP, "written_age_s": 200.0}], Level.FAULT),
        ([{**WARMING_UP, "stage": "restarting"}], Level.FAULT),
        ([WARMING_UP, {**WARMING_UP, "stage": "crashed"}], Level.FAULT),
        ([], Level.FAULT),
    ],
)
def test_the_warm_up_of_a_pipeline_is_no_fault(pipelines: list[dict[str, Any]], level: Level) -> None:
    health = {"reasons": ["so it is"], "kinds": ["pipeline"], "pipelines": pipelines}
    known = control_plane.Installation(health=health, version="", pools=[], queues=[], hosts=[])
    assert [each.level for each in control_plane.health_findings(known)] == [level]


def test_every_reason_of_health_has_its_cure() -> None:
    assert all(CONDITIONS[kind].cure for kind in HEALTH_KINDS)


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("capacity", "mail: job a was cut"),
        ("cut_jobs", "mail: job a was cut"),
        ("poison_jobs", "mail: job a was cut"),
        ("host_disk", "north: disk full"),
        ("leader", None),
    ],
)
def test_a_reason_of_health_names_the_pools_or_hosts_that_it_is_about(kind: str, named: str | None) -> None:
    known = control_plane.Installation(
        health={"reasons": ["so it is"], "kinds": [kind]},
        version="",
        pools=[{"pool": "mail", "causes": ["job a was cut"]}, {"pool": "bulk", "causes": []}],
        queues=[],
        hosts=[{"name": "north", "is_known": True, "hung_up_s": None, "problems": ["disk full"]}],
    )
    (found,) = control_plane.health_findings(known)
    assert found.text == ("so it is" if named is None else f"so it is ({named})")


def test_a_reason_of_health_names_the_pools_with_its_own_cause_only() -> None:
    known = control_plane.Installation(
        health={"reasons": ["so it is"], "kinds": ["capacity"]},
        version="",
        pools=[
            {"pool": "mail", "causes": ["job a was cut", "no room"], "kinds": ["cut_jobs", "capacity"]},
            {"pool": "bulk", "causes": ["job b was cut"], "kinds": ["cut_jobs"]},
        ],
        queues=[],
        hosts=[],
    )
    (found,) = control_plane.health_findings(known)
    assert found.text == "so it is (mail: no room)"


def paused_pool(**values: Any) -> dict[str, Any]:
    metrics = {"waiting_jobs": 5, "oldest_age_s": 36.0}
    row = {"pool": "mail", "state": "unmeasured", "mode": "pause", "sample_age_s": 3.0, "metrics": metrics}
    return {**row, "running_workers": 0, "starting_workers": 0, "causes": []} | values


def test_a_pause_that_keeps_jobs_waiting_is_a_remark_and_no_fault() -> None:
    pools = [paused_pool(), paused_pool(mode="act"), paused_pool(running_workers=1), paused_pool(mode="pause_down")]
    known = control_plane.Installation(
        health={"reasons": []},
        version="",
        pools=[*pools, paused_pool(pool="news")],
        queues=[],
        hosts=[],
        profiles=[{"pool": "mail", "pause": "pause"}, {"pool": "news", "pause": None}],
    )
    found, by_profile = pool_findings(known)
    assert by_profile.text == "pool news is paused: 5 jobs wait, the oldest for 39 s; its profile says so"
    assert (found.level, found.is_wrong) == (Level.REMARK, False)
    assert found.text == ("pool mail is paused: 5 jobs wait, the oldest for 39 s; `headway resume mail` ends the pause")


@pytest.mark.parametrize(
    ("values", "word"),
    [({}, "paused, jobs wait"), ({"mode": "act"}, "not measured"), ({"state": "breaching"}, "late")],
)
def test_a_pool_whose_jobs_wait_for_the_end_of_a_pause_is_listed_as_such(values: dict[str, Any], word: str) -> None:
    assert state_of(paused_pool(**values)) == word


def test_what_is_wrong_says_what_to_do() -> None:
    with pytest.raises(AssertionError):
        Finding(check="x", level=Level.FAULT, text="y")
