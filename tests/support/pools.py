"""Values for tests of the core, with every field given that a rule reads."""

from dataclasses import replace
from typing import Any

from headway.scaling.decisions.predicted_pickup import pickups_of
from headway.scaling.demands.deadlines import ceiling_slots
from headway.scaling.demands.safety_stock import Exposed
from headway.scaling.model import Memory, Objective, QueueMetrics
from headway.scaling.model.queue_order import OrderedQueues
from headway.scaling.policy.day_budget import account_of
from headway.scaling.policy.ground import Ground
from headway.scaling.profile import Profile
from headway.scaling.reading.busy_slots import slots_of
from headway.scaling.reading.pool_times import times_of
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.reading.sample_age import freshness_of
from headway.scaling.view import PoolView

NOW_S = 1_000_000.0


def queue(**values: Any) -> QueueMetrics:
    """A queue sampled just now in which nothing happens, but for ``values``."""
    quiet: dict[str, Any] = {
        "queue": "redis/mail",
        "sampled_at_s": NOW_S,
        "waiting_jobs": 0,
        "in_flight_jobs": 0,
        "oldest_age_s": 0.0,
        "arrival_rate_per_s": 0.0,
        "completion_rate_per_s": 0.0,
        "arrival_trend_per_s2": 0.0,
        "service_time_s": 1.0,
    }
    return QueueMetrics(**{**quiet, **values})


def profile(**values: Any) -> Profile:
    """A profile of the pool ``mail`` with an objective of 10 s and no hold."""
    plain: dict[str, Any] = {
        "pool": "mail",
        "queues": ("redis/mail",),
        "template": "mail",
        "objective": Objective(target_s=10.0),
        "workers_max": 100,
        "hold_down_s": 0.0,
    }
    return Profile(**{**plain, **values})


def view(*queues: QueueMetrics, **values: Any) -> PoolView:
    """A pool of ``queues`` whose hosts have room for 1,000 workers that start in 1 s, evaluated every 5 s.

    Its workers take the next job at once, so that sums have one term less.
    """
    members = queues or (queue(),)
    plain: dict[str, Any] = {
        "profile": profile(queues=tuple(member.queue for member in members)),
        "queues": members,
        "start_up_s": 1.0,
        "capacity_workers": 1_000,
        "dispatch_overhead_s": 0.0,
    }
    return PoolView(**{**plain, **values})


def ground_of(
    seen: PoolView,
    memory: Memory | None = None,
    *,
    last: int = 0,
    is_fresh: bool = True,
    now_s: float = NOW_S,
    **found: Any,
) -> Ground:
    """What limits of ``seen`` stand on after a last target of ``last``, where ``found`` was found by now.

    Its samples count as fresh, or as stale, whatever their age.
    """
    before, together = memory or Memory(), pooled(seen.queues)
    return Ground(
        view=seen,
        queue=together,
        memory=before,
        last_workers=last,
        freshness=replace(freshness_of(seen.queues, seen.profile, now_s=now_s), is_fresh=is_fresh),
        account=account_of(seen, together, before.day_paid, now_s=now_s),
        now_s=now_s,
        **found,
    )


def exposed_of(queue: QueueMetrics, seen: PoolView, *, now_s: float = NOW_S) -> Exposed:
    """The exposed pool of ``seen``, whose exposed members together are ``queue``."""
    return Exposed(
        queue=queue,
        profile=seen.profile,
        times=times_of(seen),
        slots_max=ceiling_slots(seen, now_s),
        now_s=now_s,
        recalled_jobs=seen.recalled_jobs,
        is_by_weeks=seen.recalled_weeks is not None,
        is_teaching=seen.is_teaching,
    )


def ordered(seen: PoolView) -> OrderedQueues:
    """The queues of ``seen`` with the order in which its workers take from them."""
    return OrderedQueues(queues=seen.queues, order=seen.queue_order, strict_queues=seen.strict_queues)


def predicted_pickup_s(seen: PoolView, *, target_workers: int) -> float | None:
    """How long a job that arrives now in any queue of ``seen`` will wait."""
    together, slots = pooled(seen.queues), slots_of(seen)
    return pickups_of(together, seen, times_of(seen), slots, target_workers=target_workers).predicted_pickup_s


def held(target_workers: int) -> Memory:
    """A memory in which ``target_workers`` was the last target."""
    return Memory(target_workers=target_workers)
