"""What is remembered of the jobs of a queue, and how little of the many that wait in their first life."""

import json
from dataclasses import replace
from typing import Any

from headway.collect.job_lifecycle import JobRecord, JobState, ReportedLife, Stage
from headway.collect.job_memory import JobMemory

FIRST = ReportedLife(stage=Stage.ENQUEUED, enqueued_at_s=5.0)
RETRIED = ReportedLife(stage=Stage.ENQUEUED, enqueued_at_s=6.0, attempt=2, retries_left=1)
AGAIN = ReportedLife(stage=Stage.ENQUEUED, enqueued_at_s=7.0, ended_before_at_s=6.5)
LIVES = {"first": FIRST, "retried": RETRIED, "again": AGAIN}


def memory() -> JobMemory:
    jobs = JobMemory(begins_at_s=1.0)
    for job, life in LIVES.items():
        jobs.put(job, life, at_s=8.0)
    return jobs


def restored(state: Any) -> JobMemory:
    return JobMemory.from_state(json.loads(json.dumps(state)))


def test_of_a_job_that_waits_in_its_first_life_a_number_is_kept() -> None:
    assert memory().waiting == {"first": 5.0, "retried": RETRIED, "again": AGAIN}
    assert memory().to_state()["waiting"]["first"] == 5.0


def test_all_that_was_reported_comes_back_after_a_restart_too() -> None:
    for jobs in (memory(), restored(memory().to_state())):
        assert {job: jobs.reported(job) for job in LIVES} == LIVES
        assert [jobs.waiting_since_s(job) for job in (*LIVES, "unknown")] == [5.0, 6.0, 7.0, None]
    assert restored(memory().to_state()).waiting == memory().waiting


def test_a_state_with_two_times_a_job_as_older_versions_wrote_it_is_read() -> None:
    state = memory().to_state()
    state["waiting"] = {job: [life.enqueued_at_s, life.ended_before_at_s] for job, life in LIVES.items()}
    assert restored(state).waiting == memory().waiting


def test_a_job_that_was_stopped_long_after_the_end_in_its_record_is_not_old() -> None:
    jobs = JobMemory(begins_at_s=20.0)
    stopped = JobRecord(state=JobState.FAILED, enqueued_at_s=13.0, started_at_s=24.0, ended_at_s=12.0)
    assert not jobs.is_old(stopped, is_new=False)
    assert jobs.is_old(replace(stopped, started_at_s=14.0), is_new=False)
