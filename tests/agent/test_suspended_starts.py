"""RQ's own workers, which end with 1 while somebody has suspended RQ: no failures, no back-off, at work afterwards."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from rq.suspension import resume, suspend

from headway.agent.workers.starts.suspended_starts import SUSPENDED_START_PAUSE_S, SuspendedStarts
from headway.scaling.model import Assignment
from headway.wire.v1 import agent_pb2
from support.agent_host import Host, one_host
from support.fake_control import row
from support.waiting import eventually

KIND = ("mail", "rq")
SAID = 'RQ is currently suspended, to resume job execution run "rq resume"'


@pytest.fixture
def host(tmp_path: Path, valkey_url: str) -> Iterator[Host]:
    host_file = f"""
    [templates.rq]
    argv = ["{Path(sys.executable).with_name("rq")}", "worker", "--url", "{valkey_url}", "mail"]
    ready_pattern = "Listening on"
    """
    with one_host(tmp_path, host_file) as host:
        yield host


def states(host: Host) -> set[int]:
    """Of every worker in every report."""
    return {worker.state for report in host.control.reports for worker in report.workers}


@pytest.mark.e2e  # RQ takes its time to start
@pytest.mark.timeout(600)
def test_workers_that_end_because_of_a_suspension_have_not_failed(host: Host, valkey_url: str) -> None:
    """Also before the control plane knows of it, and of an agent whose control plane never says so."""
    redis = Redis.from_url(valkey_url)
    suspend(redis)
    host.agent()
    host.control.assign(row(2, template="rq"))
    eventually(lambda: host.logged().count("exit=1") >= 4, within_s=150.0)
    assert "failed pool=mail" not in host.logged()
    assert agent_pb2.WORKER_STATE_BACKING_OFF not in states(host)
    resume(redis)
    host.control.running(2)
    assert "failed pool=mail" not in host.logged()


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_a_suspended_pool_gets_no_worker_until_it_may(host: Host) -> None:
    host.agent()
    host.control.assign(row(1, template="rq"), row(1, template="rq", pool="news", is_suspended=True))
    host.control.running(1)
    assert {worker.pool for report in host.control.reports for worker in report.workers} == {"mail"}
    host.control.assign(row(1, template="rq"), row(1, template="rq", pool="news"))
    eventually(lambda: len(host.control.pids(pool="news")) == 1, within_s=150.0)


def test_such_a_start_is_repeated_after_a_moment() -> None:
    starts = SuspendedStarts()
    rows = [Assignment(pool=pool, host_id="h", template="rq", base_workers=1) for pool in ("mail", "news")]
    assert starts.note(KIND, last_words=f"\x1b[31m{SAID}\x1b[0m", now_s=100.0)
    assert [each.is_suspended for each in starts.marked(rows, now_s=100.0)] == [True, False]
    assert starts.holds(KIND, now_s=99.9 + SUSPENDED_START_PAUSE_S)
    assert not starts.holds(KIND, now_s=100.0 + SUSPENDED_START_PAUSE_S)
    assert [each.is_suspended for each in starts.marked(rows, now_s=200.0)] == [False, False]


@pytest.mark.parametrize("said", ["", "Error 111 connecting to localhost:6379. Connection refused.", "suspended"])
def test_other_ends_are_failures_as_ever(said: str) -> None:
    starts = SuspendedStarts()
    assert not starts.note(KIND, last_words=said, now_s=100.0)
    assert not starts.holds(KIND, now_s=100.0)
