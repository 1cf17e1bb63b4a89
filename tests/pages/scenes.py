"""What the commands of a page find around them, and the shell that types them.

Each scene is a folder, an environment and what stands in the place of the page's addresses. Real servers, on loopback
and ports of their own; processes that a page leaves running are ended with it.
"""

import gzip
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import redis
import rq

from headway.scaling.model import EventKind, JobEvent
from pages.blocks import Block
from pages.rabbitmq_recipe import rabbitmq_broker
from pages.recipes import PASSWORD, celery_broker, rq_broker
from security.planes import serving
from spark.events import publish, table
from support.ports import free_port
from support.tree import ROOT

READY_S = 240.0  # `headway up` on a machine that is busy: Java, Postgres and Spark begin one after the other
ENDS_IN_S = 2400.0

# A command that stays: how its line begins, and what it prints when it is there. The next command waits for that.
STAYS = {
    r"headway control\b": "serving http=",
    r"headway agent\b(?! (?:init|check|unit|stop-workers))": "enrolled host=",
    r"headway collect\b(?!.*--check)": "watching connection=",
    r"headway up\b": "Ctrl-C ends Headway",
}

PROFILES = """
brokers: {redis: "redis://127.0.0.1:6379/0"}
pools:
  emails: {queues: [redis/emails], template: rq, workers_min: 1, workers_max: 4}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where commands run, with which environment, and what replaces the words of the page."""

    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """What a scene may ask for; a server begins when it is first asked."""

    folder: Path
    valkey_url: Callable[[], str]
    migrated_url: Callable[[], str]


@contextmanager
def nothing(servers: Servers) -> Iterator[Scene]:
    """An empty folder."""
    yield Scene(folder=servers.folder)


@contextmanager
def minutes(servers: Servers) -> Iterator[Scene]:
    """An empty folder and both cores for some minutes."""
    yield Scene(folder=servers.folder)


@contextmanager
def clone(servers: Servers) -> Iterator[Scene]:
    """The clone of the repository itself, installed; these tests run in what it would install anew."""
    yield Scene(folder=ROOT, replaced={"make install": "make -o .venv/.installed install"})


@contextmanager
def trace(servers: Servers) -> Iterator[Scene]:
    """A trace of jobs in ``jobs.csv.gz`` and a profile for it."""
    rows = "".join(f"{number * 0.7:.1f},{0.5 + number % 3}\n" for number in range(300))
    (servers.folder / "jobs.csv.gz").write_bytes(gzip.compress(f"enqueued_at,duration_s\n{rows}".encode()))
    (servers.folder / "profiles.yaml").write_text(PROFILES)
    yield Scene(folder=servers.folder)


@contextmanager
def broker(servers: Servers) -> Iterator[Scene]:
    """A broker at the usual address and in REDIS_URL, with jobs of RQ in two queues."""
    url = servers.valkey_url()
    with redis.Redis.from_url(url) as connection:
        for queue in ("emails", "mail"):
            rq.Queue(queue, connection=connection).enqueue("time.sleep", 0.1)
    yield Scene(folder=servers.folder, env={"REDIS_URL": url}, replaced={"redis://127.0.0.1:6379/0": url})


@contextmanager
def control_plane(servers: Servers) -> Iterator[Scene]:
    """A control plane at the usual addresses and the broker, with nothing known."""
    with broker(servers) as given, _plane(servers) as (addresses, env):
        yield Scene(folder=servers.folder, env=env, replaced={**given.replaced, **addresses})


@contextmanager
def _plane(servers: Servers) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """A control plane: what stands in the place of its usual addresses, and the settings of who calls it."""
    with serving(servers.migrated_url(), servers.folder, token="") as plane:
        addresses = {"http://127.0.0.1:8460": plane.http, "127.0.0.1:8461": plane.grpc}
        yield addresses, {"HEADWAY_URL": plane.http, "HEADWAY_CONTROL": plane.grpc}


@contextmanager
def recipe_of_celery(servers: Servers) -> Iterator[Scene]:
    """A control plane, and Celery's broker with the login of its page in ``brokers.toml``."""
    with _plane(servers) as (addresses, env), celery_broker(servers.folder):
        yield Scene(folder=servers.folder, env=env, replaced=addresses)


@contextmanager
def recipe_of_rq(servers: Servers) -> Iterator[Scene]:
    """A control plane, and RQ's broker, to which the collector connects with the login of its page."""
    with _plane(servers) as (addresses, env), rq_broker(servers.folder) as broker:
        url = f"redis://headway:{PASSWORD}@{broker.address}/0"
        yield Scene(folder=servers.folder, env=env, replaced={**addresses, "redis://127.0.0.1:6379/0": url})


@contextmanager
def recipe_of_rabbitmq(servers: Servers) -> Iterator[Scene]:
    """A control plane, and a RabbitMQ whose login the page's commands make, in ``brokers.toml``."""
    with _plane(servers) as (addresses, env), rabbitmq_broker(servers.folder) as path:
        yield Scene(folder=servers.folder, env={**env, "PATH": path}, replaced=addresses)


@contextmanager
def hosts(servers: Servers) -> Iterator[Scene]:
    """A control plane with the hosts web-1 and web-3, on which a pool `emails` runs."""
    with ExitStack() as stack:
        scene = stack.enter_context(control_plane(servers))
        url = scene.replaced["redis://127.0.0.1:6379/0"]
        (scene.folder / "host.toml").write_text("[templates.rq]\nargv = ['sleep', '600']\nready_after_s = 0\n")
        (scene.folder / "profiles.yaml").write_text(PROFILES.replace("redis://127.0.0.1:6379/0", url))
        for name in ("web-1", "web-3"):
            stack.enter_context(_agent(scene, name))
        words = [sys.executable, "-m", "headway", "apply", str(scene.folder / "profiles.yaml")]
        subprocess.run(words, env={**clean(), **scene.env}, check=True, capture_output=True, timeout=READY_S)
        until(lambda: _runs("emails", scene.env["HEADWAY_URL"]), of=scene.folder / "web-1.log")
        yield scene


def _runs(pool: str, url: str) -> bool:
    answer = httpx.get(f"{url}/v1/workers", params={"pool": pool}, trust_env=False, timeout=READY_S)
    return any(worker["state"] == "running" for worker in answer.json()["workers"])


@contextmanager
def everything(servers: Servers) -> Iterator[Scene]:
    """The broker, and the two files that `headway init` writes for it: what `headway up` needs.

    Its workers outlive it, as they should, and are ended with the scene.
    """
    with broker(servers) as given:
        url = given.replaced["redis://127.0.0.1:6379/0"]
        _headway(servers.folder, "init", "--broker", url)
        addresses = {f"127.0.0.1:{port}": f"127.0.0.1:{free_port()}" for port in (8460, 9460)}
        env = {"HEADWAY_HTTP_ADDRESS": addresses["127.0.0.1:8460"], "HEADWAY_GRPC_ADDRESS": f"127.0.0.1:{free_port()}"}
        try:
            yield Scene(folder=servers.folder, env=env, replaced={**given.replaced, **addresses})
        finally:
            _headway(servers.folder, "agent", "stop-workers", "--state-dir", ".headway/agent")


def _headway(folder: Path, *words: str) -> None:
    argv = [sys.executable, "-m", "headway", *words]
    subprocess.run(argv, cwd=folder, env=clean(), check=True, capture_output=True, timeout=READY_S)


@contextmanager
def recorded_past(servers: Servers) -> Iterator[Scene]:
    """Two hours of jobs in the event log of `headway up`, a profile for them, and a database."""
    yield _recorded(servers, every_s=17.0, jobs=400)


@contextmanager
def recorded_weeks(servers: Servers) -> Iterator[Scene]:
    """The same with a job each half hour of three weeks, of which two are whole whatever today is."""
    yield _recorded(servers, every_s=1800.0, jobs=21 * 48)


def _recorded(servers: Servers, *, every_s: float, jobs: int) -> Scene:
    began_s = time.time() - every_s * (jobs + 20) - time.time() % 5
    for queue, classes in (("redis/mail", ("mail",)), ("redis/media", ("image", "video"))):
        moments_s = [began_s + number * every_s for number in range(jobs)]
        rows = [each for number, at_s in enumerate(moments_s) for each in _lived(queue, classes, number, at_s)]
        publish(servers.folder / ".headway/events", f"{queue.replace('/', '-')}.parquet", table(rows))
    (servers.folder / "profiles.yaml").write_text(PROFILES.replace("emails", "mail"))
    return Scene(folder=servers.folder, env={"HEADWAY_DATABASE_URL": servers.migrated_url()})


def _lived(queue: str, classes: tuple[str, ...], number: int, at_s: float) -> Iterator[JobEvent]:
    """One job's events: it came, it began a second later, and it ended; videos take long."""
    job_class = classes[number % len(classes)]
    ran_s = 60.0 if job_class == "video" else 1.5
    about = {"queue": queue, "job_id": f"{number}", "job_class": job_class}
    yield JobEvent(kind=EventKind.ENQUEUED, at_s=at_s, **about)
    yield JobEvent(kind=EventKind.STARTED, at_s=at_s + 1, enqueued_at_s=at_s, **about)
    yield JobEvent(kind=EventKind.FINISHED, at_s=at_s + 1 + ran_s, started_at_s=at_s + 1, **about)


SCENES = {
    "nothing": nothing,
    "a clone": clone,
    "a trace": trace,
    "a broker": broker,
    "a control plane": control_plane,
    "hosts": hosts,
    "the recipe of Celery": recipe_of_celery,
    "the recipe of RQ": recipe_of_rq,
    "the recipe of RabbitMQ": recipe_of_rabbitmq,
    "minutes of time": minutes,
    "everything installed": everything,
    "a recorded past": recorded_past,
    "recorded weeks": recorded_weeks,
}
SERVED = {"a control plane", "hosts", "the recipe of Celery", "the recipe of RQ", "the recipe of RabbitMQ"}
# `make docs-run` alone runs these.
LONG = {"minutes of time", "everything installed", "a recorded past", "recorded weeks", "the recipe of RabbitMQ"}


@contextmanager
def _agent(scene: Scene, name: str) -> Iterator[None]:
    words = [sys.executable, "-m", "headway", "agent", "--stop-workers", "--host-name", name]
    words += ["--host-file", str(scene.folder / "host.toml"), "--state-dir", str(scene.folder / name)]
    log = scene.folder / f"{name}.log"
    with log.open("w") as file:
        process = subprocess.Popen(words, env={**clean(), **scene.env}, stderr=file)
    try:
        until(lambda: "enrolled host=" in log.read_text(), of=log)
        yield
    finally:
        process.terminate()
        process.wait(READY_S)


def until(is_so: Callable[[], bool], *, of: Path) -> None:
    """Return when it is so. Fails with the file ``of`` after a while."""
    ends_s = time.monotonic() + READY_S
    while not is_so():
        assert time.monotonic() < ends_s, of.read_text()
        time.sleep(0.05)


def clean() -> dict[str, str]:
    """The environment of these tests, without what would change what a command does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEADWAY_", "MAKE", "MFLAGS"))}
    return {**kept, "no_proxy": "127.0.0.1"}


def type_all(blocks: Iterable[Block], scene: Scene, scratch: Path) -> None:
    """Type the blocks of one page into one shell. Fails at the first that fails, with what the shell printed."""
    programs = scratch / "bin"
    programs.mkdir()
    (programs / "headway").write_text(f'#!/bin/sh\nexec {sys.executable} -m headway "$@"\n')
    (programs / "curl").write_text(
        '#!/bin/sh\nPATH="${PATH#*:}" exec curl --fail-with-body --silent --show-error "$@"\n'
    )
    for program in programs.iterdir():
        program.chmod(0o755)
    shell = subprocess.Popen(
        ["bash", "-c", script(blocks, scene, scratch)],
        cwd=scene.folder,
        env={**clean(), **scene.env, "PATH": f"{programs}:{scene.env.get('PATH', os.environ['PATH'])}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, said = shell.communicate(timeout=ENDS_IN_S)
    finally:
        _end(scratch / "pids")
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)  # what was not named and still runs
    at = re.findall(r"^▶ (.*)$", said, flags=re.MULTILINE)
    assert shell.returncode == 0, f"{at[-1]} ended with {shell.returncode}:\n{printed}\n{said}"


def script(blocks: Iterable[Block], scene: Scene, scratch: Path) -> str:
    """The blocks as one script, which names each before it runs it."""
    lines = ["set -euo pipefail"]
    for number, block in enumerate(blocks):
        lines.append(f"echo '▶ {block.where}' >&2")
        text = block.text
        for old, new in scene.replaced.items():
            text = text.replace(old, new)
        if block.language == "python":
            file = scratch / f"block_{number}.py"
            file.write_text(text)
            text = f"{sys.executable} {file}\n"
        lines += [_staying(line, scratch, number) for line in text.replace("\\\n", " ").splitlines()]
    return "\n".join(lines)


def _staying(line: str, scratch: Path, number: int) -> str:
    """The line; where it stays, in the background, and waited for until it is there."""
    words = next((words for begins, words in STAYS.items() if re.match(begins, line)), None)
    if words is None:
        return line
    log = scratch / f"stays-{number}.log"
    begun = f"{line.split('  #')[0]} > {log} 2>&1 & echo $! >> {scratch}/pids"
    seen = f"until grep -q '{words}' {log}; do sleep 0.05; done"
    waited = f'timeout {READY_S:.0f} bash -c "{seen}"'
    return f"{begun}\n{waited} || {{ cat {log} >&2; false; }}"


def _end(pids: Path) -> None:
    """End what stays, the last first, and see it gone."""
    for pid in map(int, reversed(pids.read_text().split() if pids.exists() else [])):
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            process.terminate()
            process.wait(READY_S)
