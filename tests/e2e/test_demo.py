"""`headway demo` as a user runs it: a process, its exit status, its report, and what it leaves behind: nothing."""

import json
import os
import signal
import time
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow.dataset as ds
import pytest
import redis

from headway.local import procfs
from headway_spark.event_log.log_files import held
from support.demos import END_WITHIN_S, Demo, demos
from support.processes import runs

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

GONE_WITHIN_S = 10.0
AGAIN_S = 0.2  # between two connections of a viewer


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    with demos(tmp_path / "data") as start:
        yield start


def test_workers_come_and_go_what_is_killed_comes_back_no_job_is_lost_or_begun_twice_and_nothing_is_left(
    demo: Callable[..., Demo], tmp_path: Path
) -> None:
    out = tmp_path / "report.json"
    running = demo("--chaos", "--for", "30s", "--report", str(out), own_ports=False)
    url = running.url()
    with ThreadPoolExecutor() as viewer:
        last = viewer.submit(_last_event, running, url)
        job_id, pid = _followed(running, url)
        assert running.end(within_s=500) == 0, running.said
    event, shown = last.result()

    report = json.loads(out.read_text())
    assert report["jobs"] == report["done_jobs"] >= 20
    assert (report["lost_jobs"], report["jobs_started_again"]) == (0, 0)
    assert report["workers_max_seen"] >= 1
    assert report["workers_left"] == 0
    assert report["scale_actions"] >= 2, "up from nothing, and down to nothing again"
    assert report["worker_seconds"] > 0
    assert report["fixed_pool"]["workers"] >= 1
    assert [row["way"] for row in report["comparison"]][:4] == ["headway", "peak", "keda", "best_fixed"]
    assert "pool sized for the peak, as teams run today" in (running.data / "report.html").read_text()
    assert report["ready_s"] > 0
    leader, agent, spark = report["faults"]
    assert leader["back_after_s"] is not None
    assert agent["back_after_s"] is not None
    assert agent["workers_adopted"] == agent["workers_kept"], running.said
    assert spark["what"] == "Spark's JVM"
    assert event == "ended"
    assert dict(shown["facts"])["workers"].endswith(f"{report['worker_seconds']:.0f} worker-seconds")
    assert shown["page"] == str(running.data / "report.html")
    assert not runs(pid), "the worker that was followed is gone"
    _assert_nothing_left(running.data)
    assert {"started", "finished"} <= _kinds_in_event_log(running.data, job_id)


def test_a_second_demo_in_the_same_folder_is_refused_and_ctrl_c_while_spark_warms_up_leaves_nothing(
    demo: Callable[..., Demo],
) -> None:
    running = demo()
    running.until(lambda: "control plane  " in running.said)
    second = demo()
    assert second.end(within_s=120) == 2
    assert f"headway: another headway (process {running.process.pid}) uses the data folder" in second.said
    running.process.send_signal(signal.SIGINT)
    assert running.end(within_s=END_WITHIN_S) == 128 + signal.SIGINT, running.said
    _assert_nothing_left(running.data)


def test_ctrl_c_while_the_agent_is_away_ends_its_workers_as_well(demo: Callable[..., Demo]) -> None:
    running = demo()
    _followed(running, running.url())
    os.kill(running.pid_of("agent"), signal.SIGKILL)
    running.process.send_signal(signal.SIGINT)
    assert running.end(within_s=END_WITHIN_S) == 128 + signal.SIGINT, running.said
    _assert_nothing_left(running.data)


def test_after_kill_9_the_next_start_recovers_and_sigterm_ends_it_while_jobs_run(
    demo: Callable[..., Demo], tmp_path: Path
) -> None:
    killed = demo()
    _followed(killed, killed.url())
    killed.process.kill()
    killed.end(within_s=60)

    out = tmp_path / "report.json"
    running = demo("--report", str(out))
    _followed(running, running.url())
    running.process.send_signal(signal.SIGTERM)
    assert running.end(within_s=END_WITHIN_S) == 128 + signal.SIGTERM, running.said
    report = json.loads(out.read_text())
    assert report["is_interrupted"]
    assert report["jobs"] > 0
    _assert_nothing_left(running.data)


def _last_event(running: Demo, url: str) -> tuple[str, Any]:
    """What a viewer of the dashboard is sent last, who connects again as its page does."""
    event = data = ""
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        while event != "ended" and running.process.poll() is None:
            with suppress(httpx.TransportError), client.stream("GET", "/v1/events?changes=true") as answer:
                for line in answer.iter_lines():
                    name, _, value = line.partition(": ")
                    event = value if name == "event" else event
                    data = value if name == "data" else data
            time.sleep(AGAIN_S)
    return event, json.loads(data)


def _followed(running: Demo, url: str) -> tuple[str, int]:
    """One job, from the queue to the process that works on it, and that process to the agent that started it."""
    templates = tomllib.loads((running.data / "host.toml").read_text())["templates"]
    words = templates["mail"]["argv"]
    with (
        redis.Redis.from_url(words[words.index("--url") + 1], decode_responses=True) as broker,
        httpx.Client(base_url=url, timeout=60, trust_env=False) as client,
    ):

        def known() -> tuple[str, int] | None:
            # A worker or its agent may be gone before the control plane is asked for it: then it is another's turn.
            with suppress(httpx.TransportError):
                pools = {each["pid"]: each["pool"] for each in _workers(client)}
                agent_pid = running.pid_of("agent")
                at_work = ((job_id, pid) for job_id, pid in _jobs_at_work(broker) if _parent(pid) == agent_pid)
                return next((each for each in at_work if pools.get(each[1]) in templates), None)
            return None

        return running.until(known)


def _jobs_at_work(broker: redis.Redis) -> Iterator[tuple[str, int]]:
    """Each with the process of its worker."""
    for key in broker.scan_iter("rq:job:*", count=1000):
        status, worker = broker.hmget(key, "status", "worker_name")
        pid = broker.hget(f"rq:worker:{worker}", "pid") if status == "started" else None
        if pid is not None:
            yield key.removeprefix("rq:job:"), int(pid)


def _parent(pid: int) -> int | None:
    known = procfs.stat(pid)
    return None if known is None or known.is_over else known.parent_pid


def _workers(client: httpx.Client) -> list[dict[str, Any]]:
    hosts = client.get("/v1/hosts").json().get("hosts", [])
    return [worker for host in hosts for worker in host["workers"]]


def _kinds_in_event_log(data: Path, job_id: str) -> set[str]:
    with held(data / "events") as files:
        rows = ds.dataset([str(path) for path in files], format="parquet").to_table(
            columns=["kind"], filter=ds.field("job_id") == job_id
        )
        return set(rows.column("kind").to_pylist())


def _assert_nothing_left(data: Path) -> None:
    """Nor a moment later: what its parent's end has ended may need the processor for that once more."""
    until_s = time.monotonic() + GONE_WITHIN_S
    while left := [each for each in psutil.process_iter() if each.pid != os.getpid() and _mentions(each, str(data))]:
        assert time.monotonic() < until_s, left
        time.sleep(0.1)


def _mentions(process: psutil.Process, text: str) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        words = [*process.cmdline(), *process.environ().values()]
    except psutil.Error:
        return False
    return any(text in word for word in words)
