"""The demo's jobs and workers of Celery, with a real Valkey and Celery's own worker as the host file starts it."""

import os
import subprocess
import time

import pytest

from headway.agent.config import host_file
from headway.agent.config.library_presets import template_text
from headway.cli.demo.demo_libraries import LIBRARIES
from headway.cli.demo.libraries.celery_jobs import CeleryJobs
from headway.simulate.replay import RecordedJob
from support.waiting import eventually

MAIL, REPORTS = QUEUES = ("mail", "reports")


@pytest.fixture
def jobs(valkey_url):
    jobs = CeleryJobs(valkey_url, QUEUES, lambda _: False)
    yield jobs
    jobs.close()


def job(service_s: float) -> RecordedJob:
    return RecordedJob(at_s=0, service_s=service_s)


def test_a_sent_job_is_done_by_celerys_worker_and_its_times_are_read_back(jobs, valkey_url, tmp_path):
    before_s = time.time()
    for queue in (MAIL, MAIL, REPORTS):
        jobs.send(queue, jobs.sent, job(0.2))
    assert (jobs.sent, jobs.waiting(), jobs.ended()) == (3, 3, 0)
    control = {"HEADWAY_URL": "http://127.0.0.1:1"}
    text = template_text("mail", LIBRARIES["celery"].worker(MAIL, valkey_url, control), is_first=False)
    (tmp_path / "host.toml").write_text(text)
    template = host_file.load(tmp_path / "host.toml").templates["mail"]
    worker = subprocess.Popen(
        template.argv,
        env={**os.environ, **template.environment},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        eventually(lambda: jobs.ended() == 2)
    finally:
        worker.terminate()
        said = worker.communicate(timeout=60)[1]
    assert worker.returncode == 0
    assert any(line.endswith(" ready.") for line in said.splitlines())
    assert jobs.waiting() == 1
    first, second, waiting = jobs.records()
    assert [record.is_done for record in (first, second, waiting)] == [True, True, False]
    assert (first.queue, first.starts, waiting.queue, waiting.starts) == (MAIL, 1, REPORTS, 0)
    assert before_s <= first.enqueued_at_s <= first.started_at_s < first.ended_at_s <= second.started_at_s
    assert first.ended_at_s - first.started_at_s >= 0.2
    assert (waiting.status, waiting.started_at_s, waiting.ended_at_s) == ("queued", None, None)


def test_a_job_that_the_broker_has_lost_is_reported_as_gone(jobs):
    assert jobs.records() == []
    jobs.send(MAIL, 0, job(1))
    jobs.clear()
    assert [record.status for record in jobs.records()] == ["gone"]


def test_without_a_broker_nothing_is_known_and_sending_ends_when_asked(tmp_path):
    waits = []
    jobs = CeleryJobs(f"unix://{tmp_path}/none.sock", QUEUES, lambda seconds: waits.append(seconds) or len(waits) == 3)
    assert (jobs.waiting(), jobs.ended()) == (None, None)
    jobs.send(MAIL, 0, job(1))
    assert (jobs.sent, len(waits), jobs.records()) == (0, 3, [])
