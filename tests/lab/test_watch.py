"""The watch sees what lasts for a moment only."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from headway.scaling.model import WorkerState
from lab.hosts import Recorded
from lab.programs import sees
from lab.watch import Watch

POOL = "ledger"
WITHIN_S = 60.0


@dataclass
class FakeHost:
    """What the watch asks of a host."""

    name: str
    workers: list[Recorded] = field(default_factory=list)
    epoch: int = 1

    def recorded(self) -> list[Recorded]:
        return self.workers


@contextmanager
def running(worker_id: str, *, state: WorkerState = WorkerState.RUNNING) -> Iterator[Recorded]:
    process = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); import time; time.sleep(600)"],
        env={"HEADWAY_WORKER_ID": worker_id},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield Recorded(worker_id=worker_id, pool=POOL, pid=process.pid, state=state)
    finally:
        process.kill()
        process.wait()


def watch_of(*hosts: Any) -> Watch:
    return Watch(hosts, exclusive=POOL)


def test_two_workers_of_an_exclusive_pool_are_seen_also_where_one_is_leaving() -> None:
    with running("w1", state=WorkerState.DRAINING) as one, running("w2") as two:
        hosts = FakeHost("a", [one]), FakeHost("b", [two])
        watch = watch_of(*hosts)
        watch.poll()
    assert len(watch.breaches) == 1
    assert f"a pid {one.pid}, b pid {two.pid}" in watch.breaches[0]


@pytest.mark.parametrize("state", [WorkerState.RUNNING, WorkerState.BACKING_OFF])
def test_a_worker_that_has_ended_does_not_count(state: WorkerState) -> None:
    with running("w1") as one:
        pass
    with running("w2") as two:
        gone = Recorded(worker_id="w1", pool=POOL, pid=one.pid, state=state)
        another = Recorded(worker_id="w3", pool=POOL, pid=two.pid, state=state)  # its number is another process's now
        watch = watch_of(FakeHost("a", [gone, another]), FakeHost("b", [two]))
        watch.poll()
    assert watch.breaches == []


def test_a_host_that_obeys_an_older_epoch_is_seen() -> None:
    host = FakeHost("a")
    watch = watch_of(host)
    for host.epoch in (5, 7, 6):
        watch.poll()
    assert watch.breaches == ["a obeyed epoch 6 after 7"]


def test_a_watch_that_cannot_poll_reports_so() -> None:
    watch = watch_of(object())
    with watch.polling():
        assert sees(lambda: watch.breaches, within_s=WITHIN_S)
    assert "the watch failed" in watch.breaches[0]
