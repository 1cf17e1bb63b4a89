"""Starts of real RQ and Celery workers that fail by a known cause: its code is reported, and one is tried at a time."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from redis import Redis

from headway.agent.model import NOT_KNOWN
from headway.agent.workers import lifecycle, worker_record
from headway.agent.workers.crash_backoff import CRASH_WITHIN_S
from headway.agent.workers.managed_worker import ManagedWorker
from headway.agent.workers.starts.start_failures import (
    CAUSE_KEPT_S,
    OUTPUT_READ_AFTER_S,
    OUTPUT_READ_EVERY_S,
    StartFailures,
    start_failure_in,
)
from headway.agent.workers.worker_record import Record
from headway.scaling.model import StartFailure, WorkerState
from headway.scaling.reconcile import Start
from headway.store.embedded import ensure_valkey
from headway.wire.v1 import agent_pb2
from support.agent_host import Host, one_host
from support.fake_control import row
from support.ports import free_port
from support.waiting import eventually

SHOP = """
import os
from celery import Celery
app = Celery("shop", broker=os.environ["BROKER_URL"])
app.conf.update(task_default_queue="tasks", broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)
"""
REFUSED = "Error 111 connecting to 127.0.0.1:6379. Connection refused."
OOM = "redis.exceptions.OutOfMemoryError: command not allowed when used memory > 'maxmemory'."
RETRIES = "consumer: Cannot connect to redis://:**@127.0.0.1:6379/0: max number of clients reached.\nTrying again"
KIND = ("mail", "rq")


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        ("ERROR:root:max number of clients reached", StartFailure.MAXCLIENTS),  # rq 2.12
        (RETRIES, StartFailure.MAXCLIENTS),  # celery 5.7
        ("FATAL:  sorry, too many clients already", StartFailure.MAXCLIENTS),  # Postgres
        (f"ERROR:root:{REFUSED}", StartFailure.CONNECTION_REFUSED),
        ("Error while reading from localhost:6379 : (104, 'Connection reset by peer')", StartFailure.CONNECTION_CLOSED),
        ("Connection closed by server.", StartFailure.CONNECTION_CLOSED),
        ("connect ECONNREFUSED 127.0.0.1:6379", StartFailure.CONNECTION_REFUSED),  # node
        ("OOM command not allowed when used memory > 'maxmemory'.", StartFailure.OUT_OF_MEMORY),
        (OOM, StartFailure.OUT_OF_MEMORY),
        ("NOAUTH HELLO must be called with the client already authenticated", StartFailure.AUTHENTICATION),
        ("Cannot connect: Authentication required..", StartFailure.AUTHENTICATION),
        ("(403) ACCESS_REFUSED - Login was refused", StartFailure.AUTHENTICATION),
        ("Redis is loading the dataset in memory", StartFailure.LOADING),
        ("You can't write against a read only replica.", StartFailure.READ_ONLY),
        ("ModuleNotFoundError: No module named 'shop'", StartFailure.MODULE_MISSING),
        ("OSError: [Errno 12] Cannot allocate memory", StartFailure.HOST_MEMORY),
        ("OSError: [Errno 28] No space left on device", StartFailure.DISK_FULL),
        (f"{REFUSED}\n{OOM}", StartFailure.OUT_OF_MEMORY),  # the last one counts
        ("", None),
        ("Traceback (most recent call last):\nKeyError: 'x'", None),
        ("RQ is currently suspended", None),  # has a rule of its own
    ],
)
def test_the_cause_is_read_off_what_was_printed(printed: str, cause: StartFailure | None) -> None:
    assert start_failure_in(printed) is cause


def record(state: WorkerState, *, at_s: float, kind: tuple[str, str] = KIND) -> Record:
    """A worker that was started then."""
    life = replace(lifecycle.spawned(now_s=at_s, is_burst=False), state=state)
    return worker_record.placed(Start(pool=kind[0], template=kind[1]), None, life=life, own_gpus=())


def cause_of(failures: StartFailures, record: Record) -> StartFailure | None:
    return failures.named(ManagedWorker(record=record).worker(NOT_KNOWN)).start_failure


def test_one_worker_is_tried_at_a_time_while_a_cause_stands() -> None:
    failures, trying = StartFailures(), record(WorkerState.STARTING, at_s=100.0)
    assert not failures.holds(KIND, [trying], now_s=100.0)
    failures.note(trying, REFUSED, now_s=99.0)
    assert failures.holds(KIND, [trying], now_s=100.0)
    assert not failures.holds(("news", "rq"), [trying], now_s=100.0)
    assert not failures.holds(KIND, [record(WorkerState.BACKING_OFF, at_s=100.0)], now_s=100.0)
    young = record(WorkerState.RUNNING, at_s=100.0)  # ready, and may yet end as the ones before
    assert failures.holds(KIND, [young], now_s=99.9 + CRASH_WITHIN_S)
    assert not failures.holds(KIND, [young], now_s=100.0 + CRASH_WITHIN_S)


def test_a_cause_stands_until_a_worker_that_was_started_since_has_run_for_a_while() -> None:
    failures, waiting = StartFailures(), record(WorkerState.BACKING_OFF, at_s=100.0)
    failures.note(waiting, REFUSED, now_s=100.0)
    before, since = record(WorkerState.RUNNING, at_s=10.0), record(WorkerState.RUNNING, at_s=110.0)
    failures.scan([waiting, before, since], now_s=109.9 + CRASH_WITHIN_S)
    assert cause_of(failures, waiting) is StartFailure.CONNECTION_REFUSED
    assert cause_of(failures, before) is None  # of use, whatever others fail by
    failures.scan([waiting, before, since], now_s=110.0 + CRASH_WITHIN_S)
    assert cause_of(failures, waiting) is None


def test_a_failure_by_no_known_cause_ends_the_one_that_stood() -> None:
    failures, waiting = StartFailures(), record(WorkerState.BACKING_OFF, at_s=100.0)
    failures.note(waiting, REFUSED, now_s=100.0)
    failures.note(waiting, "Starting", now_s=101.0, has_ended=False)
    assert cause_of(failures, waiting) is StartFailure.CONNECTION_REFUSED
    failures.note(waiting, "KeyError: 'x'", now_s=102.0)
    assert cause_of(failures, waiting) is None


def test_a_start_that_comes_to_its_end_has_not_failed_by_what_it_printed() -> None:
    """It may have retried, or done without what is optional."""
    failures, starting = StartFailures(), record(WorkerState.STARTING, at_s=100.0)
    other = record(WorkerState.STARTING, at_s=100.0)
    failures.note(starting, REFUSED, now_s=105.0, has_ended=False)
    failures.note_ready(other)
    assert cause_of(failures, starting) is StartFailure.CONNECTION_REFUSED
    failures.note_ready(starting)
    assert cause_of(failures, starting) is None
    failures.note(starting, "No module named 'uvloop', using asyncio", now_s=105.0, has_ended=False)
    assert cause_of(failures, starting) is None


def test_a_cause_ends_a_minute_after_the_last_worker_that_was_to_start() -> None:
    failures, waiting = StartFailures(), record(WorkerState.BACKING_OFF, at_s=100.0)
    failures.note(waiting, REFUSED, now_s=100.0)
    failures.scan([waiting], now_s=1_000.0)
    failures.scan([], now_s=1_000.0 + CAUSE_KEPT_S)
    assert cause_of(failures, waiting) is StartFailure.CONNECTION_REFUSED
    failures.scan([], now_s=1_000.1 + CAUSE_KEPT_S)
    assert cause_of(failures, waiting) is None


def test_the_output_of_a_start_that_goes_on_for_long_is_read_now_and_then() -> None:
    failures, starting = StartFailures(), record(WorkerState.STARTING, at_s=100.0)
    due_s = 100.0 + OUTPUT_READ_AFTER_S
    reads = [
        failures.is_output_due(starting, now_s=due_s + ahead_s) for ahead_s in (-0.1, 0.0, 1.0, OUTPUT_READ_EVERY_S)
    ]
    assert reads == [False, True, False, True]


class Broker:
    """A Valkey of its own, on a port."""

    def __init__(self, socket_url: str, port: int) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        self.client = Redis.from_url(socket_url, socket_timeout=30.0)
        self.client.config_set("bind", "127.0.0.1")
        self.client.config_set("port", port)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    server = ensure_valkey(tmp_path / "valkey")
    made = Broker(server.url, free_port())
    yield made
    made.client.close()
    assert server.wait_stopped()


@pytest.fixture
def host(tmp_path: Path, broker: Broker) -> Iterator[Host]:
    (tmp_path / "shop.py").write_text(SHOP)
    host_file = f"""
    [templates.rq]
    argv = ["{Path(sys.executable).with_name("rq")}", "worker", "--url", "{broker.url}", "mail"]
    ready_pattern = "Listening on"

    [templates.celery]
    argv = ["{sys.executable}", "-m", "celery", "-A", "shop", "worker", "-c", "1", "-Q", "tasks"]
    working_directory = "{tmp_path}"
    environment = {{ BROKER_URL = "{broker.url}" }}
    ready_pattern = "celery@.* ready"

    [templates.sleep]
    argv = ["sleep", "600"]
    ready_after_s = 0.0
    """
    with one_host(tmp_path, host_file) as host:
        yield host


def failures_of(pool: str, host: Host) -> set[str]:
    """Of the workers of the pool, as they were reported last."""
    last = host.control.reports[-1] if host.control.reports else agent_pb2.ReportRequest()
    return {worker.start_failure for worker in last.workers if worker.pool == pool}


def starts(pool: str, host: Host) -> int:
    return host.logged().count(f"started pool={pool} ")


@pytest.mark.e2e
@pytest.mark.timeout(500)
def test_workers_that_a_full_broker_refuses_are_tried_one_by_one_and_say_why(host: Host, broker: Broker) -> None:
    """The other pool of the host keeps its workers, and no cause."""
    broker.client.config_set("maxclients", 1)  # this client's
    host.agent()
    host.control.assign(row(4, template="rq"), row(2, template="sleep", pool="news"))
    eventually(lambda: failures_of("mail", host) == {"maxclients"}, within_s=200.0)
    first = starts("mail", host)
    eventually(lambda: host.logged().count("failed pool=mail") >= first + 2, within_s=200.0)
    assert starts("mail", host) == first + 2
    assert failures_of("news", host) == {""}
    assert len(host.control.pids(pool="news")) == 2
    broker.client.config_set("maxclients", 1_000)
    eventually(lambda: len(host.control.pids(pool="mail")) == 4, within_s=200.0)
    eventually(lambda: failures_of("mail", host) == {""}, within_s=60.0)


@pytest.mark.e2e
@pytest.mark.timeout(400)
def test_a_worker_that_retries_its_connection_says_why_it_does_not_get_ready(host: Host, broker: Broker) -> None:
    """Celery's main process stays: it has not failed, and without the cause it would be starting until its timeout."""
    broker.client.config_set("maxclients", 1)
    host.agent()
    host.control.assign(row(1, template="celery", pool="tasks"))
    eventually(lambda: failures_of("tasks", host) == {"maxclients"}, within_s=150.0)
    assert "failed pool=tasks" not in host.logged()
    broker.client.config_set("maxclients", 1_000)
    eventually(lambda: failures_of("tasks", host) == {""}, within_s=150.0)


@pytest.mark.e2e
@pytest.mark.timeout(400)
def test_workers_name_a_broker_without_memory(host: Host, broker: Broker) -> None:
    broker.client.config_set("maxmemory", 1)
    host.agent()
    host.control.assign(row(1, template="rq"), row(1, template="celery", pool="tasks"))
    for pool in ("mail", "tasks"):
        eventually(lambda pool=pool: failures_of(pool, host) == {"out_of_memory"}, within_s=200.0)
    messages = [report.SerializeToString() for report in host.control.reports]
    assert not any(b"used memory" in message for message in messages)  # what workers print stays there
