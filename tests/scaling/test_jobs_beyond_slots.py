"""Jobs that workers have beyond the slots that there are pay for the workers that have them, and for no other."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.demands.unlimited_prefetch import GROWING_S
from headway.scaling.model import Decision, Memory, QueueMetrics, QueueSample
from headway.scaling.reading.jobs_beyond_slots import with_reserved_beyond_slots
from headway.scaling.reading.taken_jobs import RESERVED_PER_SLOT
from support.pools import NOW_S, profile, queue, view

UNSEEN = QueueSample(queue="redis/mail", at_s=NOW_S, waiting_jobs=0, reports_starts=False)
SAMPLES = {name: replace(UNSEEN, queue=name) for name in ("redis/mail", "a", "b")}


def held(jobs: int, *, slots: int, **values: Any) -> tuple[QueueMetrics, ...]:
    return with_reserved_beyond_slots([queue(in_flight_jobs=jobs, **values)], SAMPLES, slots=slots)


def decided(
    jobs: int, *, workers: int, memory: Memory | None = None, at_s: float = NOW_S, **values: Any
) -> tuple[Decision, Memory]:
    queues = held(jobs, slots=workers, service_time_s=2.0, sampled_at_s=at_s)
    seen = view(*queues, profile=profile(workers_max=8), running_workers=workers, assigned_workers=workers, **values)
    return decide(seen, memory or Memory(target_workers=workers), now_s=at_s)


def test_two_hundred_jobs_in_the_hands_of_one_worker_ask_for_no_other() -> None:
    decision, _ = decided(200, workers=1)
    assert decision.target_workers == 1
    assert any("no other worker can have those" in note for note in decision.notes)
    assert decided(200, workers=3)[0].target_workers == 3  # which of them has how many, nobody knows


@pytest.mark.parametrize(
    ("jobs", "reserved", "slots", "found"),
    [
        (4, None, 4, None),  # each in a slot
        (5, None, 4, 1),
        (200, None, 1, 199),
        (200, 150, 50, 150),  # the source knows what has begun, and it fits
        (200, 150, 10, 190),
        (200, None, 0, None),  # nobody knows of a worker
    ],
)
def test_what_does_not_fit_into_slots_has_not_begun(
    jobs: int, reserved: int | None, slots: int, found: int | None
) -> None:
    (seen,) = held(jobs, slots=slots, reserved_jobs=reserved)
    assert seen.reserved_jobs == found


@pytest.mark.parametrize(("values", "age_s"), [({}, None), ({"waiting_jobs": 1, "oldest_age_s": 3.0}, 3.0)])
def test_jobs_beyond_the_slots_wait_and_for_how_long_is_not_known(values: dict[str, Any], age_s: float | None) -> None:
    (seen,) = held(6, slots=4, **values)
    assert (seen.reserved_jobs, seen.oldest_age_s) == (2, age_s)


def test_a_source_that_reports_starts_counts_what_has_begun() -> None:
    samples = {"redis/mail": replace(UNSEEN, reports_starts=True)}
    given_queue = queue(in_flight_jobs=9)
    assert with_reserved_beyond_slots([given_queue], samples, slots=1) == (given_queue,)
    assert with_reserved_beyond_slots([given_queue], {}, slots=1) == (given_queue,)


def test_a_source_that_counts_reserved_jobs_counts_what_workers_hold() -> None:
    """Celery on Redis: the rows are of before the heartbeat, exact, and the sample is of after it, a lower bound."""
    sample = replace(UNSEEN, reports_starts=None, in_flight_min_jobs=16, reserved_jobs=12)
    (seen,) = with_reserved_beyond_slots([queue(in_flight_jobs=16)], {"redis/mail": sample}, slots=4)
    assert (seen.running_jobs, seen.reserved_jobs) == (4, 12)


@given(jobs=st.lists(st.integers(0, 300), min_size=1, max_size=2), slots=st.integers(0, 40))
def test_no_job_is_lost_and_every_slot_has_one(jobs: list[int], slots: int) -> None:
    queues = [queue(queue=name, in_flight_jobs=count) for name, count in zip("ab", jobs, strict=False)]
    seen = with_reserved_beyond_slots(queues, SAMPLES, slots=slots)
    assert [each.in_flight_jobs for each in seen] == jobs
    assert sum(each.running_jobs or 0 for each in seen) == (min(sum(jobs), slots) if slots else sum(jobs))
    assert all(0 <= (each.reserved_jobs or 0) <= (each.in_flight_jobs or 0) for each in seen)


def test_a_lower_bound_of_what_workers_have_is_bounded_by_slots_as_well() -> None:
    """Celery on RabbitMQ: what is unacknowledged may all be reserved, also where workers report what they begin."""
    samples = {"redis/mail": replace(UNSEEN, reports_starts=True)}
    (seen,) = with_reserved_beyond_slots([queue(in_flight_jobs=None, in_flight_min_jobs=200)], samples, slots=2)
    assert (seen.in_flight_jobs, seen.in_flight_min_jobs, seen.reserved_jobs) == (None, 200, 198)


def test_jobs_in_the_hands_of_one_worker_ask_for_no_other_while_metrics_are_stale() -> None:
    """Celery tasks with an ETA on RabbitMQ: a direct sample counts all of them as taken, none as reserved."""
    sample = replace(UNSEEN, in_flight_min_jobs=50)
    old = queue(sampled_at_s=NOW_S - 60.0, in_flight_jobs=None, in_flight_min_jobs=0)
    seen = view(old, profile=profile(workers_max=20), running_workers=1, assigned_workers=1, direct=(sample,))
    for slots, workers in ((1, 1), (3, 3), (0, 20)):  # 0: nobody knows of a worker
        decision, _ = decide(replace(seen, slots_at_work=slots), Memory(target_workers=1), now_s=NOW_S)
        assert decision.target_workers == workers


def targets_of(jobs: list[int], *, workers: int = 1, **values: Any) -> list[int]:
    """One reading after the other, each 5 s later, of a pool that never grows."""
    found, memory = [], Memory(target_workers=workers)
    for number, count in enumerate(jobs):
        decision, memory = decided(count, workers=workers, memory=memory, at_s=NOW_S + 5.0 * number, **values)
        found.append(decision.target_workers)
    return found


def test_jobs_that_keep_arriving_at_a_busy_worker_ask_for_others_that_get_a_part() -> None:
    """5 more every 5 s for half a minute: 1/s × 2 s are two slots beside the one that there is."""
    quiet = round(GROWING_S / 5.0) + 1
    assert targets_of([20 + 5 * number for number in range(quiet + 2)]) == [*quiet * [1], 3, 3]


def test_what_arrives_at_workers_is_a_demand_beside_all_others() -> None:
    memory = Memory(target_workers=1)
    for number in range(10):
        decision, memory = decided(20 + 5 * number, workers=1, memory=memory, at_s=NOW_S + 5.0 * number)
    names = {demand.name for demand in decision.demands}
    assert names >= {"work_in_progress", "backlog_drain", "steady_state"}


KNOWN_IDLE: list[dict[str, Any]] = [{"idle_workers": 1}, {"slots_per_worker": 4, "busy_slots": 3}]


@pytest.mark.parametrize("evidence", KNOWN_IDLE)
def test_jobs_that_grow_in_number_beside_an_idle_slot_are_due_later_and_ask_for_nobody(
    evidence: dict[str, Any],
) -> None:
    """Celery with ``countdown=3600``: its worker takes each job at once, and none is to run for an hour."""
    growing = [60 + 5 * number for number in range(20)]
    assert max(targets_of(growing)) == 3
    assert targets_of(growing, **evidence) == [1] * len(growing)


def test_a_job_that_is_due_among_many_that_are_not_asks_for_nobody_else() -> None:
    """While it runs, no slot is known to be idle: growth counts from then on, and not from before."""
    memory, targets = Memory(target_workers=1), []
    for number in range(20):
        idle_workers = int(number not in {15, 16})
        decision, memory = decided(
            20 + 5 * number, workers=1, memory=memory, at_s=NOW_S + 5.0 * number, idle_workers=idle_workers
        )
        targets.append(decision.target_workers)
    assert targets == [1] * 20


@pytest.mark.parametrize("evidence", KNOWN_IDLE)
def test_jobs_that_are_due_later_are_not_said_to_want_a_prefetch(evidence: dict[str, Any]) -> None:
    notes = decided(200, workers=1, **evidence)[0].notes
    assert any("they are due later (Celery's countdown and eta)" in note for note in notes)
    assert not any("set a prefetch" in note for note in notes)


def test_the_lesser_of_the_last_two_growths_counts() -> None:
    growing = [20 + 5 * number for number in range(9)]
    assert targets_of([*growing, growing[-1] + 500])[-2:] == [3, 3]


@pytest.mark.parametrize(
    "jobs",
    [
        [20, 200, 198, 195, 193],
        [1, 2000, 4000, 5000, 4995, 4990, 4985],  # published within 12 s
        [20, *(200 + 100 * number for number in range(6)), 690],  # within 30 s
        2 * [20, 200, 300, 400, 398, 396],  # two of them
    ],
)
def test_one_burst_asks_for_nobody(jobs: list[int]) -> None:
    """It grows while it is published. Until it is over no other worker can have any of it."""
    assert targets_of(jobs) == [1] * len(jobs)


def test_a_reading_that_was_long_away_is_one_reading() -> None:
    """A minute without samples, then one in the middle of a burst."""
    _, memory = decided(20, workers=1)
    for after_s, jobs in ((60.0, 2000), (65.0, 4000), (70.0, 5000)):
        decision, memory = decided(jobs, workers=1, memory=memory, at_s=NOW_S + after_s)
        assert decision.target_workers == 1


def test_a_usual_prefetch_asks_for_nobody() -> None:
    most = 1 + RESERVED_PER_SLOT
    assert targets_of([*range(2, most + 1)]) == [1] * (most - 1)
