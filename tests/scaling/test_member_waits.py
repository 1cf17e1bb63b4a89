"""Which queue of a pool has used up most of its own objective."""

from headway.scaling.conditions.member_waits import oldest_wait, pickup_wait
from headway.scaling.model import Objective, QueueMetrics
from headway.scaling.profile import Profile

PROFILE = Profile(
    pool="both",
    queues=("urgent", "bulk"),
    template="rq",
    objective=Objective(target_s=5),
    member_objectives={"bulk": Objective(target_s=900)},
)


def test_the_worst_wait_is_that_of_the_queue_nearest_to_its_own_objective() -> None:
    queues = [
        QueueMetrics(queue="urgent", oldest_age_s=2.0, pickup_objective_s=6.0),
        QueueMetrics(queue="bulk", oldest_age_s=74.0, pickup_objective_s=800.0),
    ]
    oldest, pickup = oldest_wait(PROFILE, queues), pickup_wait(PROFILE, queues)
    assert oldest is not None
    assert (oldest.queue, oldest.used, oldest.is_late) == ("urgent", 0.4, False)  # 2 of 5, against 74 of 900
    assert pickup is not None
    assert (pickup.queue, pickup.used, pickup.is_late) == ("urgent", 1.2, True)  # 6 of 5, against 800 of 900


def test_a_wait_that_is_unknown_hides_no_other_and_all_unknown_is_none() -> None:
    bulk = QueueMetrics(queue="bulk", oldest_age_s=901.0)
    oldest = oldest_wait(PROFILE, [QueueMetrics(queue="urgent"), bulk])
    assert oldest is not None
    assert (oldest.queue, oldest.is_late) == ("bulk", True)
    assert pickup_wait(PROFILE, [bulk]) is None


def test_a_wait_of_exactly_the_objective_is_in_time() -> None:
    oldest = oldest_wait(PROFILE, [QueueMetrics(queue="urgent", oldest_age_s=5.0)])
    assert oldest is not None
    assert not oldest.is_late


def test_no_wait_in_one_queue_does_not_hide_that_held_jobs_of_another_may_wait() -> None:
    held = QueueMetrics(queue="bulk", waiting_jobs=0, in_flight_min_jobs=2)
    assert oldest_wait(PROFILE, [QueueMetrics(queue="urgent", oldest_age_s=0.0), held]) is None
    known = oldest_wait(PROFILE, [QueueMetrics(queue="urgent", oldest_age_s=2.0), held])
    assert known is not None
    assert known.wait_s == 2.0
