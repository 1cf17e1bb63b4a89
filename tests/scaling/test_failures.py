"""Failures of jobs: counted by the window, an incident by share and number."""

from dataclasses import replace

import pytest

from headway.errors import Invalid
from headway.scaling.measure import BucketRow
from headway.scaling.metrics.job_failures import Failures, failures_of, failures_text, is_failing, together
from headway.scaling.model import FailureLimit
from headway.scaling.profile import profile_from_mapping


def row(bucket_s: float, finished_jobs: int, failed_jobs: int) -> BucketRow:
    return BucketRow(queue="q", bucket_s=bucket_s, finished_jobs=finished_jobs, failed_jobs=failed_jobs)


def test_failures_are_of_every_bucket_that_the_window_touches() -> None:
    rows = [row(90, 7, 7), row(95, 1, 0), row(100, 2, 1), row(125, 0, 3), row(130, 9, 9)]
    # (100, 125]: the bucket from 95 to 100 has no part in it, that from 125 begins with its last moment
    found = failures_of(rows, until_s=125, window_s=25)
    assert (found.ended_jobs, found.failed_jobs) == (6, 4)
    assert (found.recent_ended_jobs, found.recent_failed_jobs) == (3, 3)  # of (120, 125]


def test_an_attempt_that_another_one_follows_is_neither_an_end_nor_a_failure_of_its_job() -> None:
    found = failures_of([replace(row(100, 2, 1), retried_attempts=7)], until_s=105, window_s=25)
    assert (found.ended_jobs, found.failed_jobs, found.retried_jobs) == (3, 1, 7)


@pytest.mark.parametrize(
    ("failed_jobs", "ended_jobs", "is_incident"),
    [
        (0, 0, False),
        (1, 1, False),  # 100 %, of one job
        (2, 2, False),
        (3, 3, True),
        (3, 15, False),  # 20 % and not more
        (3, 14, True),
        (200, 1001, False),
        (201, 1000, True),
    ],
)
def test_more_than_a_fifth_of_the_jobs_is_an_incident_and_fewer_than_three_are_none(
    failed_jobs: int, ended_jobs: int, is_incident: bool
) -> None:
    failures = Failures(ended_jobs=ended_jobs, failed_jobs=failed_jobs)
    assert is_failing(failures, FailureLimit()) is is_incident


def test_queues_are_counted_together_and_named_in_words() -> None:
    both = together([Failures(ended_jobs=199, failed_jobs=199), Failures(ended_jobs=1)])
    # 199 of 200 are not all of them
    assert failures_text(both, FailureLimit()) == "199 of 200 jobs (99 %) failed in the last 5 min"
    assert failures_text(both, FailureLimit(window_s=45)) == "199 of 200 jobs (99 %) failed in the last 45 s"


@pytest.mark.parametrize(
    ("recent_failed_jobs", "recent_ended_jobs", "is_incident"),
    [
        (40, 40, True),
        (21, 40, True),
        (20, 40, False),  # half of them and not more
        (2, 2, False),
    ],
)
def test_jobs_that_begin_to_fail_are_an_incident_before_they_fill_a_fifth_of_the_window(
    recent_failed_jobs: int, recent_ended_jobs: int, is_incident: bool
) -> None:
    failures = Failures(
        ended_jobs=400,
        failed_jobs=recent_failed_jobs,
        recent_ended_jobs=recent_ended_jobs,
        recent_failed_jobs=recent_failed_jobs,
    )
    assert is_failing(failures, FailureLimit()) is is_incident
    if is_incident:
        text = f"{recent_failed_jobs} of 40 jobs ({100 * recent_failed_jobs // 40} %) failed in the last 1 min"
        assert failures_text(failures, FailureLimit()) == text


def test_a_limit_that_cannot_be_is_refused_by_name() -> None:
    limit = {"share": 20, "window_s": 3600, "jobs_min": 0}
    with pytest.raises(Invalid) as refused:
        profile_from_mapping("mail", {"queues": ["r/q"], "template": "rq", "failure_limit": limit})
    assert [breach.partition(" must")[0] for breach in refused.value.breaches] == [
        "profile 'mail': failure_limit.share=20",
        "profile 'mail': failure_limit.window_s=3600",
        "profile 'mail': failure_limit.jobs_min=0",
    ]
