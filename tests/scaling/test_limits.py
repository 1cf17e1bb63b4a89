from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.model import Memory, Mode, QueueMetrics, QueueSample, Wanted
from headway.scaling.policy import fallback, limits, stabilization
from headway.scaling.policy.ground import Ground
from headway.scaling.profile import Override
from headway.scaling.profile_keys.schedule import Schedule
from headway.scaling.reading.sample_age import UNREAD_S
from support.pools import NOW_S, ground_of, profile, queue, view

OF_THE_VIEW = {"capacity_workers", "unknown_workers", "assigned_workers", "leaving_workers"}


def ground(*, last: int = 0, wanted: tuple[Wanted, ...] = (), is_fresh: bool = True, **values: Any) -> Ground:
    pool = {key: values.pop(key) for key in list(values) if key in OF_THE_VIEW}
    seen = replace(view(**pool), profile=profile(**values))
    return ground_of(seen, Memory(wanted=wanted), last=last, is_fresh=is_fresh)


def test_stale_metrics_never_lower_but_may_raise() -> None:
    assert fallback.hold_stale(3, ground(last=8, is_fresh=False)) == 8
    assert fallback.hold_stale(9, ground(last=8, is_fresh=False)) == 9
    assert fallback.hold_stale(3, ground(last=8)) == 3


def test_what_nobody_read_of_late_lowers_nothing_either() -> None:
    unread = ground_of(view(), last=8, now_s=NOW_S + UNREAD_S + 1)
    assert fallback.hold_stale(3, unread) == 8
    assert fallback.hold_stale(9, unread) == 9


def test_the_hold_delays_scaling_down_but_never_up() -> None:
    recent = (Wanted(at_s=NOW_S - 14, workers=6),)
    assert stabilization.hold_down(2, ground(last=8, wanted=recent, hold_down_s=15.0)) == 6
    assert stabilization.hold_down(12, ground(last=8, wanted=recent, hold_down_s=15.0)) == 12


def test_the_hold_forgets_wants_older_than_itself() -> None:
    old = (Wanted(at_s=NOW_S - 16, workers=6),)
    assert stabilization.hold_down(2, ground(last=8, wanted=old, hold_down_s=15.0)) == 2


def test_the_hold_never_raises_above_the_last_target() -> None:
    recent = (Wanted(at_s=NOW_S - 1, workers=50),)
    assert stabilization.hold_down(2, ground(last=8, wanted=recent, hold_down_s=15.0)) == 8


@pytest.mark.parametrize(
    ("mode", "wanted", "left"),
    [
        (Mode.ACT, 9, 9),
        (Mode.ACT, 1, 1),
        (Mode.RECOMMEND, 9, 9),  # what to do is said as ever; not doing it is the work of whoever writes assignments
        (Mode.PAUSE, 9, 5),
        (Mode.PAUSE, 1, 5),
        (Mode.PAUSE_UP, 9, 5),
        (Mode.PAUSE_UP, 1, 1),
        (Mode.PAUSE_DOWN, 9, 9),
        (Mode.PAUSE_DOWN, 1, 5),
    ],
)
def test_a_pause_keeps_the_last_target_in_its_direction(mode: Mode, wanted: int, left: int) -> None:
    assert limits.pause(wanted, ground(last=5, mode=mode)) == left


def test_bounds_hold() -> None:
    assert limits.workers_min(0, ground(workers_min=2)) == 2
    assert limits.workers_max(30, ground(workers_max=20)) == 20


def test_unknown_workers_count_against_the_ceiling() -> None:
    """Workers of a host that went silent may still run: together they must not pass the ceiling."""
    assert limits.workers_max(20, ground(workers_max=20, unknown_workers=6)) == 14


@pytest.mark.parametrize(
    ("assigned", "leaving", "unknown", "left"),
    [
        (0, 0, 0, 6),
        (2, 3, 0, 3),  # three still finish their jobs: one more may start
        (4, 2, 0, 4),  # with those that are assigned, six
        (5, 3, 0, 5),  # more than may: nothing starts, and nobody is dismissed for it
        (6, 6, 0, 6),
        (2, 3, 2, 2),
        (2, 0, 6, 0),  # what may run elsewhere does dismiss, as ever
    ],
)
def test_workers_that_leave_keep_others_from_being_started_and_dismiss_nobody(
    assigned: int, leaving: int, unknown: int, left: int
) -> None:
    on = {"assigned_workers": assigned, "leaving_workers": leaving, "unknown_workers": unknown}
    assert limits.workers_max(9, ground(workers_max=6, **on)) == left
    assert limits.pinned(9, ground(pinned=6, **on)) == left
    paid = {"cost_per_worker_hour": 1.0, "budget_per_hour": 6.0}
    assert limits.budget(9, ground(**paid, **on)) == left
    assert limits.rate_limit(9, ground(rate_limit_per_s=6.0, service_time_guess_s=1.0, **on)) == left
    assert limits.ceiling_of(ground(workers_max=6, **on)) == 6 - unknown, "of all that exist together"


def test_an_override_is_the_later_word_of_a_person_than_a_pause() -> None:
    chosen = Override(workers=5, until_s=NOW_S + 60, reason="why")
    paused = view(profile=profile(mode=Mode.PAUSE, override=chosen))
    assert decide(paused, Memory(target_workers=2), now_s=NOW_S)[0].target_workers == 5


def test_capacity_is_never_exceeded_and_unknown_capacity_holds() -> None:
    assert limits.capacity(20, ground(last=4, capacity_workers=7)) == 7
    assert limits.capacity(20, ground(last=4, capacity_workers=None)) == 4


def test_a_change_within_the_tolerance_is_not_made() -> None:
    def left(count: int) -> int:
        return limits.tolerance(count, ground(last=20, tolerance_fraction=0.1))

    assert [left(count) for count in (17, 18, 19, 20, 21, 22, 23)] == [17, 20, 20, 20, 20, 20, 23]


def test_no_tolerance_keeps_a_pool_from_zero_or_at_zero() -> None:
    assert limits.tolerance(0, ground(last=1, tolerance_fraction=0.9)) == 0
    assert limits.tolerance(1, ground(last=0, tolerance_fraction=0.9)) == 1


@pytest.mark.parametrize(
    ("values", "last", "count", "left"),
    [
        ({}, 10, 100, 100),
        ({}, 10, 0, 0),
        ({"step_up_workers": 3}, 10, 100, 13),
        ({"step_up_workers": 3}, 10, 12, 12),
        ({"step_up_workers": 3}, 10, 0, 0),  # one direction only
        ({"step_up_fraction": 0.5}, 10, 100, 15),
        ({"step_up_fraction": 0.5, "step_up_workers": 3}, 10, 100, 15),  # the one that allows more
        ({"step_up_fraction": 0.5, "step_up_workers": 3}, 4, 100, 7),
        ({"step_up_fraction": 0.5}, 0, 100, 1),  # out of zero
        ({"step_down_workers": 3}, 10, 0, 7),
        ({"step_down_fraction": 0.29}, 100, 0, 71),
        ({"step_down_fraction": 0.1}, 5, 0, 4),  # never none
    ],
)
def test_a_step_is_no_longer_than_its_direction_allows(
    values: dict[str, Any], last: int, count: int, left: int
) -> None:
    assert limits.step(count, ground(last=last, **values)) == left


def test_the_hold_up_takes_what_was_wanted_all_the_time() -> None:
    lows = (Wanted(at_s=NOW_S - 20, workers=4), Wanted(at_s=NOW_S - 5, workers=7))

    def left(count: int, *, last: int) -> int:
        on = ground(last=last, hold_up_s=30.0)
        return stabilization.hold_up(count, replace(on, memory=Memory(lows=lows)))

    assert left(9, last=2) == 4
    assert left(9, last=6) == 6  # never down
    assert left(1, last=6) == 1
    assert stabilization.hold_up(9, ground(last=2, hold_up_s=30.0)) == 2  # nothing is remembered yet


def test_the_hold_up_passes_by_itself_when_a_want_lasts() -> None:
    """Through ``decide``: a want of 20 workers that lasts is taken after 30 s and no tick earlier."""
    busy, memory = view(queue(in_flight_jobs=20)), Memory()
    busy = replace(busy, profile=profile(hold_up_s=30.0))
    targets = []
    for tick in range(9):
        seen = replace(busy, queues=(queue(in_flight_jobs=20, sampled_at_s=NOW_S + 5 * tick),))
        decision, memory = decide(seen, memory, now_s=NOW_S + 5 * tick)
        targets.append(decision.target_workers)
    assert targets[:7] == [0] * 7  # up to and with 30 s
    assert targets[7] == targets[8] >= 20


@pytest.mark.parametrize(
    ("age_s", "direct_age_s", "count", "left"),
    [
        (100.0, None, 9, 9),  # stale, but not for long
        (301.0, None, 9, 4),
        (301.0, None, 1, 4),
        (301.0, 5.0, 9, 9),  # the collector's own reading is fresh: it may raise
        (301.0, 5.0, 1, 4),  # and never lower
        (301.0, 60.0, 9, 4),  # it is stale, too
    ],
)
def test_the_fallback_follows_when_metrics_stay_away(
    age_s: float, direct_age_s: float | None, count: int, left: int
) -> None:
    old = queue(sampled_at_s=NOW_S - age_s)
    direct = () if direct_age_s is None else (QueueSample(queue=old.queue, at_s=NOW_S - direct_age_s, waiting_jobs=1),)
    seen = replace(view(old, direct=direct), profile=profile(fallback_workers=4))
    on = ground_of(seen, last=9, is_fresh=False)
    assert fallback.fallback(count, on) == left
    assert fallback.fallback(count, replace(on, freshness=replace(on.freshness, is_fresh=True))) == count


def test_without_a_fallback_or_before_anything_was_seen_the_target_is_held() -> None:
    assert fallback.fallback(9, ground(is_fresh=False)) == 9
    unseen = replace(view(QueueMetrics(queue="redis/mail")), profile=profile(fallback_workers=4))
    assert fallback.fallback(9, ground_of(unseen, last=9, is_fresh=False)) == 9


def test_an_override_holds_until_it_expires() -> None:
    def left(until_s: float) -> int:
        return limits.override(3, ground(override=Override(workers=12, until_s=until_s, reason="sale")))

    assert (left(NOW_S + 0.1), left(NOW_S)) == (12, 3)


def test_a_schedule_moves_both_bounds_while_it_is_active() -> None:
    """At 13:46:40 UTC."""
    lunch = Schedule(starts="13:00", ends="14:00", workers_min=4, workers_max=6)
    tea = Schedule(starts="16:00", ends="17:00", workers_min=9)
    on = ground(schedules=(lunch, tea), workers_min=1, workers_max=50)
    assert [limits.schedule(count, on) for count in (0, 5, 30)] == [4, 5, 6]
    assert (limits.workers_min(0, on), limits.workers_max(30, on)) == (4, 6)
    night = replace(on, now_s=NOW_S + 12 * 3600)
    assert [limits.schedule(count, night) for count in (0, 30)] == [0, 30]
    assert (limits.workers_min(0, night), limits.workers_max(99, night)) == (1, 50)


def test_a_pinned_count_is_exact_and_counts_those_that_may_still_run() -> None:
    assert [limits.pinned(count, ground(pinned=4)) for count in (0, 4, 9)] == [4, 4, 4]
    assert limits.pinned(4, ground(pinned=4, unknown_workers=3)) == 1


@pytest.mark.parametrize(
    ("rate_per_s", "service_time_s", "slots_per_worker", "ceiling"),
    [
        (10.0, 2.0, 1, 20),  # 10/s × 2 s
        (10.0, 2.0, 8, 2),  # 20 slots, eight a worker
        (10.0, 0.01, 1, 1),  # a tenth of a slot, but somebody must call
        (10.0, None, 1, 30),  # nothing has finished: the profile's guess of 3 s
    ],
)
def test_a_rate_limit_is_a_ceiling_in_slots(
    rate_per_s: float, service_time_s: float | None, slots_per_worker: int, ceiling: int
) -> None:
    seen = view(queue(service_time_s=service_time_s), slots_per_worker=slots_per_worker)
    seen = replace(seen, profile=profile(rate_limit_per_s=rate_per_s, service_time_guess_s=3.0))
    on = ground_of(seen)
    assert limits.rate_limit(1_000, on) == ceiling
    assert limits.rate_limit(0, on) == 0


def budgeted(*, now_s: float = NOW_S, spent: float | None = None, unknown: int = 0, **values: Any) -> int:
    seen = replace(
        view(worker_hours_today=spent, unknown_workers=unknown), profile=profile(cost_per_worker_hour=0.5, **values)
    )
    return limits.budget(90, ground_of(seen, now_s=now_s))


NOON_S, LATE_S = 12 * 3600.0, 23.5 * 3600.0


@pytest.mark.parametrize(
    ("left", "values"),
    [
        (90, {}),  # a price alone limits nothing
        (10, {"budget_per_hour": 5.0}),  # 5 an hour at 0.5 each
        (7, {"budget_per_hour": 5.0, "unknown": 3}),
        (0, {"budget_per_hour": 0.4}),  # not one
        # 120 worker-hours a day, at noon:
        (20, {"budget_per_day": 60.0, "now_s": NOON_S, "spent": 100.0}),  # 20 h are left: 20 workers for an hour
        (22, {"budget_per_day": 60.0, "now_s": NOON_S, "spent": 87.0, "workers_min": 1}),  # 33 − 12 h, and 1
        (1, {"budget_per_day": 60.0, "now_s": NOON_S, "spent": 100.0, "workers_min": 5}),  # 20 h ÷ 12 h for the floor
        (0, {"budget_per_day": 60.0, "now_s": NOON_S, "spent": 120.0, "workers_min": 5}),
        (0, {"budget_per_day": 60.0, "now_s": NOON_S, "spent": 500.0}),
        (40, {"budget_per_day": 60.0, "now_s": LATE_S, "spent": 100.0}),  # 20 h in the last half hour
        (5, {"budget_per_day": 60.0, "now_s": NOON_S, "spent": None}),  # not known: 120 h over 24 h
        (10, {"budget_per_day": 60.0, "budget_per_hour": 5.0, "now_s": NOON_S, "spent": 0.0}),  # the hour's is less
    ],
)
def test_a_budget_is_what_can_be_paid(left: int, values: dict[str, Any]) -> None:
    assert budgeted(**values) == left


@given(
    wishes=st.lists(st.integers(0, 60), min_size=40, max_size=40),
    budget=st.floats(1.0, 300.0),
    floor=st.integers(0, 10),
    from_h=st.floats(0.0, 23.9),
)
def test_a_day_never_costs_more_than_its_budget(wishes: list[int], budget: float, floor: int, from_h: float) -> None:
    """Evaluations five minutes apart until midnight, whatever is wished for; the floor is paid for as well."""
    spent_hours, at_s = 0.0, from_h * 3600
    evaluations = 0
    while at_s < 86_400:
        seen = replace(
            view(worker_hours_today=spent_hours),
            profile=profile(cost_per_worker_hour=1.0, budget_per_day=budget, workers_min=floor),
        )
        on = ground_of(seen, now_s=at_s)
        workers = limits.budget(max(floor, wishes[evaluations % len(wishes)]), on)
        evaluations += 1
        span_s = min(300.0, 86_400 - at_s)
        spent_hours += workers * span_s / 3600
        at_s += span_s
    assert spent_hours <= budget + 1e-6
