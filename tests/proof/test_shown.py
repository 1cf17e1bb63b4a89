"""What goes wrong, and what people see of it: each cause is made, and each view is read until it says so.

Writes ``docs/proofs/shown.md``. The parts are real: `headway up`, its children, a Valkey, RQ workers and jobs.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import redis
from prometheus_client.parser import text_string_to_metric_families
from rq import Queue

from headway.store.embedded import Server, ensure_valkey
from ports import free_port
from processes import javas_below
from proof.conftest import PROOFS

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3000)]

GREEN = {"on_time", "idle", "scaling"}
READY_WITHIN_S = 400.0
LOOK_S = 0.25
JOBS = """
import time
def work(seconds, fails):
    time.sleep(seconds)
    if fails:
        raise RuntimeError("as it was told to")
"""
PROFILES = """
brokers: {{redis: '{url}'}}
pools:
  mail: {{queues: [redis/mail], template: rq, workers_min: 1, workers_max: 4, objective: {{target_s: 10}}}}
"""
HOST = """
[templates.rq]
argv = ["{rq}", "worker", "--worker-class", "headway.workers.rq.DrainingWorker", "--url", "{url}", "mail"]
working_directory = "{folder}"
ready_pattern = "Listening on"
drain_timeout_s = 5
"""


@dataclass
class Site:
    """One machine with `headway up`, and somebody who sends jobs."""

    folder: Path
    broker: Server
    url: str
    process: subprocess.Popen[bytes]
    is_over: threading.Event = field(default_factory=threading.Event)
    fails: bool = False

    def send(self) -> None:
        """Two jobs a second, for as long as the broker takes them."""
        with redis.Redis.from_url(self.broker.url, socket_timeout=1.0) as client:
            queue = Queue("mail", connection=client)
            while not self.is_over.wait(0.5):
                with suppress(redis.RedisError):
                    queue.enqueue("jobs.work", 0.2, self.fails)

    def read(self, path: str) -> Any:
        """What the control plane answers; None where it does not."""
        with suppress(httpx.HTTPError):
            answer = httpx.get(f"{self.url}{path}", timeout=5.0, trust_env=False)
            return answer.text if path == "/metrics" else answer.json()
        return None

    def pid(self, role: str) -> int:
        rows = json.loads((self.folder / ".headway" / "children.json").read_text())
        return int(next(row["pid"] for row in rows if row["name"] == role))

    def jvm(self) -> psutil.Process:
        (java,) = javas_below(self.pid("pipeline"))
        return java

    def top(self) -> str:
        environment = {**os.environ, "HEADWAY_URL": self.url}
        asked = [sys.executable, "-m", "headway", "top", "--once"]
        return subprocess.run(asked, env=environment, capture_output=True, text=True, check=False, timeout=180).stdout

    def shown(self) -> dict[str, str]:
        """View -> what it says is wrong; without those that say that all is well."""
        pools, health, metrics = self.read("/v1/pools"), self.read("/v1/health"), self.read("/metrics")
        found = {}
        pool = pools["pools"][0] if pools and pools["pools"] else None
        if pool is None or pool["state"] not in GREEN:
            found["dashboard and top"] = "no answer" if pool is None else _state(pool)
        if health is None or health["status"] != "ok":
            found["health"] = "no answer" if health is None else health["reasons"][0]
        if metrics is None or _is_unhealthy(metrics):
            found["/metrics"] = "no answer" if metrics is None else "headway_healthy 0"
        return found

    def is_well(self) -> bool:
        return self.shown() == {}


def _state(pool: dict[str, Any]) -> str:
    return f"{pool['state']}: {'; '.join(pool['causes'])}"


def _is_unhealthy(metrics: str) -> bool:
    families = text_string_to_metric_families(metrics)
    return any(each.value == 0 for family in families if family.name == "headway_healthy" for each in family.samples)


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    (folder / "jobs.py").write_text(JOBS)
    with ensure_valkey(folder / "broker") as broker:
        rq = Path(sys.executable).with_name("rq")
        (folder / "profiles.yaml").write_text(PROFILES.format(url=broker.url))
        (folder / "host.toml").write_text(HOST.format(url=broker.url, rq=rq, folder=folder))
        http, grpc = free_port(), free_port()
        words = ["up", "--plain", "--stop-workers", "--http-address", f"127.0.0.1:{http}"]
        argv = [sys.executable, "-m", "headway", *words, "--grpc-address", f"127.0.0.1:{grpc}"]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}
        with (folder / "up.log").open("wb") as log:
            process = subprocess.Popen(argv, cwd=folder, env=clean, stdout=log, stderr=log, start_new_session=True)
        found = Site(folder=folder, broker=broker, url=f"http://127.0.0.1:{http}", process=process)
        sender = threading.Thread(target=found.send, daemon=True)
        sender.start()
        try:
            yield found
        finally:
            found.is_over.set()
            process.terminate()
            try:
                process.wait(120)
            except subprocess.TimeoutExpired:
                process.kill()
            sender.join(10)


def _signalled(pid: Callable[[Site], int], number: signal.Signals) -> Callable[[Site], object]:
    return lambda site: os.kill(pid(site), number)


def _stopped(pid: Callable[[Site], int]) -> tuple[Callable[[Site], object], Callable[[Site], object]]:
    return _signalled(pid, signal.SIGSTOP), _signalled(pid, signal.SIGCONT)


def _jvm(site: Site) -> int:
    return site.jvm().pid


def _role(name: str) -> Callable[[Site], int]:
    return lambda site: site.pid(name)


def _fail(site: Site) -> None:
    site.fails = True


def _succeed(site: Site) -> None:
    site.fails = False


def _host(what: str) -> Callable[[Site], object]:
    def act(site: Site) -> None:
        (host,) = site.read("/v1/hosts")["hosts"]
        body = {"reason": "a proof"} if what == "drain" else {}
        httpx.post(f"{site.url}/v1/hosts/{host['name']}/{what}", json=body, timeout=10, trust_env=False)

    return act


@dataclass(frozen=True)
class Cause:
    name: str
    begin: Callable[[Site], object]
    end: Callable[[Site], object]
    within_s: float
    """None of the views is green after this long, and each names the cause."""
    names: str = ""
    """What health says, in part."""
    may_heal: bool = False
    """It is mended so soon that nothing has to show it."""


def _nothing(_: Site) -> None:
    """It heals by itself."""


CAUSES = [
    Cause(
        "the pipeline's JVM is stopped (SIGSTOP)", _signalled(_jvm, signal.SIGSTOP), _nothing, 15.0, "not responding"
    ),
    Cause("the pipeline's JVM is killed", _signalled(_jvm, signal.SIGKILL), _nothing, 15.0, "crash"),
    Cause(
        "the pipeline is killed, its JVM with it", _signalled(_role("pipeline"), signal.SIGKILL), _nothing, 15.0, "pip"
    ),
    Cause("the collector is stopped (SIGSTOP)", *_stopped(_role("collect")), 20.0, "headway collect"),
    Cause("the collector is killed", _signalled(_role("collect"), signal.SIGKILL), _nothing, 15.0, may_heal=True),
    Cause("the broker does not answer (SIGSTOP)", *_stopped(lambda site: site.broker.pid), 20.0, "headway collect"),
    Cause("the only host is drained: no capacity", _host("drain"), _host("uncordon"), 15.0, "no reachable host"),
    Cause("the agent is stopped (SIGSTOP)", *_stopped(_role("agent")), 60.0, "unreachable"),
    Cause("every job fails", _fail, _succeed, 60.0, "too many fail"),
]
"""The bound of an agent is its lease, 45 s, and some seconds. Failures come last: for 5 minutes they are not over."""


def test_each_cause_is_shown_wherever_one_looks(tmp_path: Path) -> None:
    rows: list[tuple[str, ...]] = []
    try:
        with site(tmp_path) as up:
            for cause in CAUSES:
                _until(up.is_well, up, within_s=READY_WITHIN_S)
                rows.append(_row(cause, up))
    finally:
        _write(rows)


def _row(cause: Cause, up: Site) -> tuple[str, ...]:
    began_s, seen = time.monotonic(), {}
    cause.begin(up)
    try:
        while len(seen) < 3 or (cause.names and cause.names not in seen["health"][1]):
            after_s = time.monotonic() - began_s
            for view, told in up.shown().items():
                if view not in seen or (view == "health" and cause.names not in seen[view][1]):
                    seen[view] = after_s, told
            if after_s > cause.within_s:
                assert cause.may_heal, f"{cause.name}: after {after_s:.1f} s only {seen}"
                return (cause.name, *(["nothing: it is back before a view is red"] * 4))
            time.sleep(LOOK_S)
        top = up.top()
    finally:
        cause.end(up)
    told = [f"{after_s:.0f} s: {text}" for _, (after_s, text) in sorted(seen.items())]
    return (cause.name, *told, _alert(seen["dashboard and top"][1], top))


def _alert(state: str, top: str) -> str:
    """Which of the documented alerts fires."""
    assert top.strip(), "top prints something"
    word = state.partition(":")[0]
    return "`headway_healthy`" + (f', `headway_pool_state{{state="{word}"}}`' if word not in GREEN else "")


def _until(holds: Callable[[], bool], up: Site, *, within_s: float) -> None:
    until_s = time.monotonic() + within_s
    while not holds():
        assert up.process.poll() is None, (up.folder / "up.log").read_text()
        assert time.monotonic() < until_s, f"{up.shown()}\n{(up.folder / 'up.log').read_text()}"
        time.sleep(LOOK_S)


def _write(rows: list[tuple[str, ...]]) -> None:
    head = ("what goes wrong", "/metrics", "dashboard and `top`", "health", "alerts")
    lines = ["| " + " | ".join(each) + " |" for each in (head, ("---",) * len(head), *rows)]
    text = "# What goes wrong, and what people see of it\n\nSeconds from the cause to the first word of each view, and "
    text += "that word. Written by `pytest -m proof tests/proof/test_shown.py`, with `headway up` and real RQ workers"
    machine = f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}"
    (PROOFS / "shown.md").write_text(f"{text} ({machine}, {time.strftime('%Y-%m-%d')}).\n\n" + "\n".join(lines) + "\n")
