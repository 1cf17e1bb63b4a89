"""The times of a pool: how long its jobs and starts take, as measured, else a guess, and how soon it reacts."""

import math

from headway.scaling.arithmetic import SHORTEST_S
from headway.scaling.model import QueueMetrics
from headway.scaling.view import PoolView

SERVICE_TIME_GUESS_S = 1.0  # where a number has to be shown and nothing is known
START_UP_GUESS_S = 3.0  # until one worker of the template has been seen to start
DISPATCH_GUESS_S = 0.05  # between two jobs of a slot, until it is measured: a client that forks takes 30 ms
MARGIN_S = 0.5  # from a ready worker to its first job
LAG_S = 1.0  # from a job in the broker to a row that deciding reads, at the 95th percentile (benchmarks/wake.py)


def start_up_s(view: PoolView) -> float:
    """How long a worker of this pool takes from spawn to ready, as measured, else a guess."""
    return START_UP_GUESS_S if view.start_up_s is None else view.start_up_s


def dispatch_s(view: PoolView) -> float:
    """From the end of a job to the next start in the same slot while jobs wait, as measured, else a guess."""
    return DISPATCH_GUESS_S if view.dispatch_overhead_s is None else view.dispatch_overhead_s


def known_service_s(queue: QueueMetrics, view: PoolView) -> float:
    """The mean service time; until a job has finished what the profile says, else infinite: unknown is not short."""
    known_s = view.profile.service_time_guess_s if queue.service_time_s is None else queue.service_time_s
    return math.inf if known_s is None else max(known_s, SHORTEST_S)


def cycle_s(queue: QueueMetrics, view: PoolView) -> float:
    """From one start to the next of a slot while jobs wait: a job's service time and the dispatch of the next."""
    return known_service_s(queue, view) + dispatch_s(view)


def batch_cycle_s(queue: QueueMetrics, view: PoolView) -> float:
    """The same of jobs that wait together: long ones may have come in one batch among short ones."""
    return max(known_service_s(queue, view), queue.service_batch_s or 0.0) + dispatch_s(view)


def service_time_s(queue: QueueMetrics, view: PoolView) -> float:
    """The mean service time where a figure must be shown whatever is known: a second at worst, and never nothing."""
    return max(SHORTEST_S, queue.service_time_s or view.profile.service_time_guess_s or SERVICE_TIME_GUESS_S)


def exposed_s(view: PoolView) -> float:
    """For how long from now arriving jobs are late for any worker asked for at the next evaluation. Often 0.

    By the shortest objective of the members.
    """
    return max(0.0, _reaction_s(view) - view.profile.shortest_target_s)


def exposed_members(view: PoolView) -> tuple[QueueMetrics, ...]:
    """The queues whose arriving jobs are late, by their own objective, for any worker asked for at the next evaluation.

    All of them in an exposed pool without objectives of members.
    """
    reaction_s = _reaction_s(view)
    return tuple([queue for queue in view.queues if view.profile.objective_of(queue.queue).target_s < reaction_s])


def _reaction_s(view: PoolView) -> float:
    """From an arrival to its start by a worker that is asked for at the next evaluation."""
    return view.tick_s + start_up_s(view) + view.lag_s + MARGIN_S
