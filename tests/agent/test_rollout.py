"""Real agents renew real workers: a changed host file, worn workers, a host that is cut off."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headway.agent.config.host_file import HostFile
from headway.agent.config.templates import Template
from headway.agent.policy.rollout import upkeep
from headway.scaling import model
from headway.scaling.model import HostCapacity, Worker, WorkerState
from headway.wire.v1 import agent_pb2
from support.agent_host import Host, one_host
from support.fake_control import FakeControl, row, serving
from support.processes import runs
from support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SLEEP = """
[templates.sleep]
argv = ["sleep", "{seconds}"]
ready_after_s = 0.0
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with one_host(tmp_path, SLEEP.format(seconds=600)) as host:
        yield host


def replaced(host: Host, before: set[int], count: int) -> set[int]:
    """The pids, once all of ``before`` were replaced."""
    return eventually(
        lambda: (
            (now := host.control.pids())
            and len(now) == count == len(host.control.workers())
            and not now & before
            and now
        ),
        within_s=150.0,  # each replacement proves itself for 10 s before another worker goes
    )


def test_a_changed_template_rolls_its_workers_and_never_fewer_run_than_assigned(host: Host) -> None:
    agent = host.agent()
    host.control.assign(row(3))
    before = host.control.running(3)
    reported = len(host.control.reports)
    host.host_file.write_text(SLEEP.format(seconds=601))
    agent.send_signal(signal.SIGHUP)
    after = replaced(host, before, 3)
    eventually(lambda: all(psutil.Process(pid).cmdline() for pid in after))  # not so in the middle of its start
    assert {tuple(psutil.Process(pid).cmdline()) for pid in after} == {("sleep", "601")}
    assert not any(runs(pid) for pid in before)
    for report in host.control.reports[reported:]:
        running = [each for each in report.workers if each.state == agent_pb2.WORKER_STATE_RUNNING]
        assert 3 <= len(running) <= 4, "one more while one is replaced, never one less"
    assert host.logged().count("started pool=mail") == 6


def test_a_broken_host_file_keeps_workers_and_templates_and_says_why(host: Host) -> None:
    agent = host.agent()
    host.control.assign(row(1))
    before = host.control.running(1)
    host.host_file.write_text('[templates.sleep]\nargv = ["slepp"]\n')
    agent.send_signal(signal.SIGHUP)
    eventually(lambda: "the host file is kept as it was" in host.logged())
    assert "program 'slepp' is not on PATH" in host.logged()
    host.control.assign(row(2))
    assert host.control.running(2) > before


def test_a_change_is_noticed_by_itself_and_one_that_only_dies_costs_no_worker(host: Host) -> None:
    host.agent()
    host.control.assign(row(2))
    before = host.control.running(2)
    host.host_file.write_text(SLEEP.format(seconds=2).replace('"sleep", "2"', '"sh", "-c", "sleep 2; exit 3"'))
    eventually(lambda: "failed pool=mail" in host.logged())
    eventually(lambda: any(each.state == agent_pb2.WORKER_STATE_BACKING_OFF for each in host.control.workers()))
    assert host.control.pids() == before
    assert all(runs(pid) for pid in before)
    host.host_file.write_text(SLEEP.format(seconds=600))  # back to what they were started with
    eventually(lambda: len(host.control.workers()) == 2 and host.control.pids() == before)
    assert all(runs(pid) for pid in before)


def test_a_change_made_while_no_agent_ran_rolls_the_workers_too(host: Host) -> None:
    first = host.agent()
    host.control.assign(row(2))
    before = host.control.running(2)
    first.kill()
    first.wait()
    host.host_file.write_text(SLEEP.format(seconds=601))
    host.agent()
    host.control.assign(row(2, restart_generation=1))  # and a restart that was asked for beside it is the same one
    assert replaced(host, before, 2)
    assert {each.restart_generation for each in host.control.workers()} == {1}
    assert host.logged().count("started pool=mail") <= 5  # one may have begun before it was asked for


def test_a_newer_agent_with_the_same_host_file_rolls_nothing(host: Host) -> None:
    first = host.agent()
    host.control.assign(row(2))
    before = host.control.running(2)
    first.kill()
    first.wait()
    host.host_file.write_text(SLEEP.format(seconds=600) + "drain_timeout_s = 5\nlabels = {zone = 'a'}\n")
    host.control.reports.clear()
    host.agent()
    assert host.control.running(2) == before
    host.control.assign(row(3))  # it has long looked at them by then
    assert host.control.running(3) > before


TENANTS = f"""
[templates.sleep]
argv = ["{sys.executable}", "-c", "import time; time.sleep(600)", "$(HEADWAY_QUEUES)"]
queues_allowed = ["tenant-*"]
ready_after_s = 0.0
"""


def tenants(*names: str) -> list[agent_pb2.PoolQueues]:
    return [agent_pb2.PoolQueues(pool="mail", queues=[f"r/{name}" for name in names])]


def queues_of(pids: set[int]) -> set[tuple[str, ...]]:
    return {tuple(psutil.Process(pid).cmdline()[3:]) for pid in pids}


def test_a_new_queue_rolls_the_workers_one_by_one_idle_ones_first_and_a_new_agent_rolls_none(host: Host) -> None:
    host.host_file.write_text(TENANTS)
    first = host.agent()
    host.control.assign(row(2), pools=tenants("tenant-a"))
    before = host.control.running(2)
    assert queues_of(before) == {("tenant-a",)}
    busy, idle = before
    hints = [{"pid": pid, "is_busy": pid == busy, "age_s": 0.0} for pid in before]
    host.control.assign(row(2), pools=tenants("tenant-a", "tenant-b"), hints=hints)
    after = replaced(host, before, 2)
    assert queues_of(after) == {("tenant-a", "tenant-b")}
    # By the log: between two reports both may have been replaced.
    drained = [int(pid) for pid in re.findall(r"draining pool=mail pid=(\d+)", host.logged())]
    assert drained == [idle, busy], "the one without a job goes first"
    first.kill()
    first.wait()
    host.control.reports.clear()
    host.agent()
    assert host.control.running(2) == after
    host.control.assign(row(3), pools=tenants("tenant-a", "tenant-b"))
    assert host.control.running(3) > after


def test_workers_that_have_ended_enough_jobs_by_their_brokers_count_are_recycled(host: Host) -> None:
    host.host_file.write_text(SLEEP.format(seconds=600) + "recycle = { jobs = 100 }\n")
    host.agent()
    host.control.assign(row(2))
    worn, fresh = host.control.running(2)
    hints = [
        {"pid": pid, "is_busy": False, "age_s": 0.0, "ended_jobs": ended} for pid, ended in ((worn, 100), (fresh, 99))
    ]
    host.control.assign(row(2), hints=hints)
    eventually(lambda: worn not in host.control.pids() and len(host.control.pids()) == 2, within_s=150.0)
    assert fresh in host.control.pids()
    assert "it has ended 100 jobs" in host.logged()


def test_cut_off_for_too_long_only_templates_that_may_not_go_on_are_drained_and_start_again_afterwards(
    tmp_path: Path,
) -> None:
    control = FakeControl()
    with serving(control) as port:
        host = Host(tmp_path, control, port)
        host.host_file.write_text(
            SLEEP.format(seconds=600)
            + SLEEP.format(seconds=601).replace("sleep]", "pinned]")
            + "isolation_drain_after_s = 12\ndrain_timeout_s = 9\n"
        )
        host.agent()
        control.assign(row(1), row(1, pool="ledger", template="pinned"))
        eventually(lambda: control.pids() and control.pids(pool="ledger"))
        (plain,), (pinned,) = control.pids(), control.pids(pool="ledger")
    try:
        eventually(lambda: not runs(pinned), within_s=150.0)
        assert runs(plain)
        assert "draining the workers of template=pinned" in host.logged()
        with serving(control, port=port):
            fresh = eventually(lambda: control.pids(pool="ledger") - {pinned}, within_s=150.0)
            assert len(fresh) == 1
            assert control.pids() == {plain}
    finally:
        host.clear()


# --- room ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory_bytes", "free_gpus", "cramped"),
    [
        (400, 1, set()),
        (399, 1, {"big"}),  # 100 are taken, by one that was weighed
        (400, 0, {"gpu"}),
        (100, 0, {"big", "gpu", "small"}),
    ],
)
def test_a_template_is_cramped_when_one_more_worker_has_no_room(
    memory_bytes: int, free_gpus: int, cramped: set[str]
) -> None:
    templates = {
        "big": model.Template(name="big", content_hash="", memory_bytes=300),
        "small": model.Template(name="small", content_hash="", memory_bytes=10),
        "gpu": model.Template(name="gpu", content_hash="", memory_bytes=10, gpus=1),
    }
    workers = [
        Worker(
            worker_id="a",
            pool="mail",
            template="big",
            pid=os.getpid(),
            state=WorkerState.RUNNING,
            started_at_s=0.0,
            memory_bytes=100,
        ),
        Worker(worker_id="b", pool="mail", template="big", pid=0, state=WorkerState.BACKING_OFF, started_at_s=0.0),
    ]
    found = upkeep(
        HostFile(templates={"small": Template(name="small", argv=("sh",), working_directory="/", environment={})}),
        workers=workers,
        templates=templates,
        capacity=HostCapacity(cpu_cores=1.0, memory_bytes=memory_bytes),
        free_gpus=free_gpus,
        now_s=5.0,
    )
    assert (found.cramped, set(found.template_hashes)) == (cramped, {"small"})
    assert found.unproven == {"a", "b"}
