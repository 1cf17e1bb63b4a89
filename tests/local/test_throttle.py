from headway.local import throttle
from headway.local.throttle import Throttle


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_the_first_is_due_and_the_next_after_the_span_with_how_many_were_left_out() -> None:
    clock = Clock()
    lines = Throttle(60.0, clock=clock)
    assert [lines.due("a"), lines.due("a"), lines.due("a")] == [0, None, None]
    clock.now_s += 60.0
    assert [lines.due("a"), lines.due("a")] == [2, None]


def test_each_key_counts_apart() -> None:
    lines = Throttle(clock=Clock())
    assert [lines.due("a"), lines.due("b"), lines.due("a")] == [0, 0, None]


def test_so_many_times_in_a_span_are_due() -> None:
    clock = Clock()
    lines = Throttle(60.0, times=3, clock=clock)
    assert [lines.due() for _ in range(5)] == [0, 0, 0, None, None]
    clock.now_s += 60.0
    assert [lines.due() for _ in range(4)] == [2, 0, 0, None]


def test_a_restart_counts_as_one_that_has_just_happened() -> None:
    clock = Clock()
    lines = Throttle(60.0, clock=clock)
    lines.restart()
    assert lines.due() is None
    clock.now_s += 59.0
    lines.restart()
    clock.now_s += 59.0
    assert lines.due() is None


def test_keys_that_anybody_can_make_up_are_bounded() -> None:
    lines = Throttle(clock=Clock())
    for number in range(3 * throttle.KEYS_MAX):
        lines.due(str(number))
    assert len(lines._spans) <= throttle.KEYS_MAX
