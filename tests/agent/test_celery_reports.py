"""Celery's own workers report to a real agent: early acknowledgement, no heartbeat, nothing in the application."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from celery import Celery

from headway.wire.v1 import agent_pb2, telemetry_pb2
from support.agent_host import Host, ended, one_host
from support.fake_control import row
from support.processes import runs
from support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

APP = """
import os, pathlib, time
from celery import Celery
app = Celery("shop", broker=os.environ["BROKER_URL"])

@app.task(name="work")
def work(path):
    pathlib.Path(path).with_suffix(".begun").touch()
    while not pathlib.Path(path).exists():
        time.sleep(0.05)
    pathlib.Path(path).with_suffix(".ended").touch()
"""
RARELY_MEASURED = """
from headway.agent.monitoring import monitor
monitor.SAMPLE_EVERY_S = 30.0
from headway.__main__ import main
raise SystemExit(main())
"""
PATIENT = """
from headway.agent.reporting import reporters
reporters.FIRST_WORD_S = 120.0
from headway.__main__ import main
raise SystemExit(main())
"""
POOLS = {"prefork": 2, "threads": 4, "gevent": 4, "solo": 1}


@pytest.fixture
def broker_url(valkey_url: str) -> str:
    parts = urlsplit(valkey_url)
    return valkey_url if parts.scheme == "redis" else f"redis+socket://{parts.path}?virtual_host=0"


@pytest.fixture(params=POOLS)
def host(request: pytest.FixtureRequest, tmp_path: Path, broker_url: str) -> Iterator[Host]:
    (tmp_path / "shop.py").write_text(APP)
    host_file = f"""
    [templates.celery]
    argv = ["{Path(sys.executable).with_name("celery")}", "--app", "shop", "worker", "--pool", "{request.param}",
        "--concurrency", "{POOLS[request.param]}", "--loglevel", "INFO", "--without-heartbeat", "--without-mingle",
        "--without-gossip", "--hostname", "w-$(HEADWAY_WORKER_ID)@%h", "--prefetch-multiplier", "1"]
    environment = {{ BROKER_URL = "{broker_url}" }}
    slots = {POOLS[request.param]}
    ready_pattern = ' ready\\.$'
    ready_timeout_s = 300
    """
    with one_host(tmp_path, host_file) as host:
        yield host


def reported(host: Host, holds: Callable[[list[agent_pb2.Worker]], bool]) -> list[agent_pb2.Worker]:
    """The workers of the last report, once it says so. Who is idle is reported within seconds, the rest with others."""

    def found() -> list[agent_pb2.Worker] | None:
        workers = host.control.workers()
        return workers if holds(workers) else None

    return eventually(found, within_s=200.0)


def are_idle(*workers: agent_pb2.Worker) -> bool:
    return all(
        (each.HasField("is_busy"), each.is_busy, each.activity_source, each.running_jobs)
        == (True, False, "reporter", 0)
        for each in workers
    )


def test_a_running_job_is_known_over_a_restart_and_the_idle_worker_leaves(
    host: Host, tmp_path: Path, broker_url: str
) -> None:
    first = host.agent()
    host.control.assign(row(2, template="celery"))
    both = reported(host, lambda workers: len(workers) == 2 and are_idle(*workers))
    with Celery("shop", broker=broker_url) as app:
        app.send_task("work", (str(tmp_path / "go"),), task_id="job-1")
    eventually(lambda: (tmp_path / "go.begun").exists(), within_s=60.0)

    def is_known(workers: list[agent_pb2.Worker]) -> bool:
        busy = [each for each in workers if each.is_busy]
        others = [each for each in workers if not each.is_busy]
        named = [(job.job_id, job.queue, job.job_class) for each in busy for job in each.running]
        return named == [("job-1", "celery", "work")] and len(others) == 1 and are_idle(*others)

    (busy,) = (each for each in reported(host, is_known) if each.is_busy)
    (idle,) = (each for each in both if each.worker_id != busy.worker_id)
    assert (busy.activity_source, busy.running_jobs) == ("reporter", 1)

    first.kill()
    first.wait()
    host.control.reports.clear()
    second = host.agent()
    reported(host, is_known)
    host.control.assign(row(1, template="celery"))
    eventually(lambda: not runs(idle.pid), within_s=60.0)
    assert runs(busy.pid)
    (tmp_path / "go").touch()
    eventually(lambda: (tmp_path / "go.ended").exists(), within_s=60.0)
    (left,) = reported(host, lambda workers: len(workers) == 1 and are_idle(*workers))
    assert left.worker_id == busy.worker_id
    host.control.assign(row(0, template="celery"))
    eventually(lambda: not host.control.workers(), within_s=60.0)
    assert ended(second) == 0


@pytest.mark.parametrize("host", ["solo"], indirect=True)
def test_the_idle_worker_leaves_also_where_the_agent_has_only_just_begun(
    host: Host, tmp_path: Path, broker_url: str
) -> None:
    """The order came while no agent ran: the next one, which knew of neither worker, asked the younger."""
    first = host.agent()
    host.control.assign(row(1, template="celery"))
    (older,) = reported(host, lambda workers: len(workers) == 1 and are_idle(*workers))
    with Celery("shop", broker=broker_url) as app:
        app.send_task("work", (str(tmp_path / "one"),))
        eventually(lambda: (tmp_path / "one.begun").exists(), within_s=60.0)
        host.control.assign(row(2, template="celery"))
        reported(host, lambda workers: len(workers) == 2 and [each.is_busy for each in workers].count(False) == 1)
        app.send_task("work", (str(tmp_path / "two"),))
        eventually(lambda: (tmp_path / "two.begun").exists(), within_s=60.0)
    (tmp_path / "one").touch()
    both = reported(host, lambda workers: {each.worker_id for each in workers if are_idle(each)} == {older.worker_id})
    (younger,) = (each for each in both if each.worker_id != older.worker_id)
    for each in both:
        os.kill(each.pid, signal.SIGSTOP)  # as if the agent were back before they report again
    first.kill()
    first.wait()
    host.control.assign(row(1, template="celery"))
    polls = len(host.control.polls)
    host.agent(program=("-c", PATIENT))
    eventually(lambda: len(host.control.polls) > polls + 1, within_s=60.0)
    for each in both:
        os.kill(each.pid, signal.SIGCONT)
    eventually(lambda: not runs(older.pid), within_s=60.0)
    assert runs(younger.pid)
    assert f"draining pool=mail pid={younger.pid}" not in host.logged()
    (tmp_path / "two").touch()
    eventually(lambda: (tmp_path / "two.ended").exists(), within_s=60.0)


@pytest.mark.parametrize("host", ["threads"], indirect=True)
def test_a_job_that_an_idle_worker_has_begun_is_reported_before_workers_are_measured_again(
    host: Host, tmp_path: Path, broker_url: str
) -> None:
    host.agent(program=("-c", RARELY_MEASURED))
    host.control.assign(row(1, template="celery"))
    reported(host, lambda workers: len(workers) == 1 and are_idle(*workers))
    with Celery("shop", broker=broker_url) as app:
        app.send_task("work", (str(tmp_path / "go"),), task_id="job-1")
    eventually(lambda: (tmp_path / "go.begun").exists(), within_s=60.0)
    eventually(lambda: [each.is_busy for each in host.control.workers()] == [True], within_s=15.0)
    (tmp_path / "go").touch()


@pytest.mark.parametrize("host", ["threads"], indirect=True)
def test_a_job_that_ends_while_no_agent_runs_is_reported_by_the_next(
    host: Host, tmp_path: Path, broker_url: str
) -> None:
    """It was read before the control plane had answered which queues are whose, and left out."""
    first = host.agent()
    host.control.assign(row(1, template="celery"))
    host.control.answer.pools.add(pool="mail", queues=["shop/celery"])
    reported(host, lambda workers: len(workers) == 1 and are_idle(*workers))
    with Celery("shop", broker=broker_url) as app:
        app.send_task("work", (str(tmp_path / "go"),), task_id="job-1")
    eventually(lambda: (tmp_path / "go.begun").exists(), within_s=60.0)
    reported(host, lambda workers: [each.is_busy for each in workers] == [True])
    first.kill()
    first.wait()
    (tmp_path / "go").touch()
    eventually(lambda: (tmp_path / "go.ended").exists(), within_s=60.0)
    host.agent()

    def has_finished() -> bool:
        events = [each for batch in host.control.batches for each in batch.events if each.job_id == "job-1"]
        return telemetry_pb2.EVENT_KIND_FINISHED in {each.kind for each in events}

    eventually(has_finished, within_s=60.0)
