"""Which ends of RQ jobs without a record workers have counted, by the queues that each worker serves."""

import pytest

from headway.collect.rq.rq_workers import FIELDS
from headway.collect.rq.unseen_ends import UnseenEnds


def serves(queues: str, ended_jobs: int) -> list[str | None]:
    known: dict[str, str] = {"pid": "7", "queues": queues, "successful_job_count": str(ended_jobs)}
    return [known.get(name) for name in FIELDS]


@pytest.mark.parametrize(
    ("counted", "ended_jobs", "explained"),
    [
        (None, 1_000, 0),  # nobody knows how many of them are of before
        ({}, 3, 3),  # a worker that is new
        ({"w": 1_000}, 1_003, 3),
        ({"w": 1_000}, 3, 3),  # another one of the same name, which counts from 0
        ({"w": 1_000}, 1_000, 0),
    ],
)
def test_a_worker_has_ended_what_it_counts_more_than_before(
    counted: dict[str, int] | None, ended_jobs: int, explained: int
) -> None:
    ends = UnseenEnds(counted)
    ends.take({"w": serves("mail", ended_jobs)})
    assert ends.explain("mail", 50) == explained


def test_each_end_explains_one_job_of_a_queue_that_its_worker_serves() -> None:
    ends = UnseenEnds({})
    ends.take({"a": serves("mail,news", 5), "b": serves("video", 9)})
    found = [ends.explain("mail", 2), ends.explain("news", 50), ends.explain("mail", 50), ends.explain("bulk", 50)]
    assert found == [2, 3, 0, 0]


def test_ends_that_explain_no_job_are_of_jobs_that_no_poll_has_seen() -> None:
    ends = UnseenEnds({})
    ends.take({"w": serves("mail", 5)})
    ends.forget()
    assert ends.explain("mail", 50) == 0
