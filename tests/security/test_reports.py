"""What one host reports costs that host, and nobody else: size, learning, and the transaction it is written in."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import psycopg
import pytest

from headway.control.agents.report_writer import ReportWriter
from headway.scaling.model import StartUp
from headway.store.engine import Engine, transaction
from headway.store.hosts.hosts import Enrolment, enrol
from headway.wire.v1 import agent_pb2
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from security.hosts import Host
from security.planes import ANSWER_S, Plane, serving
from support.reports import beat_of
from support.reports import report as report_of

pytestmark = pytest.mark.e2e


@pytest.fixture
def plane(migrated_url: str, tmp_path: Path) -> Iterator[Plane]:
    with serving(migrated_url, tmp_path, {"HEADWAY_HOSTS": "2"}) as plane:
        yield plane


@pytest.fixture
def stub(plane: Plane) -> Iterator[AgentServiceStub]:
    with plane.channel() as channel:
        yield AgentServiceStub(channel)


def worker(number: int) -> agent_pb2.Worker:
    return agent_pb2.Worker(worker_id=f"w{number}", pool="p", template="t", state=agent_pb2.WORKER_STATE_RUNNING)


def test_a_report_of_more_than_a_host_may_have_is_refused_to_it_with_the_bound(
    stub: AgentServiceStub, migrated_url: str
) -> None:
    """30,000 start-ups in one report of half a MB made all others wait for 20 s; 100,000 held a transaction 7 min."""
    host = Host(stub, "a")
    start_ups = [agent_pb2.StartUp(template=f"t{n}", start_up_s=1.0) for n in range(900)]
    for reported, setting in (
        ({"start_ups": start_ups}, "HEADWAY_TEMPLATES_PER_HOST"),
        ({"exits": [agent_pb2.Exit(template=f"t{n}", exit_s=1.0) for n in range(900)]}, "HEADWAY_TEMPLATES_PER_HOST"),
        ({"workers": [worker(n) for n in range(2_001)]}, "HEADWAY_WORKERS_PER_HOST"),
        ({"labels": {f"l{n}": "x" for n in range(51)}}, "HEADWAY_LABELS"),
        ({"templates": [agent_pb2.Template(name=f"t{n}", slots=1) for n in range(201)]}, "HEADWAY_TEMPLATES_PER_HOST"),
    ):
        with pytest.raises(grpc.RpcError) as refused:
            host.report(**reported)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert setting in refused.value.details()
    assert host.report(workers=[worker(1)]).lease_s > 0
    with psycopg.connect(migrated_url) as connection:
        assert connection.execute("select count(*) from template_start_ups").fetchone() == (0,)


def test_of_many_start_ups_the_newest_are_learned_from_and_names_that_come_and_go_are_forgotten(
    stub: AgentServiceStub, plane: Plane, migrated_url: str
) -> None:
    host = Host(stub, "a")
    host.report(start_ups=[agent_pb2.StartUp(template="rq", start_up_s=float(n >= 4_000)) for n in range(5_000)])
    for wave in range(5):
        host.report(
            templates=[agent_pb2.Template(name="rq", slots=1)],
            start_ups=[agent_pb2.StartUp(template=f"t{wave}-{n}", start_up_s=1.0) for n in range(150)],
        )
    with psycopg.connect(migrated_url) as connection:
        learned = connection.execute("select starts, start_up_s from template_start_ups where template = 'rq'")
        assert learned.fetchone() == (1_000, 1.0)
        (kept,) = connection.execute("select count(*) from template_start_ups").fetchone()
    assert kept <= 400 + 150
    assert any("start-ups or exits left out" in line and "items=4000" in line for line in plane.said)


def test_hosts_are_bounded(stub: AgentServiceStub, plane: Plane) -> None:
    Host(stub, "a")
    Host(stub, "b")
    with pytest.raises(grpc.RpcError) as refused:
        Host(stub, "c")
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "HEADWAY_HOSTS allows" in refused.value.details()
    with plane.client() as people:
        assert len(people.get("/v1/hosts").json()["hosts"]) == 2


def test_workers_of_all_hosts_are_bounded_and_each_host_keeps_its_share(migrated_url: str, tmp_path: Path) -> None:
    """Twenty thousand hosts of two thousand each would be forty million rows."""
    bounds = {"HEADWAY_HOSTS": "4", "HEADWAY_WORKERS": "20"}
    with serving(migrated_url, tmp_path, bounds) as plane, plane.channel() as channel:
        stub = AgentServiceStub(channel)
        first, second, small = Host(stub, "a"), Host(stub, "b"), Host(stub, "c")
        first.report(workers=[worker(n) for n in range(15)])
        with pytest.raises(grpc.RpcError) as refused:
            second.report(workers=[worker(n) for n in range(100, 110)])
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "as many as HEADWAY_WORKERS allows: have 5 at most" in refused.value.details()
        assert second.report(workers=[worker(n) for n in range(100, 105)]).lease_s > 0
        # Full, and yet a host with its share is heard, and one that has many may go on with them.
        assert small.report(workers=[worker(n) for n in range(200, 204)]).lease_s > 0
        with pytest.raises(grpc.RpcError, match="HEADWAY_WORKERS"):
            first.report(workers=[worker(n) for n in range(17)])
        first.report(workers=[worker(n) for n in range(8)])
        assert second.report(workers=[worker(n) for n in range(100, 108)]).lease_s > 0
        assert sum("report refused host_id=" in line for line in plane.said) == 2
        with plane.client() as people:
            metrics = people.get("/metrics").text
        assert 'headway_refused_names_total{kind="workers"} 2.0' in metrics
        assert 'headway_refusals_total{port="grpc",status="INVALID_ARGUMENT"} 2.0' in metrics
    with psycopg.connect(migrated_url) as connection:
        assert connection.execute("select count(*) from workers").fetchone() == (20,)


async def test_a_long_report_that_is_being_written_keeps_no_other_host_waiting(
    engine: Engine, migrated_url: str
) -> None:
    async with transaction(engine) as conn:
        ids = [await enrol(conn, Enrolment(name=name, host_id="", boot_id=name, agent_version="1")) for name in "ab"]
    line = ReportWriter(engine=engine)
    long = replace(
        report_of(ids[0]), start_ups=tuple(StartUp(template=f"t{n % 100}", start_up_s=1.0) for n in range(1_000))
    )
    with psycopg.connect(migrated_url) as holding:
        holding.execute("lock table template_start_ups in exclusive mode")
        writing = asyncio.create_task(line.report(long, beat_of(long)))
        short = report_of(ids[1], workers=())
        assert await asyncio.wait_for(line.report(short, beat_of(short)), ANSWER_S)
        assert not writing.done()
        holding.rollback()
    assert await asyncio.wait_for(writing, ANSWER_S)
