"""What a control plane in the hands of an enemy can make a host do: run what the host has configured, and no more."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st

from headway.agent.desired_state import within
from headway.scaling.model import Assignment
from headway.wire.v1 import agent_pb2
from support.agent_host import Host, one_host
from support.fake_control import row
from support.processes import runs
from support.waiting import eventually

pytestmark = pytest.mark.e2e

# Every text and every run of bytes in what an agent receives, and the only thing that becomes of it.
TEXTS = {
    "EnrolResponse.cluster_id": "compared, written to identity.json, and told again",
    "EnrolResponse.host_id": "the same",
    "EnrolResponse.credential": "the same; sent as a header",
    "ReportResponse.cluster_id": "compared",
    "ReportResponse.credential": "written to identity.json and sent as a header",
    "PollResponse.cluster_id": "compared",
    "Assignment.pool": "a label in logs and reports, and the value of HEADWAY_POOL, which marks a worker",
    "Assignment.template": "a key of the host's own templates; one that is not among them starts nothing",
    "KillOrder.worker_id": "compared with the ids of the host's own workers; one that is none of these ends nothing",
    "KillOrder.requested_by": "printed in the log",
    "PoolQueues.pool": "compared with the pool of a worker",
    "PoolQueues.queues": "compared with the queues of jobs that workers report, and sent with their events; one that "
    "queues_allowed of the host's own template matches is a word of a command line, where that has a place for it",
}

HOST_FILE = """
[host]
workers_max = 5

[templates.sleep]
argv = ["sleep", "600"]
ready_after_s = 0.0
drain_timeout_s = 5
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with one_host(tmp_path, HOST_FILE) as host:
        yield host


def _received() -> Iterator[tuple[Descriptor, FieldDescriptor]]:
    """Every field of every message that can reach an agent."""
    methods = agent_pb2.DESCRIPTOR.services_by_name["AgentService"].methods
    pending, seen = [method.output_type for method in methods], set()
    while pending:
        message = pending.pop()
        if message.full_name in seen:
            continue
        seen.add(message.full_name)
        for field in message.fields:
            yield message, field
            if field.message_type is not None:
                pending.append(field.message_type)


def test_no_field_that_an_agent_receives_is_a_command_line() -> None:
    """Numbers and flags count; a text is one of those above. A new one has to be checked by a person, here."""
    texts = {
        f"{message.name}.{field.name}"
        for message, field in _received()
        if field.type in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}
    }
    assert texts == TEXTS.keys()
    assert {message.name for message, _ in _received()} == {
        "EnrolResponse",
        "ReportResponse",
        "PollResponse",
        "Assignment",
        "WorkerHint",
        "PoolQueues",
        "KillOrder",
    }


def test_an_enemy_runs_what_is_configured_and_no_more_of_it_than_the_owner_allows(host: Host) -> None:
    agent = host.agent()
    huge = 2**32 - 1
    host.control.assign(
        row(huge, template="sh -c 'touch /tmp/owned'"),
        row(huge, template="/bin/sh", pool="../../../../etc/cron.d/x"),
        row(huge, template="sleep", pool="a\0b"),
        row(huge, template="sleep", pool="x" * 100_000),
        row(huge, template="sleep", pool="", burst_workers=huge),
        row(huge, template="sleep", pool="LD_PRELOAD=/tmp/x.so\nPATH=/tmp", burst_workers=huge),
    )
    eventually(lambda: "no more than [host] workers_max = 5 are run here" in host.logged())
    eventually(lambda: len(host.control.polls) >= 2)
    host.control.assign(row(huge, template="sleep", pool="mail", burst_workers=huge), row(7, pool="web"))
    pids = host.control.running(5)
    processes = [psutil.Process(pid) for pid in pids]
    # In the middle of its start a process has no words and no environment.
    eventually(lambda: all(process.environ() for process in processes))
    assert {tuple(process.cmdline()) for process in processes} == {("sleep", "600")}
    assert {process.environ()["HEADWAY_POOL"] for process in processes} == {"mail"}
    assert len(psutil.Process(agent.pid).children(recursive=True)) == 5
    host.control.assign(row(2))  # and it is none the worse for it
    host.control.running(2)
    assert "which [host] workers_max allows" in host.logged()


def test_a_name_in_the_form_of_a_setting_is_the_value_of_one_variable(host: Host) -> None:
    host.agent()
    name = "LD_PRELOAD=/tmp/x.so\nPATH=/tmp"
    host.control.assign(row(1, pool=name))
    (pid,) = eventually(lambda: host.control.pids(pool=name))
    environ = eventually(psutil.Process(pid).environ)
    assert environ["HEADWAY_POOL"] == name
    assert "LD_PRELOAD" not in environ
    assert environ["PATH"] != "/tmp"


def test_answers_that_are_no_messages_leave_the_agent_at_work(host: Host) -> None:
    """Something else altogether speaks at the address after a while."""
    agent = host.agent()
    host.control.assign(row(2))
    before = host.control.running(2)
    host.control.cluster_id = "\ud7ff" * 10_000
    host.control.assign(row(2, template="sleep"), epoch=2**63, revision=2**63)
    eventually(lambda: len(host.control.enrolments) >= 2)
    assert agent.poll() is None
    assert all(map(runs, before))


counts = st.integers(0, 2**32 - 1)
rows = st.lists(
    st.builds(
        Assignment,
        pool=st.text(max_size=8),
        host_id=st.just("h"),
        template=st.text(max_size=4),
        base_workers=counts,
        burst_workers=counts,
    )
)


@given(rows=rows, workers_max=st.integers(0, 2_000))
def test_whatever_is_asked_for_the_bound_holds(rows: list[Assignment], workers_max: int) -> None:
    served = within(rows, workers_max=workers_max, templates={"", "a", "b"})
    started = [each.base_workers + each.burst_workers for each in served if each.template in {"", "a", "b"}]
    assert sum(started) <= workers_max
    assert all(each.base_workers + each.burst_workers <= workers_max for each in served)
    assert all("\0" not in each.pool and each.pool for each in served)


@given(rows=rows)
def test_what_the_bound_allows_is_served_as_it_is(rows: list[Assignment]) -> None:
    named = tuple(each for each in rows if each.pool and "\0" not in each.pool)
    assert within(rows, workers_max=2**64, templates=()) == named
