"""When delayed jobs are due: what a reading reports, and what an evaluation goes by."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.metrics.newest_sample import with_newest
from headway.scaling.model import DelayedJobs, DueJobs, QueueMetrics, QueueSample
from headway.scaling.model.due_jobs import DUE_EDGES_S, DUE_STEPS_MAX, delayed_from, due_by_edges, due_by_groups
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.reading.sample_age import aged

TIMES_S = st.lists(st.floats(0.0, 5000.0), max_size=40).map(sorted)


@given(TIMES_S)
def test_no_job_is_read_as_due_later_than_it_is(due_in_s: list[float]) -> None:
    read = list(delayed_from(due_by_edges(due_in_s)))
    known = [each_s for each_s in due_in_s if each_s <= DUE_EDGES_S[-1]]
    assert sum(each.jobs for each in read) == len(known)
    as_read = [each.due_in_s for each in read for _ in range(each.jobs)]
    assert all(read_s <= true_s for read_s, true_s in zip(as_read, known, strict=True))


@given(TIMES_S)
def test_what_is_due_within_a_minute_is_known_to_five_seconds(due_in_s: list[float]) -> None:
    as_read = [each.due_in_s for each in delayed_from(due_by_edges(due_in_s)) for _ in range(each.jobs)]
    soon = [(read_s, true_s) for read_s, true_s in zip(as_read, due_in_s, strict=False) if true_s <= 60.0]
    assert all(true_s - read_s <= 5.0 for read_s, true_s in soon)


@pytest.mark.parametrize("at_s", [0.0, 1000.0])
def test_what_is_due_together_is_known_exactly(at_s: float) -> None:
    (known,) = delayed_from(due_by_edges([at_s + 47.3] * 500, at_s=at_s))
    assert known == DelayedJobs(jobs=500, due_in_s=pytest.approx(47.3, abs=0.02))


GROUPS = st.lists(st.builds(DelayedJobs, jobs=st.integers(1, 9), due_in_s=st.floats(0.0, 5000.0)), max_size=20)


@given(GROUPS)
def test_a_group_of_jobs_is_read_as_each_of_its_jobs(groups: list[DelayedJobs]) -> None:
    due_s = sorted(each.due_in_s for each in groups for _ in range(each.jobs))
    assert due_by_groups(groups) == due_by_edges(due_s)


def test_a_job_that_is_never_due_adds_no_edge() -> None:
    """It expires before."""
    assert due_by_edges([7.0, math.inf])[-1] == DueJobs(within_s=10.0, jobs=1)
    assert due_by_edges([math.inf]) == ()


def test_a_sample_holds_all_that_is_distinguished() -> None:
    due = due_by_edges([1.0, *DUE_EDGES_S])
    assert len(DUE_EDGES_S) <= len(due) <= DUE_STEPS_MAX
    assert QueueSample(queue="a", at_s=0.0, waiting_jobs=0, delayed_jobs=99, due=due).due == due


@pytest.mark.parametrize(
    ("due", "delayed_jobs", "says"),
    [
        ([(5.0, 1), (5.0, 2)], 9, "does not ascend"),
        ([(5.0, 2), (6.0, 1)], 9, "does not ascend"),
        ([(5.0, 2)], 1, "2 jobs are due, of delayed_jobs=1"),
        ([(-5.0, 2)], 9, "a time or a number of jobs that is none"),
        ([(float("nan"), 2)], 9, "a time or a number of jobs that is none"),
        ([(float(number), 1) for number in range(DUE_STEPS_MAX + 1)], 9, "at most 100"),
    ],
)
def test_a_curve_that_cannot_be_is_refused(due: list[tuple[float, int]], delayed_jobs: int | None, says: str) -> None:
    steps = tuple(DueJobs(within_s=within_s, jobs=jobs) for within_s, jobs in due)
    with pytest.raises(Invalid, match=says):
        QueueSample(queue="a", at_s=0.0, waiting_jobs=0, delayed_jobs=delayed_jobs, due=steps)


def test_time_brings_jobs_nearer() -> None:
    sample = QueueSample(queue="a", at_s=102.0, waiting_jobs=0, delayed_jobs=3, due=due_by_edges([7.0, 7.0, 41.0]))
    queue = with_newest(QueueMetrics(queue="a", sampled_at_s=101.0, waiting_jobs=0), sample)
    assert queue.delayed_jobs == 3
    first, second = aged(queue, now_s=106.0).delayed
    assert first == DelayedJobs(jobs=2, due_in_s=pytest.approx(3.0, abs=0.02))
    assert second == DelayedJobs(jobs=1, due_in_s=pytest.approx(37.0, abs=0.02))


def test_rows_that_are_far_from_the_sample_take_nothing_from_it() -> None:
    sample = QueueSample(queue="a", at_s=200.0, waiting_jobs=0, delayed_jobs=1, due=due_by_edges([7.0]))
    assert with_newest(QueueMetrics(queue="a", sampled_at_s=100.0), sample).delayed == ()


@pytest.mark.parametrize(("sampled_at_s", "overdue_jobs"), [(102.0, 2), (200.0, 0)])
def test_no_more_jobs_are_due_and_unmoved_than_wait_by_the_rows(sampled_at_s: float, overdue_jobs: int) -> None:
    """The sample is newer than the rows: jobs that became due meanwhile do not wait by these yet."""
    sample = QueueSample(queue="a", at_s=sampled_at_s, waiting_jobs=5, waiting_min_jobs=0)
    assert with_newest(QueueMetrics(queue="a", sampled_at_s=101.0, waiting_jobs=2), sample).overdue_jobs == overdue_jobs


def test_members_are_one_row_of_jobs() -> None:
    a = QueueMetrics(queue="a", sampled_at_s=1.0, delayed_jobs=2, delayed=(DelayedJobs(jobs=2, due_in_s=9.0),))
    b = replace(a, queue="b", delayed=(DelayedJobs(jobs=1, due_in_s=3.0), DelayedJobs(jobs=1, due_in_s=12.0)))
    assert [(each.due_in_s, each.jobs) for each in pooled([a, b]).delayed] == [(3.0, 1), (9.0, 2), (12.0, 1)]


def test_of_a_part_that_was_read_what_is_due_is_known_and_how_many_are_delayed_is_not() -> None:
    due = due_by_edges([7.0])
    sample = QueueSample(queue="a", at_s=102.0, waiting_jobs=None, waiting_min_jobs=0, due=due)
    rows = QueueMetrics(queue="a", sampled_at_s=101.0, delayed_jobs=100_000)
    queue = with_newest(rows, sample)
    assert (queue.delayed_jobs, len(queue.delayed)) == (None, 1)
    both = pooled([queue, replace(rows, queue="b")])
    assert (both.delayed_jobs, len(both.delayed)) == (None, 1)
