"""What the counts of RQ's scheduled jobs say, while its scheduler moves some between two of them."""

from headway.collect.rq.scheduled_jobs import DUE_COMMANDS, scheduled_from
from headway.scaling.model import QueueSample
from headway.scaling.model.due_jobs import DUE_EDGES_S

EDGES = len(DUE_EDGES_S)


def test_a_job_that_is_moved_between_two_counts_leaves_a_sample_that_can_be() -> None:
    """Such counts fell, and the sample was refused: of all queues of the connection, in the midst of a poll."""
    counts = [5, *[4] * (EDGES - 1)]
    found = scheduled_from([["job", "1003.0"], 0, *counts], at_s=1_000.0, scheduled_jobs=9)
    assert len(counts) + 2 == DUE_COMMANDS
    assert {each.jobs for each in found.due} == {5}
    sample = QueueSample(queue="rq/mail", at_s=1_000.0, waiting_jobs=0, delayed_jobs=9, due=found.due)
    assert sample.due == found.due


def test_a_job_that_is_due_at_once_and_comes_after_the_first_was_asked_for_waits() -> None:
    found = scheduled_from([[], 1, *[0] * EDGES], at_s=1_000.0, scheduled_jobs=1)
    assert (found.overdue_jobs, found.overdue_since_s, found.due) == (1, None, ())
