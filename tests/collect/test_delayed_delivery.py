"""What the levels of Celery's delayed delivery say of when jobs are due."""

import json
import random
import statistics
from collections import Counter, deque
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.collect.celery.celery_on_rabbitmq import CeleryOnRabbitmq
from headway.collect.celery.delayed_delivery import MASKED_S, POINTS_MAX, DelayLevels
from headway.collect.rabbitmq.broker_reader import QueueCount
from headway.connections import Connection
from headway.scaling.model import QueueSample
from headway.scaling.model.due_jobs import DUE_EDGES_S, DUE_TOGETHER_S, delayed_from, due_by_groups


def due_in_s(levels: DelayLevels, counts: dict[int, int], *, at_s: float) -> list[tuple[float, int]]:
    """When so many jobs may be due, as an evaluation takes it."""
    return [(each.due_in_s, each.jobs) for each in delayed_from(due_by_groups(levels.delayed(counts, at_s=at_s)))]


def test_a_delay_of_one_bit_is_known_to_a_poll() -> None:
    """Fifty tasks with a countdown of 128 s were due in 127 s at each poll, until they were ready and nobody was."""
    levels = DelayLevels()
    levels.see({7: 0}, at_s=9.0)
    for at_s in (10.0, 49.0, 50.0):
        levels.see({7: 50}, at_s=at_s)
    levels = DelayLevels(json.loads(json.dumps(levels.to_state())))  # another collector goes on
    levels.see({7: 53}, at_s=100.0)
    assert due_in_s(levels, {7: 53}, at_s=100.0) == [
        (pytest.approx(9.0 + 128.0 - 100.0, abs=0.02), 50),
        (pytest.approx(49.0 + 128.0 - 100.0, abs=0.02), 3),
    ]
    assert due_in_s(levels, {7: 53}, at_s=136.0)[0] == (pytest.approx(1.0, abs=0.02), 50)
    levels.see({7: 3}, at_s=139.0)
    assert due_in_s(levels, {7: 3}, at_s=139.0) == [(pytest.approx(49.0 + 128.0 - 139.0, abs=0.02), 3)]


def test_messages_that_were_there_before_the_first_poll_may_have_entered_at_that_moment() -> None:
    levels = DelayLevels()
    levels.see({7: 5}, at_s=100.0)
    assert due_in_s(levels, {7: 5}, at_s=160.0) == [(pytest.approx(68.0, abs=0.02), 5)]
    levels.see({7: 5}, at_s=10_000.0)  # others, and nobody counted meanwhile
    assert due_in_s(levels, {7: 5}, at_s=10_000.0) == [(pytest.approx(128.0, abs=0.02), 5)]
    assert due_in_s(levels, {7: 6, 3: 1}, at_s=10_000.0)[0] == (pytest.approx(8.0, abs=0.02), 1), (
        "no count of its own yet"
    )


def test_as_many_that_enter_as_leave_are_due_later() -> None:
    levels = DelayLevels()
    for at_s in range(100, 191):
        levels.see({5: 4 if at_s > 100 else 0}, at_s=float(at_s))
    ((due_s, jobs),) = due_in_s(levels, {5: 4}, at_s=190.0)
    # Four entered at 100 to 101, and four as they left: at 132 to 133, and 164 to 165.
    assert (due_s, jobs) == (pytest.approx(164.0 + 32.0 - 190.0, abs=1.1), 4)


@given(
    st.lists(st.tuples(st.floats(0.0, 100.0), st.integers(1, 2**6).map(lambda each: 4 * each)), max_size=40),
    st.lists(st.floats(0.1, 2.0), min_size=1, max_size=60),
)
def test_no_job_comes_before_it_was_due(sent: list[tuple[float, int]], pauses_s: list[float]) -> None:
    """Whatever is sent between whatever polls, from the first one on, to levels that outlast the time between two."""
    levels, at_s = DelayLevels(), -1.0
    levels.see(dict.fromkeys(range(13), 0), at_s=at_s)
    for pause_s in pauses_s:
        at_s += pause_s
        left = [each for delay in sent if (each := left_of(*delay, at_s=at_s)) is not None]
        counts = Counter(level for level, _ in left)
        levels.see({level: counts[level] for level in range(13)}, at_s=at_s)
        found = due_in_s(levels, counts, at_s=at_s)
        for _, left_s in left:
            if left_s < DUE_EDGES_S[-1]:
                truly = sum(each_s <= left_s for _, each_s in left)
                assert sum(jobs for due_s, jobs in found if due_s <= left_s + DUE_TOGETHER_S) >= truly
        due = due_by_groups(levels.delayed(counts, at_s=at_s))
        QueueSample(queue="mail", at_s=1.0, waiting_jobs=0, delayed_jobs=len(left), due=due)


def test_messages_that_leave_somewhat_late_make_no_others_late() -> None:
    """At 138 a broker still has the fifty whose time is over. Until 138.5 as many more seem to have entered."""
    levels = DelayLevels()
    for at_s, jobs in ((9.0, 0), (10.0, 50), (60.0, 50), (137.5, 50), (138.0, 50), (138.5, 0), (200.0, 0), (201.0, 5)):
        levels.see({7: jobs}, at_s=at_s)
    for at_s in (265.5, 266.0, 266.5):
        levels.see({7: 5}, at_s=at_s)
        assert due_in_s(levels, {7: 5}, at_s=at_s) == [(pytest.approx(201.0 + 128.0 - at_s, abs=MASKED_S + 1.1), 5)]


def left_of(sent_s: float, delay_s: int, *, at_s: float) -> tuple[int, float] | None:
    """At which level a message waits, and for how long it will; ``None`` of one that is not there.

    It waits 2**N s for each bit that is set, the highest first.
    """
    entered_s = sent_s
    for level in reversed(range(13)):
        leaves_s = entered_s + (delay_s & 2**level)
        if entered_s <= at_s < leaves_s:
            return level, sent_s + delay_s - at_s
        entered_s = leaves_s
    return None


def test_messages_that_enter_all_the_time_take_bounded_memory() -> None:
    levels = DelayLevels()
    for poll in range(1_000):
        levels.see({12: poll}, at_s=float(poll))
    (points,) = levels.to_state().values()
    assert len(points) == POINTS_MAX
    assert max(later[0] - sooner[0] for sooner, later in pairwise(points)) <= 2.5 * 1_000 / POINTS_MAX


def test_a_level_at_rest_takes_almost_none() -> None:
    levels = DelayLevels()
    for poll in range(1_000):
        levels.see({12: 0, 13: 7}, at_s=float(poll))
    for points in levels.to_state().values():
        assert [at_s for at_s, _ in points][-2:] == [998.0, 999.0], "when others enter, they do so after these"
        assert len(points) <= 5


@pytest.mark.parametrize("rate_per_s", [1.0, 50.0])
def test_of_a_steady_flow_as_many_are_due_soon_as_come(rate_per_s: float) -> None:
    """As many enter as leave, so that counts hardly change."""
    chance, levels, entered_s, at_s = random.Random(1), DelayLevels(), deque[float](), 0.0
    next_s = 0.0
    errors = []
    for poll in range(2_000):
        at_s += 0.5
        while next_s <= at_s:
            entered_s.append(next_s)
            next_s += chance.expovariate(rate_per_s)
        while entered_s and entered_s[0] + 64.0 <= at_s:
            entered_s.popleft()
        levels.see({6: len(entered_s)}, at_s=at_s)
        if poll > 500 and poll % 20 == 0:
            soon = sum(jobs for due_s, jobs in due_in_s(levels, {6: len(entered_s)}, at_s=at_s) if due_s < 10.0)
            errors.append(soon - sum(each_s + 64.0 - at_s <= 10.0 for each_s in entered_s))
    assert 0.0 <= statistics.mean(errors) <= 3.0 + 2.0 * rate_per_s
    assert min(errors) >= -2.0 - 0.5 * rate_per_s


def test_a_count_that_is_seconds_old_does_not_show_that_no_message_has_entered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of more than 50 quorum queues, some are counted by each poll; of the others the API knows how it was 5 s ago."""
    source = CeleryOnRabbitmq(Connection(name="shop", url="amqp://h", library="celery"), None)
    found: list[tuple[float, int]] = []
    for at_s, jobs, is_current in (
        *((at_s, 1, True) for at_s in (70.0, 98.0, 99.0)),
        *((at_s, 1, False) for at_s in (100.0, 101.0, 102.0)),
        *((at_s, 51, True) for at_s in (103.0, 190.0)),
    ):
        counts = {
            "mail": QueueCount(ready_jobs=0, unacked_jobs=0),
            "celery_delayed_7": QueueCount(ready_jobs=jobs, unacked_jobs=0, is_current=is_current),
        }
        monkeypatch.setattr(source._reader, "read", lambda _, counts=counts: counts)
        monkeypatch.setattr(source._routes, "only_queue", lambda _, at_s: "mail")
        (sample,) = source.poll(at_s).samples
        assert sample.delayed_jobs == jobs
        found = [(each.due_in_s, each.jobs) for each in delayed_from(sample.due)]
    first, fifty = found
    assert first == (pytest.approx(70.0 + 128.0 - 190.0, abs=0.02), 1)
    assert fifty == (pytest.approx(98.0 + 128.0 - 190.0, abs=0.02), 50), "after 99, and a poll before that"
