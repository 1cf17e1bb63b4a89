"""Reasons to want workers, in slots. They compete: the greatest wins, so their order cannot matter.

Each is monotone: more waiting, longer waiting, slower jobs or more arrivals never lower it.
"""

from collections.abc import Callable

from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.view import START_UP_GUESS_S, PoolView

MARGIN_S = 2.0  # what the way from the broker to a decision takes, and from a ready worker to its first job

Rule = Callable[[QueueMetrics, PoolView], Demand]


def steady_state(queue: QueueMetrics, view: PoolView) -> Demand:
    """Slots that arrivals keep busy on average: rate times service time.

    Source: J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961).
    """
    return Demand(name="steady_state", slots=(queue.arrival_rate_per_s or 0.0) * service_time_s(queue, view))


def trend(queue: QueueMetrics, view: PoolView) -> Demand:
    """Slots that rising arrivals will keep busy by the time when reacting to them would come too late.

    A worker asked for when a job is first seen takes a tick and a start-up. Where that fits into the objective, nothing
    need be foreseen and this asks for nothing; where it does not, the trend line, which runs through the window's mean
    at its middle, is read that far ahead. A falling line asks for nothing: letting go is the work of the hold.

    Source: docs/why/demand.md, "Trend".
    """
    late_s = start_up_s(view) + view.tick_s - view.profile.objective.target_s
    slope_per_s2 = queue.arrival_trend_per_s2 or 0.0
    if slope_per_s2 <= 0 or late_s <= 0:
        return Demand(name="trend", slots=0.0)
    rate_per_s = (queue.arrival_rate_per_s or 0.0) + slope_per_s2 * (queue.window_s / 2 + late_s)
    return Demand(name="trend", slots=rate_per_s * service_time_s(queue, view))


def backlog_drain(queue: QueueMetrics, view: PoolView) -> Demand:
    """Slots that start every waiting job before the oldest one breaches.

    What is left of the objective, less a margin, is the time to work with. In it a slot that works starts
    ``left_s / service_time_s`` jobs, one that is free starts one more, and a new one does so a start-up later. The
    slots there are start what they can, new ones the rest. A job in flight holds its slot until it is done.

    Returns:
        Slots, fractional, at least 0. Never falls as the oldest age rises, through the breach and past it.

    Source: docs/why/demand.md, "Draining a backlog".
    """
    waiting_jobs, in_flight_jobs = queue.waiting_jobs or 0, queue.in_flight_jobs or 0
    left_s = view.profile.objective.target_s - (queue.oldest_age_s or 0.0) - MARGIN_S
    busy_starts = max(0.0, left_s) / service_time_s(queue, view)
    new_starts = 1 + max(0.0, left_s - start_up_s(view)) / service_time_s(queue, view)

    free_slots = max(0, view.running_workers * view.slots_per_worker - in_flight_jobs)
    left_jobs = max(0.0, waiting_jobs - in_flight_jobs * busy_starts)
    from_free = min(free_slots, left_jobs / (1 + busy_starts))
    left_jobs = max(0.0, left_jobs - free_slots * (1 + busy_starts))
    return Demand(name="backlog_drain", slots=in_flight_jobs + from_free + left_jobs / new_starts)


RULES: tuple[Rule, ...] = (steady_state, trend, backlog_drain)


def service_time_s(queue: QueueMetrics, view: PoolView) -> float:
    """The queue's mean service time, the profile's guess until a job has finished; never below a millisecond."""
    return max(0.001, queue.service_time_s or view.profile.service_time_guess_s)


def start_up_s(view: PoolView) -> float:
    """How long a worker of this pool takes from spawn to ready, as measured, else a guess."""
    return START_UP_GUESS_S if view.start_up_s is None else view.start_up_s
