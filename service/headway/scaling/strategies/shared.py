"""Demands for strategies of one's own: they need no more than what every broker reports. ``hybrid`` calculates more
finely.

Each demand is monotone: more waiting, longer waiting, slower jobs or more arrivals never lower it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from headway.scaling.demands import formulas
from headway.scaling.demands.formulas import Formula, Terms, demand
from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.policy.ground import Ground
from headway.scaling.reading.busy_slots import slots_of
from headway.scaling.reading.pool_times import times_of
from headway.scaling.view import PoolView

MARGIN_S = 2.0  # what the way from the broker to a decision takes, and from a ready worker to its first job


def steady_state(queue: QueueMetrics, view: PoolView) -> Demand:
    """Slots that arrivals keep busy on average: rate times service time.

    Source: J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961).
    """
    terms = {
        "present_slots": 0,
        "arrival_rate_per_s": queue.arrival_rate_per_s or 0.0,
        "service_time_s": times_of(view).service_time_s(queue),
    }
    return demand(formulas.steady_state, terms)


def backlog_drain(queue: QueueMetrics, view: PoolView) -> Demand:
    """Slots that start every waiting job before the oldest one breaches.

    What is left of the objective, less a margin, is the time to work with. In it a slot that works starts
    ``left_s / service_time_s`` jobs, one that is free starts one more, and a new one does so a start-up later. The
    slots there are start what they can, new ones the rest. A job in flight holds its slot until it is done.

    Returns:
        Slots, fractional, at least 0. Never falls as the oldest age rises, through the breach and past it.
    """
    times, running_jobs = times_of(view), slots_of(view).busy(queue)
    terms = {
        "waiting_jobs": queue.waiting_least_jobs,
        "running_jobs": running_jobs,
        "free_slots": max(0, view.running_workers * view.slots_per_worker - running_jobs - view.helping_slots),
        "left_s": view.profile.objective.target_s - (queue.oldest_age_s or 0.0) - MARGIN_S,
        "service_time_s": times_of(view).service_time_s(queue),
        "start_up_s": times.start_up_s,
    }
    return Demand(name="backlog_drain", slots=drained(terms), terms=terms)


def drained(terms: Terms) -> float:
    """The formula of ``backlog_drain``."""
    busy_starts = max(0.0, terms["left_s"]) / terms["service_time_s"]
    new_starts = 1 + max(0.0, terms["left_s"] - terms["start_up_s"]) / terms["service_time_s"]
    left_jobs = max(0.0, terms["waiting_jobs"] - terms["running_jobs"] * busy_starts)
    from_free = min(terms["free_slots"], left_jobs / (1 + busy_starts))
    left_jobs = max(0.0, left_jobs - terms["free_slots"] * (1 + busy_starts))
    return terms["running_jobs"] + from_free + left_jobs / new_starts


def in_workers(name: str, workers: float, view: PoolView) -> Demand:
    """A demand for a number of workers, in slots."""
    terms = {"workers": workers, "slots_per_worker": view.slots_per_worker}
    return Demand(name=name, slots=of_workers(terms), terms=terms)


def of_workers(terms: Terms) -> float:
    """The formula of a demand for a number of workers."""
    return max(0.0, terms["workers"]) * terms["slots_per_worker"]


FORMULAS: Mapping[str, Formula] = MappingProxyType({"steady_state": formulas.steady_state, "backlog_drain": drained})
"""Of the demands that strategies share, by the name of a demand."""


def seen_workers(view: PoolView) -> int:
    """Workers that run and workers that start."""
    return view.running_workers + view.starting_workers


def at_once(count: int, ground: Ground) -> int:  # noqa: ARG001 - a limit's shape
    """The count as wanted, without a hold: a ``come_down`` of a strategy."""
    return count
