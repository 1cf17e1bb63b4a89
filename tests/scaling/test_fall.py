"""Waiting jobs that go without having been started."""

import pytest

from headway.scaling.measure import BucketRow
from headway.scaling.metrics.flush_detection import fall_of


def sampled(bucket_s: float, waiting_jobs: int | None) -> BucketRow:
    return BucketRow(queue="q", bucket_s=bucket_s, sampled_at_s=bucket_s + 1.0, waiting_jobs=waiting_jobs)


@pytest.mark.parametrize(
    ("before", "after", "started", "lost"),
    [
        (60, 0, 0, 60),  # a flush
        (60, 0, 4, 56),  # of which workers had taken four
        (60, 5, 4, 51),  # and five have come since
        (60, 0, 40, 0),  # 20 of 60: less than half may be cancelled by hand
        (60, 0, 60, 0),  # all were started
        (9, 0, 0, 0),  # too few to speak of an incident
        (10, 0, 0, 10),
        (60, 31, 0, 0),
        (0, 60, 0, 0),
    ],
)
def test_what_went_and_was_not_started_is_lost(before: int, after: int, started: int, lost: int) -> None:
    fall = fall_of(sampled(0.0, before), sampled(5.0, after))
    assert (0 if fall is None else fall.lost_jobs(started)) == lost


def test_it_is_reported_once_its_starts_are_known_and_for_two_minutes() -> None:
    fall = fall_of(sampled(0.0, 60), sampled(5.0, 0))
    assert fall is not None
    assert [fall.is_shown(6.0 + after_s) for after_s in (0.0, 9.9, 10.0, 120.0, 121.0)] == [
        False,
        False,
        True,
        True,
        False,
    ]


def test_a_first_sample_is_no_fall() -> None:
    assert fall_of(None, sampled(5.0, 0)) is None
    assert fall_of(sampled(0.0, None), sampled(5.0, 0)) is None


@pytest.mark.parametrize(
    ("empty_at_s", "message_ttl_s", "may_have_expired"),
    [
        (None, None, False),
        (None, 60.0, True),  # nobody knows how long the jobs had waited
        (1.0, 60.0, False),
        (1.0, 5.0, True),
    ],
)
def test_jobs_may_have_expired_if_the_queue_was_not_empty_within_its_message_ttl(
    empty_at_s: float | None, message_ttl_s: float | None, *, may_have_expired: bool
) -> None:
    fall = fall_of(sampled(0.0, 60), sampled(5.0, 0), empty_at_s=empty_at_s)
    assert fall is not None
    assert fall.may_have_expired(message_ttl_s) == may_have_expired
