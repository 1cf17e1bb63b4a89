import math

import pytest

from headway.cli.demo.demo_workloads import WORKLOADS, bursts, day
from headway.scaling.planning.feasibility import feasibility
from headway.scaling.reading.pool_times import PoolTimes
from headway.simulate.replay import scheduled
from headway.simulate.traces import BURSTY_LLM_CODE, load


def test_the_day_has_two_queues_of_different_objective():
    mail, reports = day().lanes
    assert (mail.profile.objective.target_s, reports.profile.objective.target_s) == (10, 30)
    assert {lane.profile.pool for lane in day().lanes} == {"mail", "reports"}


def test_a_whole_day_is_played_in_less_than_four_minutes():
    played = day()
    assert played.length_s / played.times_faster == played.for_s < 240


def test_the_day_has_idle_stretches_and_a_rush_that_a_laptop_has_room_for():
    for lane in day().lanes:
        jobs = day().jobs(lane, speed=1, for_s=216)
        hours = [sum(job.service_s for job in jobs if job.at_s // 9 == hour) / 9 for hour in range(24)]
        assert sum(load_ < 0.15 * max(hours) for load_ in hours) >= 5, "a night"
        assert max(hours) > 2 * sum(hours) / 24
        assert max(hours) <= 13
        assert max(job.at_s + job.service_s for job in jobs) < 222, "the last job ends soon after the day"


def test_the_same_jobs_are_played_whatever_part_of_the_day_is_asked_for():
    lane = day().lanes[0]
    whole, part = (day().jobs(lane, speed=1, for_s=for_s) for for_s in (216, 90))
    assert part == tuple(job for job in whole if job.at_s < 90)
    assert len(whole) == len(lane.jobs)


def test_a_second_day_follows_the_first():
    lane = day().lanes[0]
    assert len(day().jobs(lane, speed=1, for_s=432)) == 2 * len(lane.jobs)


def test_a_faster_day_is_still_one_day():
    lane = day().lanes[1]
    assert day().whole_s(speed=2) == 108
    assert len(day().jobs(lane, speed=2, for_s=108)) == len(lane.jobs)


@pytest.mark.parametrize(
    ("at_s", "speed", "clock"),
    [(0, 1, "05:00"), (9, 1, "06:00"), (4.5, 2, "06:00"), (171, 1, "00:00"), (216, 1, "05:00")],
)
def test_the_recorded_time_of_day(at_s, speed, clock):
    assert day().clock(at_s, speed=speed) == clock


def test_the_bursts_are_the_recording_as_it_was():
    (lane,) = bursts().lanes
    assert bursts().jobs(lane, speed=1, for_s=180) == scheduled(load(BURSTY_LLM_CODE), speed=1, for_s=180)
    assert (lane.profile.pool, lane.profile.queues, lane.profile.workers_max) == ("demo", ("demo/llm-code",), 24)
    assert bursts().clock(10, speed=1) is None
    assert bursts().whole_s(speed=3) == 180


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_every_profile_can_meet_its_objective(name):
    for lane in WORKLOADS[name]().lanes:
        jobs = lane.jobs
        mean_s = sum(job.service_s for job in jobs) / len(jobs)
        notes = feasibility(
            lane.profile,
            PoolTimes(known_start_up_s=2.0),
            slots_per_worker=1,
            arrival_rate_per_s=1.0,
            service_time_s=mean_s,
        )
        assert notes == ()
        assert math.isclose(lane.profile.service_time_guess_s, mean_s, rel_tol=0.7), "what somebody would guess"
