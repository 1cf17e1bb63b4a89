"""Events of jobs on their way to the control plane: in order, in batches, each under one number, within a bound."""

from hypothesis import given
from hypothesis import strategies as st

from headway.agent.controlplane.event_queue import (
    EVENTS_KEPT_MAX,
    EVENTS_SENT_MAX,
    RECEPTION_TIMES_MAX,
    EventQueue,
)
from headway.scaling.model import EventKind, JobEvent, QueueReceptions, TelemetryBatch


def events(count: int, first: int = 0) -> list[JobEvent]:
    return [
        JobEvent(queue="celery/mail", job_id=str(first + number), kind=EventKind.STARTED, at_s=1.0)
        for number in range(count)
    ]


def taken(queue: EventQueue, host_id: str = "h1") -> TelemetryBatch:
    batch = queue.take(host_id=host_id, sent_at_s=2.0)
    assert batch is not None
    return batch


def test_nothing_waits_at_first() -> None:
    queue = EventQueue()
    assert queue.take(host_id="h1", sent_at_s=2.0) is None
    assert len(queue) == 0


def test_a_batch_that_failed_goes_again_under_its_number_before_what_came_since() -> None:
    queue = EventQueue()
    queue.add(events(1))
    first = taken(queue)
    queue.add(events(1, first=1))
    assert taken(queue) is first
    queue.sent(first)
    second = taken(queue)
    assert (second.producer, second.sequence) == (first.producer, first.sequence + 1)
    assert [each.job_id for each in second.events] == ["1"]


def test_a_host_that_was_enrolled_anew_sends_the_batch_under_its_new_id() -> None:
    queue = EventQueue()
    queue.add(events(1))
    before, after = taken(queue), taken(queue, host_id="h2")
    assert after.events == before.events
    assert (after.producer.startswith("agent-h2-"), after.sequence > before.sequence) == (True, True)


def test_two_agents_of_a_host_send_under_two_names() -> None:
    one, other = EventQueue(), EventQueue()
    one.add(events(1))
    other.add(events(1))
    assert taken(one).producer != taken(other).producer


def test_what_is_under_way_is_not_dropped_for_what_comes() -> None:
    queue = EventQueue()
    queue.add(events(EVENTS_SENT_MAX))
    first = taken(queue)
    queue.add(events(EVENTS_KEPT_MAX + 5, first=EVENTS_SENT_MAX))
    assert taken(queue) is first
    queue.sent(first)
    assert queue.dropped_events == 5
    assert taken(queue).events[0].job_id == str(EVENTS_SENT_MAX + 5), "the oldest were dropped"


@given(st.lists(st.integers(min_value=0, max_value=3 * EVENTS_SENT_MAX // 2), max_size=8))
def test_every_event_is_sent_once_and_in_order(arrivals: list[int]) -> None:
    queue, sent, came = EventQueue(), [], 0
    for count in arrivals:
        queue.add(events(count, first=came))
        came += count
        if (batch := queue.take(host_id="h1", sent_at_s=2.0)) is not None:
            assert 1 <= len(batch.events) <= EVENTS_SENT_MAX
            sent += batch.events
            queue.sent(batch)
    while (batch := queue.take(host_id="h1", sent_at_s=2.0)) is not None:
        sent += batch.events
        queue.sent(batch)
    assert [each.job_id for each in sent] == [str(number) for number in range(came)]
    assert queue.dropped_events == 0


def receptions(number: int, times: int = 1) -> QueueReceptions:
    return QueueReceptions(
        queue="celery/mail", since_s=float(number), until_s=number + 1.0, received_at_s=(number + 0.5,) * times
    )


def test_receptions_go_with_the_next_batch_and_again_with_it() -> None:
    queue = EventQueue()
    queue.add((), [receptions(1)])
    assert not queue.is_empty
    first = taken(queue)
    assert (first.events, first.receptions) == ((), (receptions(1),))
    queue.add(events(1), [receptions(2)])
    assert taken(queue) is first
    assert taken(queue, host_id="h2").receptions == (receptions(1),), "enrolled anew, it sends the same"
    queue.sent(taken(queue, host_id="h2"))
    second = taken(queue, host_id="h2")
    assert ([each.job_id for each in second.events], second.receptions) == (["0"], (receptions(2),))


def test_of_too_many_receptions_the_oldest_are_dropped() -> None:
    queue = EventQueue()
    queue.add((), [receptions(number, times=RECEPTION_TIMES_MAX // 2) for number in range(3)])
    assert taken(queue).receptions == tuple(receptions(number, times=RECEPTION_TIMES_MAX // 2) for number in (1, 2))
