"""Real Celery workers on a real Valkey, and a task that kills whichever worker takes it, delivered again each time."""

import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from celery import Celery
from redis import Redis

from support.agent_host import Host, one_host
from support.fake_control import row
from support.waiting import eventually

POISON = "the-poison"
GOOD_TASKS = 10
DEATHS = 4
SHOP = """
import os, pathlib, signal
from celery import Celery
app = Celery("shop", broker=os.environ["BROKER_URL"])
app.conf.update(task_default_queue="mail", broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)

def note(name):
    with open(os.environ["NOTES"] + name, "a") as notes:
        print(1, file=notes, flush=True)

@app.task(name="good")
def good():
    note("good")

@app.task(name="poison")
def poison():
    note("poison")
    os.kill(os.getpid(), signal.SIGKILL)
"""
SLOW_MACHINE = """
import sys
from headway.__main__ import main
from headway.agent.workers import lifecycle
lifecycle.CRASH_WITHIN_S = 120.0
sys.exit(main(sys.argv[1:]))
"""
"""An agent to which a worker has died early also where its start alone took long."""


def broker_url(valkey_url: str) -> str:
    """As Celery writes the URL of a socket."""
    return valkey_url.replace("unix://", "redis+socket://")


@pytest.fixture
def host(tmp_path: Path, valkey_url: str) -> Iterator[Host]:
    (tmp_path / "shop.py").write_text(SHOP)
    host_file = f"""
    [templates.celery]
    argv = ["{sys.executable}", "-m", "celery", "-A", "shop", "worker", "--pool", "solo", "-Q", "mail"]
    working_directory = "{tmp_path}"
    environment = {{ BROKER_URL = "{broker_url(valkey_url)}", NOTES = "{tmp_path}/" }}
    ready_pattern = "ready"
    """
    with one_host(tmp_path, host_file) as host:
        yield host


def begun(path: Path) -> int:
    return len(path.read_text().split()) if path.exists() else 0


def has_died(host: Host, *, times: int) -> bool:
    return bool(host.logged().count("failed pool=mail") == times)


@pytest.mark.e2e
@pytest.mark.timeout(580)
def test_one_poison_task_keeps_no_pool_from_its_other_tasks(host: Host, valkey_url: str, tmp_path: Path) -> None:
    """Field C6: the whole pool was left alone for up to five minutes, and the log quoted another task."""
    host.agent(program=("-c", SLOW_MACHINE))
    host.control.assign(row(1, template="celery"))
    with Celery("shop", broker=broker_url(valkey_url)) as app, Redis.from_url(valkey_url) as client:
        for number in range(DEATHS):
            app.send_task("poison", queue="mail", task_id=POISON)
            client.lmove("mail", "mail", "LEFT", "RIGHT")  # before all others, where a broker puts what it has back
            eventually(partial(has_died, host, times=number + 1), within_s=120.0)
        for _ in range(GOOD_TASKS):
            app.send_task("good", queue="mail")
        eventually(lambda: begun(tmp_path / "good") == GOOD_TASKS, within_s=120.0)
    pauses_s = [int(each) for each in re.findall(r"again_in_s=(\d+)", host.logged())]
    assert max(pauses_s) <= 10, "the next one is tried as soon as after the first failure"
    assert host.logged().count(f"job={POISON} class=poison said=") == DEATHS
    cuts = {cut.cut_id: cut for report in host.control.reports for cut in report.cuts}
    assert [(cut.job.job_id, cut.job.job_class) for cut in cuts.values()] == [(POISON, "poison")] * DEATHS
