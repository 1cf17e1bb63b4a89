"""What a control plane recorded becomes jobs again."""

from typing import Any

import pytest

from headway.cli.rehearse.recorded_history import workload_of
from headway.errors import Invalid

HISTORY: dict[str, Any] = {
    "pool": "mail",
    "from_s": 1_800_000_002.0,
    "bucket_s": 5.0,
    "buckets": [
        {"at_s": 1_800_000_000.0, "arrived_jobs": 3},
        {"at_s": 1_800_000_005.0, "arrived_jobs": 0},
        {"at_s": 1_800_000_010.0, "arrived_jobs": 200},
    ],
    "service_times": [{"service_s": 0.5, "jobs": 90}, {"service_s": 30.0, "jobs": 10}],
}


def test_jobs_come_in_their_buckets_and_take_as_long_as_those_that_ended() -> None:
    workload = workload_of(HISTORY, seed=1)
    assert (workload.name, workload.begins_at_s) == ("mail", 1_800_000_002.0)
    at_s, service_s = workload.jobs.at_s, workload.jobs.service_s
    assert sum(each <= 5.0 for each in at_s) == 3  # the first bucket began before the history
    assert all(8.0 <= each <= 13.0 for each in at_s[3:])
    assert set(service_s) == {0.5, 30.0}
    assert 5 <= sum(each == 30.0 for each in service_s) <= 40  # a tenth of 203


def test_jobs_that_came_back_are_known_as_such() -> None:
    rush = {"at_s": 1_800_000_010.0, "arrived_jobs": 200, "retried_jobs": 80}
    workload = workload_of({**HISTORY, "buckets": [*HISTORY["buckets"][:2], rush]}, seed=1)
    assert sum(workload.jobs.retries) == 80
    assert not any(workload.jobs.retries[:3])
    assert workload_of(HISTORY, seed=1).jobs.retries == ()


def test_the_same_history_and_seed_are_the_same_jobs() -> None:
    assert workload_of(HISTORY, seed=1) == workload_of(HISTORY, seed=1)
    assert workload_of(HISTORY, seed=1) != workload_of(HISTORY, seed=2)


def test_arrivals_that_nobody_reports_are_not_rehearsed_as_none() -> None:
    unknown = {"at_s": 1_800_000_010.0, "arrived_jobs": None, "retried_jobs": None}
    with pytest.raises(Invalid, match="how many jobs of pool 'mail' arrive is not known"):
        workload_of({**HISTORY, "buckets": [*HISTORY["buckets"], unknown]}, seed=1)


@pytest.mark.parametrize(
    ("missing", "says"),
    [("buckets", "no job of pool 'mail' arrived"), ("service_times", "how long its jobs take is not known")],
)
def test_a_history_without_jobs_is_refused(missing: str, says: str) -> None:
    with pytest.raises(Invalid, match=says):
        workload_of({**HISTORY, missing: []}, seed=1)
