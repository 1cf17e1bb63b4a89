"""How often something has happened lately."""

from headway.control.sliding_counter import COUNTER_MOMENTS_MAX, SlidingCounter


def test_what_is_over_does_not_count() -> None:
    now_s = 0.0
    lately = SlidingCounter(60.0, clock=lambda: now_s)
    lately.add()
    now_s = 50.0
    lately.add(3)
    assert lately.count == 4
    now_s = 61.0
    assert lately.count == 3
    now_s = 200.0
    assert lately.count == 0


def test_a_flood_takes_no_more_room_than_a_thousand_moments_and_is_counted() -> None:
    lately = SlidingCounter(60.0, clock=lambda: 0.0)
    for _ in range(3 * COUNTER_MOMENTS_MAX):
        lately.add()
    assert lately.count == 3 * COUNTER_MOMENTS_MAX
    assert len(lately._moments) == COUNTER_MOMENTS_MAX


def test_nothing_is_no_moment() -> None:
    lately = SlidingCounter(60.0, clock=lambda: 0.0)
    lately.add(0)
    assert (lately.count, len(lately._moments)) == (0, 0)
