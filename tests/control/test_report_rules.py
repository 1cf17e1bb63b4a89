"""What a host may report of itself: what would trouble all is refused to the one that reports it."""

from dataclasses import replace
from typing import Any

import pytest

from headway.control.agents.report_validation import check_heartbeat, check_host_name, check_names, check_report
from headway.control.agents.report_writer import ReportHeartbeat
from headway.control.bounds import BREACHES_MAX
from headway.errors import Invalid
from headway.scaling.model import Exit, HostCapacity, StartUp, Template, Worker, WorkerState
from headway.store.hosts.host_reports import HostReport

NAN, INF = float("nan"), float("inf")
CAPACITY = HostCapacity(cpu_cores=2.0, memory_bytes=4_000, cpu_pressure=0.0, memory_pressure=1.0)
BEAT = ReportHeartbeat(
    host_id="h", boot_id="boot", sequence=2**63 - 1, epoch_seen=2**63 - 1, capacity=CAPACITY, content=b""
)
TEMPLATE = Template(name="rq", content_hash="", labels={"zone": "a"}, drain_timeout_s=0.0)
WORKER = Worker(worker_id="w", pool="mail", template="rq", pid=7, state=WorkerState.RUNNING, started_at_s=100.5)
REPORT = HostReport(
    host_id="h",
    boot_id="boot",
    sequence=1,
    epoch_seen=0,
    received_at_s=100.0,  # a worker may have begun a little later than now, by the roundings of its age
    capacity=CAPACITY,
    templates=(TEMPLATE,),
    workers=(WORKER,),
    start_ups=(StartUp(template="rq", start_up_s=0.0, cpu_s=0.0),),
    exits=(Exit(template="rq", exit_s=0.0),),
    labels={"zone": ""},
)


def test_what_an_agent_reports_is_taken() -> None:
    check_names(host_id="h", boot_id="boot")
    check_heartbeat(BEAT)
    check_report(REPORT)


def test_a_worker_that_is_known_by_its_output_alone_costs_no_host_its_voice() -> None:
    check_report(replace(REPORT, workers=(replace(WORKER, pool="", template=""),)))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sequence": 2**63}, "sequence=9223372036854775808 exceeds"),
        ({"epoch_seen": 2**64 - 1}, "epoch_seen=18446744073709551615 exceeds"),
        ({"boot_id": "a\0b"}, "boot_id is longer than 500 characters, or holds what cannot be printed"),
        ({"capacity": replace(CAPACITY, cpu_cores=NAN)}, "host: cpu_cores=nan"),
        ({"capacity": replace(CAPACITY, cpu_cores=1e308)}, "host: cpu_cores=1e"),  # times a million: no number any more
        ({"capacity": replace(CAPACITY, cpu_cores=-1.0)}, "host: cpu_cores=-1.0"),
        ({"capacity": replace(CAPACITY, memory_bytes=2**63)}, "host: memory_bytes="),
        ({"capacity": replace(CAPACITY, gpus=2**31)}, "host: gpus=2147483648"),
        ({"capacity": replace(CAPACITY, cpu_pressure=NAN)}, "host: cpu_pressure=nan is no share"),
        ({"capacity": replace(CAPACITY, memory_pressure=-0.5)}, "host: memory_pressure=-0.5 is no share"),
    ],
)
def test_a_beat_that_cannot_be_written_or_placed_on_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        check_heartbeat(replace(BEAT, **values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"labels": {"zone": "a\0"}}, "host: label 'zone'"),
        ({"labels": {"z" * 501: "a"}}, "host: label"),
        ({"templates": (replace(TEMPLATE, name=""),)}, "template '': its name"),
        ({"templates": (replace(TEMPLATE, cpu_cores=INF),)}, "template 'rq': cpu_cores=inf"),
        ({"templates": (replace(TEMPLATE, memory_bytes=2**64 - 1),)}, "template 'rq': memory_bytes"),
        ({"templates": (replace(TEMPLATE, drain_timeout_s=NAN),)}, "template 'rq': drain_timeout_s=nan"),
        ({"templates": (replace(TEMPLATE, labels={"": "a"}),)}, "template 'rq': label ''"),
        ({"templates": (replace(TEMPLATE, strict_queues=("a",) * 101),)}, "template 'rq': strict_queues"),
        ({"templates": (replace(TEMPLATE, strict_queues=("a", "")),)}, "template 'rq': strict_queues"),
        ({"workers": (replace(WORKER, pool="\0"),)}, "worker 'w': its id, pool, template or hash"),
        ({"workers": (replace(WORKER, worker_id=""),)}, "worker '': its id, pool, template or hash"),
        ({"workers": (replace(WORKER, started_at_s=NAN),)}, "worker 'w': its age of nan s"),
        ({"workers": (replace(WORKER, started_at_s=-1e12),)}, "worker 'w': its age of 1000000000100.0 s"),
        ({"workers": (replace(WORKER, restart_generation=2**63),)}, "worker 'w': a number of it"),
        ({"workers": (replace(WORKER, memory_bytes=2**63),)}, "worker 'w': a number of it"),
        ({"start_ups": (StartUp(template="rq", start_up_s=INF),)}, "start-up of template 'rq': inf s"),
        ({"start_ups": (StartUp(template="rq", start_up_s=1.0, cpu_s=NAN),)}, "with nan s of processors"),
        ({"start_ups": (StartUp(template="rq", start_up_s=1.0, waited_s=NAN),)}, "and nan s without"),
        ({"exits": (Exit(template="", exit_s=1.0),)}, "exit of template '': 1.0 s"),
        ({"exits": (Exit(template="rq", exit_s=1.0, cpu_s=INF),)}, "with inf s of processors"),
        ({"exits": (Exit(template="rq", exit_s=1.0, waited_s=NAN),)}, "and nan s without"),
        ({"exits": (Exit(template="rq", exit_s=INF),)}, "exit of template 'rq': inf s"),
        ({"workers": (replace(WORKER, state_since_s=NAN),)}, "worker 'w': nan s in its state"),
    ],
)
def test_a_report_that_cannot_be_written_or_placed_on_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        check_report(replace(REPORT, **values))


@pytest.mark.parametrize("name", ["web-1", "web 1", "wēb", "10.0.0.1", "...", "x" * 200])
def test_a_host_is_called_as_its_owner_likes(name: str) -> None:
    check_host_name(name)


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", " a", "a\n", "a\nenrolled host=b", "x" * 201])
def test_a_host_that_nobody_could_ask_for_by_its_name_is_refused(name: str) -> None:
    """It could never be cordoned, forgotten or revoked; and what a name says must not look like a line of the log."""
    with pytest.raises(Invalid, match="host_name must be 1 to 200 printable characters"):
        check_host_name(name)


def test_invalid_names_are_reported_together() -> None:
    with pytest.raises(Invalid) as refused:
        check_names(host_id="", boot_id="a\0")
    assert [breach.split()[0] for breach in refused.value.breaches] == ["host_id", "boot_id"]


def test_a_report_that_is_wrong_throughout_gets_a_short_message() -> None:
    with pytest.raises(Invalid) as refused:
        check_report(replace(REPORT, workers=(replace(WORKER, started_at_s=NAN),) * 1_000))
    assert len(refused.value.breaches) == BREACHES_MAX
