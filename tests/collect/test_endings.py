"""Where the new ones among ended jobs are."""

import json

import pytest

from headway.collect.rq.ended_jobs import KEPT_TIMES_MAX, SLACK_S, EndedJobs

KEPT_S = 500.0


def within(endings: EndedJobs, score: float, now_s: float) -> bool:
    return any(low <= score <= high for low, high in endings.spans(now_s))


def test_every_end_since_the_last_reading_is_inside_a_span_also_if_it_is_written_late() -> None:
    endings = EndedJobs(begins_at_s=1000.0, kept_s=[KEPT_S])
    endings.read(1000.4, [None])
    for ended_s in (999.0, 1000.4, 1000.9):  # the first by a worker whose clock is behind
        assert within(endings, int(ended_s) + KEPT_S, now_s=1000.9)


def test_what_ended_long_before_is_outside() -> None:
    endings = EndedJobs(begins_at_s=1000.0, kept_s=[KEPT_S])
    endings.read(2000.0, [None])
    assert not within(endings, 2000 - SLACK_S - 2 + KEPT_S, now_s=2000.5)


def test_after_a_pause_everything_since_is_inside() -> None:
    endings = EndedJobs(begins_at_s=1000.0, kept_s=[KEPT_S])
    assert within(endings, 1001 + KEPT_S, now_s=4000.0)


def test_a_reading_that_stopped_goes_on_where_it_stopped() -> None:
    endings = EndedJobs(begins_at_s=1000.0, kept_s=[KEPT_S])
    endings.read(4000.0, [1700.0])
    ((low, _),) = endings.spans(4000.0)
    assert low == 1700.0
    endings.read(4000.0, [1700.0])  # a single second that is too much for one reading
    ((low, _),) = endings.spans(4000.0)
    assert low == 1701.0
    assert endings.read_until_s < 4000.0


@pytest.mark.parametrize(
    ("kept_s", "learns"),
    [
        (60.0, True),
        (KEPT_S + 1.0, False),  # the slack covers it
        (float("inf"), False),  # kept for ever: no order in there
        (-1.0, False),
    ],
)
def test_another_time_of_keeping_is_learnt(kept_s: float, *, learns: bool) -> None:
    endings = EndedJobs(begins_at_s=1000.0, kept_s=[KEPT_S])
    endings.read(1100.0, [None])
    endings.learn(kept_s, since_s=1090.0)
    assert (len(endings.spans(1100.0)) == 2) is learns
    assert endings.read_until_s == (1090.0 if learns else 1100.0)


def test_times_of_keeping_are_bounded() -> None:
    endings = EndedJobs(begins_at_s=1000.0, kept_s=[KEPT_S])
    for minutes in range(100):
        endings.learn(minutes * 60.0, since_s=1000.0)
    assert len(endings.spans(1000.0)) == KEPT_TIMES_MAX


def test_a_restart_goes_on() -> None:
    endings = EndedJobs(begins_at_s=1000.0, kept_s=[KEPT_S])
    endings.learn(60.0, since_s=900.0)
    again = EndedJobs.from_state(json.loads(json.dumps(endings.to_state())))
    assert again.spans(1234.0) == endings.spans(1234.0)
