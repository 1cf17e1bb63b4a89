"""What the counts of RQ's scheduled jobs say, while its scheduler moves some between two of them."""

from typing import Any

import pytest

from headway.collect.rq.scheduled_jobs import DUE_COMMANDS, ScheduledJobs, scheduled_from
from headway.scaling.model import QueueSample
from headway.scaling.model.due_jobs import DUE_EDGES_S

EDGES = len(DUE_EDGES_S)


def found_from(replies: list[Any], *, scheduled_jobs: int) -> ScheduledJobs:
    return scheduled_from(replies, at_s=1_000.0, scheduled_jobs=scheduled_jobs, compared_jobs=10)


def test_a_job_that_is_moved_between_two_counts_leaves_a_sample_that_can_be() -> None:
    """Such counts fell, and the sample was refused: of all queues of the connection, in the midst of a poll."""
    counts = [5, *[4] * (EDGES - 1)]
    found = found_from([["job", "1003.0"], 0, *counts], scheduled_jobs=9)
    assert len(counts) + 2 == DUE_COMMANDS
    assert {each.jobs for each in found.due} == {5}
    sample = QueueSample(queue="rq/mail", at_s=1_000.0, waiting_jobs=0, delayed_jobs=9, due=found.due)
    assert sample.due == found.due


def test_a_job_that_is_due_at_once_and_comes_after_the_first_was_asked_for_waits() -> None:
    found = found_from([[], 1, *[0] * EDGES], scheduled_jobs=1)
    assert (found.overdue_jobs, found.overdue_since_s, found.due) == (1, None, ())


@pytest.mark.parametrize(("overdue", "overdue_jobs", "due"), [(3, 3, {2}), (7, 5, set())])
def test_jobs_that_come_after_all_were_counted_are_none_of_them(overdue: int, overdue_jobs: int, due: set[int]) -> None:
    found = found_from([["job", "990.0"], overdue, *[9] * EDGES], scheduled_jobs=5)
    assert (found.overdue_jobs, {each.jobs for each in found.due}) == (overdue_jobs, due)


def test_the_first_job_waits_since_it_was_due_and_not_before_that() -> None:
    """It may become due between two questions, and then is due later than the counts are of."""
    for score, since_s in (("990.0", 990.0), ("1000.2", 1_000.0)):
        found = found_from([["job", score], 1, *[0] * EDGES], scheduled_jobs=1)
        assert found.overdue_since_s == since_s
