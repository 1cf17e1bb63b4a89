import itertools

import pytest

from headway.errors import Invalid
from headway.simulate.replay import RecordedJob, replay, scheduled
from headway.simulate.traces import BURSTY_LLM_CODE, DAY_FLIGHTS, DAY_TWEETS, load


def job(at_s: float, service_s: float = 1.0) -> RecordedJob:
    return RecordedJob(at_s=at_s, service_s=service_s)


class FakeTime:
    """A clock that only waiting and sending move."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def clock(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> bool:
        self.now_s += seconds
        return False


def test_jobs_are_sent_at_their_recorded_times():
    time, sent = FakeTime(), []
    count = replay(
        [job(0), job(1.5), job(4)], send=lambda i, _: sent.append((i, time.now_s)), clock=time.clock, wait=time.wait
    )
    assert count == 3
    assert sent == [(0, 1000.0), (1, 1001.5), (2, 1004.0)]


def test_a_slow_send_delays_no_later_job_more_than_it_must():
    time, sent = FakeTime(), []

    def send(index: int, _: RecordedJob) -> None:
        sent.append(time.now_s)
        if index == 0:
            time.now_s += 2.5  # the broker took its time

    replay([job(0), job(1), job(2), job(4)], send=send, clock=time.clock, wait=time.wait)
    assert sent == [1000.0, 1002.5, 1002.5, 1004.0]


def test_a_replay_that_is_asked_to_end_reports_how_many_it_sent():
    time, sent = FakeTime(), []

    def wait(seconds: float) -> bool:
        return time.wait(seconds) or time.now_s >= 1002

    assert replay([job(0), job(1), job(2)], send=lambda i, _: sent.append(i), clock=time.clock, wait=wait) == 2
    assert sent == [0, 1]


def test_speed_compresses_gaps_but_never_service_times():
    fast = scheduled([job(10, 3), job(14, 5)], speed=4, for_s=60)
    assert fast[:2] == (job(0, 3), job(1, 5))


def test_jobs_after_the_end_are_not_sent():
    assert [each.at_s for each in scheduled([job(0), job(9), job(10)], speed=1, for_s=10)] == [0, 9]


def test_a_workload_that_is_too_short_begins_again_a_mean_gap_later():
    # gaps of 2 and 4: mean 3, so a round lasts 9
    assert [each.at_s for each in scheduled([job(0), job(2), job(6)], speed=1, for_s=16)] == [0, 2, 6, 9, 11, 15]


def test_a_day_begins_and_ends_with_its_quiet_and_begins_again_a_day_later():
    day = scheduled([job(20), job(60)], speed=2, for_s=125, length_s=100)
    assert [each.at_s for each in day] == [10, 30, 60, 80, 110]


@pytest.mark.parametrize(
    ("speed", "for_s", "length_s"), [(0, 1, 1), (-1, 1, 1), (1, 0, 1), (float("nan"), 1, 1), (1, 1, 0)]
)
def test_a_speed_or_length_of_nothing_is_refused(speed, for_s, length_s):
    with pytest.raises(Invalid, match="must be above 0"):
        scheduled([job(0)], speed=speed, for_s=for_s, length_s=length_s)


def test_a_single_job_is_sent_once():
    assert scheduled([job(7)], speed=1, for_s=10) == (job(0),)


def test_the_recorded_workload_begins_with_its_burst_and_its_first_minute_and_a_half_has_work_for_several():
    jobs = load(BURSTY_LLM_CODE)
    assert len(jobs) == 8174
    assert jobs[0].at_s == 0
    assert all(one.at_s <= two.at_s for one, two in itertools.pairwise(jobs))
    assert min(each.service_s for each in jobs) >= 0.001
    first = scheduled(jobs, speed=1, for_s=90)
    assert len(first) == 317
    assert sum(each.service_s for each in first) / 90 == pytest.approx(4.8, abs=0.1)


@pytest.mark.parametrize(("name", "jobs", "busiest_hour"), [(DAY_FLIGHTS, 190, 1), (DAY_TWEETS, 202, 11)])
def test_the_recorded_days_have_24_hours_of_which_one_is_the_busiest(name, jobs, busiest_hour):
    day = load(name, keeps_quiet=True)
    assert len(day) == jobs
    assert all(one.at_s <= two.at_s for one, two in itertools.pairwise(day))
    assert 0 <= day[0].at_s < 3600
    hours = [sum(each.at_s // 3600 == hour for each in day) for hour in range(24)]
    assert hours.index(max(hours)) == busiest_hour
