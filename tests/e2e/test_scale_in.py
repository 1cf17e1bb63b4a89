"""Workers leave while they have long jobs and more come in. Four libraries, their real workers, a real agent.

The jobs keep a ledger. Whatever a worker is asked, each job that begins also ends, and none begins twice, but for what
Celery gives back to its broker though it has begun it.
"""

import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from e2e.shops import SHOPS, Shop, Site
from headway.local import procfs
from support.fake_control import FakeControl, serving
from support.processes import runs
from support.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

JOB_MIN_S, JOB_MAX_S = 2.0, 6.0
LONG_JOB_S = 170.0  # RQ allows 180. Far longer than the agent needs to see twice who is busy; nobody waits for its end
DEADLINE_S = 3
MORE_JOBS = 2  # waiting, beside those that run
CORE_SHARE = 0.1  # of all jobs of a worker: most wait for others most of the time
SEEN_SHARE = 0.2  # of a job: four times what makes a worker count as busy


@pytest.fixture(params=SHOPS)
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    fixture = "database_url" if request.param == "procrastinate" else "valkey_url"
    with SHOPS[request.param](request.getfixturevalue(fixture)) as shop:
        yield shop


@contextmanager
def site_of(shop: Shop, folder: Path, *, drain_timeout_s: int, job_share: float | None = None) -> Iterator[Site]:
    control = FakeControl()
    share = CORE_SHARE / shop.slots if job_share is None else job_share
    with serving(control) as port:
        site = Site(shop, control, port=port, folder=folder, drain_timeout_s=drain_timeout_s, core_share=share)
        with site.agent():
            yield site


@contextmanager
def jobs_coming_in(site: Site) -> Iterator[None]:
    """While the block runs, more jobs wait than workers can take."""
    rng = random.Random(7)
    is_over = threading.Event()

    def feed() -> None:
        while not is_over.wait(0.1):
            while site.unfinished() < site.shop.slots * len(site.control.workers()) + MORE_JOBS:
                site.send(rng.uniform(JOB_MIN_S, JOB_MAX_S))

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        is_over.set()
        feeder.join()


def test_idle_workers_leave_first(shop: Shop, tmp_path: Path) -> None:
    with site_of(shop, tmp_path, drain_timeout_s=60, job_share=SEEN_SHARE) as site:
        site.scale(3)
        site.until_running(3)
        for _ in range(2):
            site.send(LONG_JOB_S)
        eventually(lambda: len(site.count("start")) == 2, within_s=150)
        busy = site.at_work()  # one worker with slots may have taken both

        def is_known() -> bool:
            site.scale(3)  # new orders are answered by a report
            return {each.worker_id for each in site.control.workers() if each.is_busy} == busy

        eventually(is_known, within_s=120)
        site.scale(len(busy))
        eventually(lambda: {each.worker_id for each in site.control.workers()} == busy)
        assert site.at_work() == busy, "they went by themselves"
        assert set(site.exit_codes().values()) == {0}


def test_no_job_is_lost_and_none_is_killed_while_workers_come_and_go(shop: Shop, tmp_path: Path) -> None:
    with site_of(shop, tmp_path, drain_timeout_s=300) as site:
        with jobs_coming_in(site):
            for workers in (3, 1, 3, 1, 2):
                site.scale(workers)
                site.until_running(workers)
                begun = len(site.count("start"))
                eventually(lambda begun=begun: len(site.count("start")) >= begun + 2, within_s=150)
        eventually(lambda: not site.unfinished(), within_s=200)
        site.scale(0)
        eventually(lambda: not site.control.workers())
        assert set(site.count("start")) == {f"job{number}" for number in range(1, site.sent + 1)}
        assert site.count("end") == site.count("start")
        assert site.run_again() == set()
        assert set(site.exit_codes().values()) == {0}
        assert len(site.exit_codes()) >= 6
        assert "forcing" not in site.logged()


def test_a_job_longer_than_the_deadline_is_killed_after_it_and_that_is_reported(shop: Shop, tmp_path: Path) -> None:
    with site_of(shop, tmp_path, drain_timeout_s=DEADLINE_S) as site:
        site.scale(1)
        (worker_id,) = site.until_running(1)
        (pid,) = (each.pid for each in site.control.workers())
        site.send(600)
        eventually(lambda: site.at_work())
        family = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
        asked_at_s = procfs.since_boot_s()
        site.scale(0)
        eventually(lambda: not any(map(runs, family)))
        assert procfs.since_boot_s() - asked_at_s >= DEADLINE_S
        eventually(lambda: f"forcing pool=mail pid={pid}: it did not end by its drain deadline" in site.logged())
        eventually(lambda: site.exit_codes() == {worker_id: -signal.SIGKILL})
        assert site.count("end") == {}
