"""Reasons to want workers, in slots. They compete: the greatest wins, so their order cannot matter.

Each is monotone: more waiting, longer waiting, slower jobs or more arrivals never lower it.
"""

import math
from collections.abc import Callable

from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.view import START_UP_GUESS_S, PoolView

Rule = Callable[[QueueMetrics, PoolView], Demand]


def steady_state(queue: QueueMetrics, view: PoolView) -> Demand:
    """Slots that arrivals keep busy on average: rate times service time.

    Source: J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961).
    """
    return Demand(name="steady_state", slots=(queue.arrival_rate_per_s or 0.0) * service_time_s(queue, view))


def trend(queue: QueueMetrics, view: PoolView) -> Demand:
    """Slots that arrivals will keep busy when a worker asked for now can first be ready.

    The trend line runs through the window's mean at its middle; it is read one start-up and one tick ahead. A falling
    line asks for nothing: letting go is the work of the hold, not of a forecast.

    Source: docs/why/demand.md, "Trend".
    """
    slope_per_s2 = queue.arrival_trend_per_s2 or 0.0
    if slope_per_s2 <= 0:
        return Demand(name="trend", slots=0.0)
    ahead_s = queue.window_s / 2 + start_up_s(view) + view.tick_s
    rate_per_s = (queue.arrival_rate_per_s or 0.0) + slope_per_s2 * ahead_s
    return Demand(name="trend", slots=rate_per_s * service_time_s(queue, view))


def backlog_drain(queue: QueueMetrics, view: PoolView) -> Demand:
    """Slots that start every waiting job before the oldest one breaches.

    What is left of the objective, less one start-up and one tick in which nothing can be mended, is the time to work
    with. In it a slot surely takes ``floor(left_s / service_time_s)`` jobs, and at least one. Jobs in flight are work
    like those that wait, and each holds a slot until it is done: never fewer slots than jobs in flight.

    Returns:
        Slots, fractional, at least 0. Never falls as the oldest age rises, through the breach and past it.

    Source: docs/why/demand.md, "Draining a backlog".
    """
    waiting_jobs, in_flight_jobs = queue.waiting_jobs or 0, queue.in_flight_jobs or 0
    left_s = view.profile.objective.target_s - (queue.oldest_age_s or 0.0) - start_up_s(view) - view.tick_s
    jobs_per_slot = max(1, math.floor(left_s / service_time_s(queue, view)))
    return Demand(name="backlog_drain", slots=max(in_flight_jobs, (waiting_jobs + in_flight_jobs) / jobs_per_slot))


RULES: tuple[Rule, ...] = (steady_state, trend, backlog_drain)


def service_time_s(queue: QueueMetrics, view: PoolView) -> float:
    """The queue's mean service time, the profile's guess until a job has finished; never below a millisecond."""
    return max(0.001, queue.service_time_s or view.profile.service_time_guess_s)


def start_up_s(view: PoolView) -> float:
    """How long a worker of this pool takes from spawn to ready, as measured, else a guess."""
    return START_UP_GUESS_S if view.start_up_s is None else view.start_up_s
