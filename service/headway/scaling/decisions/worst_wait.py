"""The wait that an objective is compared with: the worst of three, so that no sample hides a stall."""

from collections.abc import Iterator

from headway.scaling.conditions.member_waits import MemberWait, oldest_wait, pickup_wait
from headway.scaling.model import Decision
from headway.scaling.profile import Profile
from headway.scaling.reading.sample_age import is_seen


def worst_wait(decision: Decision, profile: Profile) -> MemberWait | None:
    """The wait in a queue of the pool that takes the greatest part of the queue's own objective; ``None`` if unknown.

    It is the worst of what finished jobs waited, what the oldest has waited and what a new one will. Samples of
    finished jobs alone would hide a stall: while nothing starts, nothing is sampled.
    """
    seen = [queue for queue in decision.metrics if is_seen(queue)]
    waits = [pickup_wait(profile, seen), oldest_wait(profile, seen), *_predicted(decision, profile)]
    return max((wait for wait in waits if wait is not None), key=lambda wait: wait.used, default=None)


def predicted_wait(decision: Decision, profile: Profile) -> MemberWait | None:
    """The predicted wait of a new job, of the queue where it takes the greatest part of the queue's objective.

    ``None`` if none is predicted.
    """
    return max(_predicted(decision, profile), key=lambda wait: wait.used, default=None)


def _predicted(decision: Decision, profile: Profile) -> Iterator[MemberWait]:
    """The predicted wait of a new job in each queue."""
    for each in decision.member_pickups:
        yield MemberWait(queue=each.queue, objective=each.objective, wait_s=each.predicted_pickup_s)
    if decision.predicted_pickup_s is not None and not decision.member_pickups:
        for queue in decision.metrics:  # there is one: of several, the prediction is in `member_pickups`
            objective = profile.objective_of(queue.queue)
            yield MemberWait(queue=queue.queue, objective=objective, wait_s=decision.predicted_pickup_s)
