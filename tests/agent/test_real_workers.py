"""RQ's own workers and the agent: killed while they have jobs in hand, none is restarted, none doubled, none lost; and
none is replaced for what each of them takes.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from rq import Queue

from headway.local import procfs
from support.agent_host import Host, ended, one_host
from support.fake_control import row
from support.processes import runs
from support.waiting import eventually

JOBS = """
import pathlib, time

def work(number, folder):
    folder = pathlib.Path(folder)
    with (folder / "begun").open("a") as begun:
        print(number, file=begun, flush=True)
    while not (folder / "go").exists():
        time.sleep(0.02)
    with (folder / "done").open("a") as done:
        print(number, file=done, flush=True)
"""


@pytest.fixture
def host(tmp_path: Path, valkey_url: str) -> Iterator[Host]:
    (tmp_path / "mail_jobs.py").write_text(JOBS)
    host_file = f"""
    [templates.rq]
    argv = ["{Path(sys.executable).with_name("rq")}", "worker", "--url", "{valkey_url}", "mail"]
    environment = {{ PYTHONPATH = "{tmp_path}" }}
    ready_pattern = "Listening on"
    drain_timeout_s = 300
    """
    with one_host(tmp_path, host_file) as host:
        yield host


QUICK = """
import sys
from headway.__main__ import main
from headway.agent.policy import recycling
recycling.RECYCLING_TRIAL_S = 1.0
sys.exit(main(sys.argv[1:]))
"""
"""An agent that needs not wait for a minute before it replaces a worker for its memory."""


def lines(path: Path) -> list[str]:
    return sorted(path.read_text().split()) if path.exists() else []


@pytest.mark.e2e  # RQ takes its time to start
@pytest.mark.timeout(600)
def test_jobs_in_hand_outlive_the_agent_that_started_their_workers_and_end_once(
    host: Host, valkey_url: str, tmp_path: Path
) -> None:
    first = host.agent()
    host.control.assign(row(2, template="rq"))
    pids = eventually(lambda: len(found := host.control.pids()) == 2 and found, within_s=150.0)
    queue = Queue("mail", connection=Redis.from_url(valkey_url))
    for number in range(4):
        queue.enqueue("mail_jobs.work", number, str(tmp_path))
    eventually(lambda: len(lines(tmp_path / "begun")) == 2, within_s=150.0)
    first.kill()
    first.wait()
    host.control.reports.clear()
    second = host.agent()
    assert host.control.running(2) == pids
    host.control.assign(row(0, template="rq"))  # and the new one drains them: no job is cut short
    eventually(lambda: "draining pool=mail" in host.logged())
    assert all(runs(pid) for pid in pids)
    (tmp_path / "go").touch()
    eventually(lambda: not any(runs(pid) for pid in pids), within_s=150.0)
    begun, done = lines(tmp_path / "begun"), lines(tmp_path / "done")
    assert begun == done
    assert len(set(done)) == len(done) >= 2
    assert len(queue) == 4 - len(done), "what was not begun still waits for a worker"
    assert "forcing" not in host.logged()
    assert ended(second) == 0


def with_scheduler(valkey_url: str) -> str:
    """A host.toml whose workers move jobs that are due later."""
    return f"""
    [templates.rq]
    argv = ["{Path(sys.executable).with_name("rq")}", "worker", "--with-scheduler", "--url", "{valkey_url}", "mail"]
    ready_pattern = "Listening on"
    """


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_the_worker_that_holds_the_lock_of_the_scheduler_is_the_last_to_leave(tmp_path: Path, valkey_url: str) -> None:
    valkey = Redis.from_url(valkey_url, decode_responses=True)
    with one_host(tmp_path, with_scheduler(valkey_url)) as host:
        agent = host.agent()
        host.control.assign(row(3, template="rq"))
        pids = eventually(lambda: len(found := host.control.pids()) == 3 and found, within_s=150.0)
        holder = eventually(lambda: valkey.get("rq:scheduler-lock:mail"))
        scheduler_pid = int(valkey.hget(f"rq:scheduler:{holder}", "pid"))
        stays = procfs.stat(scheduler_pid).parent_pid
        assert stays in pids
        eventually(lambda: all(each.memory_bytes for each in host.control.workers()), within_s=60.0)  # it was polled
        host.control.assign(row(1, template="rq"))
        eventually(lambda: sum(runs(pid) for pid in pids) == 1, within_s=150.0)
        assert runs(stays)
        host.control.assign(row(0, template="rq"))
        eventually(lambda: not runs(stays), within_s=150.0)
        assert ended(agent) == 0


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_the_scheduler_of_a_killed_worker_ends_and_another_worker_is_started(tmp_path: Path, valkey_url: str) -> None:
    """The scheduler runs on without its worker, and took its place for as long as it did: no job was begun any more."""
    valkey = Redis.from_url(valkey_url, decode_responses=True)
    with one_host(tmp_path, with_scheduler(valkey_url)) as host:
        agent = host.agent()
        host.control.assign(row(1, template="rq"))
        (pid,) = eventually(lambda: host.control.pids(), within_s=150.0)
        holder = eventually(lambda: valkey.get("rq:scheduler-lock:mail"), within_s=60.0)
        scheduler_pid = int(valkey.hget(f"rq:scheduler:{holder}", "pid"))
        assert procfs.stat(scheduler_pid).parent_pid == pid
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not runs(scheduler_pid), within_s=60.0)
        (other,) = eventually(
            lambda: {each for each in host.control.pids() if each != pid and runs(each)}, within_s=60.0
        )
        assert other != scheduler_pid
        host.control.assign(row(0, template="rq"))
        eventually(lambda: not runs(other), within_s=150.0)
        assert ended(agent) == 0


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_idle_workers_that_take_more_than_they_may_from_the_start_are_left_alone(host: Host) -> None:
    """Field C5: each was replaced by one that takes as much, without end."""
    text = host.host_file.read_text()
    host.host_file.write_text(f"{text}\n[templates.rq.recycle]\nmemory_bytes = 1000000\n")
    host.agent(program=("-c", QUICK))
    host.control.assign(row(1, template="rq"))
    (pid,) = eventually(lambda: host.control.pids(), within_s=150.0)
    eventually(lambda: "not recycled by memory template=rq" in host.logged(), within_s=150.0)
    eventually(lambda: procfs.since_boot_s() - procfs.stat(pid).started_at_s > 10.0, within_s=150.0)
    assert host.control.pids() == {pid}
    assert "to be recycled" not in host.logged()
    assert host.logged().count("not recycled by memory") == 1
