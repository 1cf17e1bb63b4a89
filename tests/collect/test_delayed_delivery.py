"""What the levels of Celery's delayed delivery say of when jobs are due."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.collect.celery.delayed_delivery import delay_level, due_by_levels
from headway.scaling.model import QueueSample


@pytest.mark.parametrize(
    ("queue", "level"),
    [("celery_delayed_0", 0), ("celery_delayed_27", 27), ("celery_delayed_delivery", None), ("mail", None)],
)
def test_a_queue_of_the_chain_has_its_level(queue: str, level: int | None) -> None:
    assert delay_level(queue) == level


@given(st.lists(st.tuples(st.integers(1, 2**28 - 1), st.floats(0.0, 1.0)), max_size=30))
def test_each_job_is_due_by_the_time_at_which_it_is_counted(delays: list[tuple[int, float]]) -> None:
    """A message waits 2**N s for each bit that is set, the highest first."""
    jobs: dict[int, int] = {}
    left_s = []
    for delay_s, part in delays:
        passed_s, left = part * delay_s, float(delay_s)
        for level in reversed(range(28)):
            waits_s = float(delay_s & 2**level)
            if waits_s and passed_s < waits_s:
                jobs[level] = jobs.get(level, 0) + 1
                left_s.append(left - passed_s)
                break
            passed_s, left = passed_s - waits_s, left - waits_s
    due = due_by_levels(jobs)
    assert all(sum(each_s <= each.within_s for each_s in left_s) >= each.jobs for each in due)
    assert sum(jobs.values()) == (due[-1].jobs if due else 0)
    QueueSample(queue="mail", at_s=1.0, waiting_jobs=0, delayed_jobs=len(left_s), due=due)
