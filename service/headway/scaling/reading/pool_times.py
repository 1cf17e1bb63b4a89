"""The times of a pool: how long its jobs and starts take, as measured, else a guess, and how soon it reacts."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headway.scaling.arithmetic import DAY_S, SHORTEST_S
from headway.scaling.model import QueueMetrics
from headway.scaling.profile import Profile
from headway.scaling.view import TICK_S, PoolView

SERVICE_TIME_GUESS_S = 1.0  # where a number has to be shown and nothing is known
START_UP_GUESS_S = 3.0  # until one worker of the template has been seen to start
START_UP_MAX_S = DAY_S  # a longer one counts as this: what may come during it is summed evaluation by evaluation
DISPATCH_GUESS_S = 0.05  # between two jobs of a slot, until it is measured: a client that forks takes 30 ms
MARGIN_S = 0.5  # from a ready worker to its first job
LAG_S = 1.0  # from a job in the broker to a row that deciding reads, at the 95th percentile (benchmarks/wake.py)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTimes:
    """How long everything takes in one pool. What is ``None`` is not measured."""

    tick_s: float = TICK_S
    """From one evaluation to the next."""
    lag_s: float = 0.0
    """How old what is seen may be."""
    known_start_up_s: float | None = None
    start_up_p95_s: float | None = None
    start_up_cpu_s: float | None = None
    """CPU seconds that one start takes."""
    exit_s: float = 0.0
    """From the request to stop to the end of the process, of a worker without a job; 0 if it is not measured."""
    overhead_s: float | None = None
    """From the end of a job to the next start in the same slot while jobs wait."""
    service_guess_s: float | None = None
    """What the profile says of jobs of which none has ended; ``None``: nothing."""

    @property
    def start_up_s(self) -> float:
        """How long a worker takes from spawn to ready, as measured, at most ``START_UP_MAX_S``, else a guess."""
        return START_UP_GUESS_S if self.known_start_up_s is None else min(self.known_start_up_s, START_UP_MAX_S)

    @property
    def dispatch_s(self) -> float:
        """From the end of a job to the next start in the same slot, as measured, else a guess."""
        return DISPATCH_GUESS_S if self.overhead_s is None else self.overhead_s

    def known_service_s(self, queue: QueueMetrics) -> float:
        """The mean service time; until a job has ended what the profile says, else infinite: unknown is not short."""
        known_s = self.service_guess_s if queue.service_time_s is None else queue.service_time_s
        return math.inf if known_s is None else max(known_s, SHORTEST_S)

    def cycle_s(self, queue: QueueMetrics) -> float:
        """From one start to the next of a slot while jobs wait: a job's service time and the dispatch of the next."""
        return self.known_service_s(queue) + self.dispatch_s

    def batch_cycle_s(self, queue: QueueMetrics) -> float:
        """The same of jobs that wait together: long ones may have come in one batch among short ones."""
        return max(self.known_service_s(queue), queue.service_batch_s or 0.0) + self.dispatch_s

    def service_time_s(self, queue: QueueMetrics) -> float:
        """The mean service time where a figure must be shown whatever is known: a second at worst, never nothing."""
        return max(SHORTEST_S, queue.service_time_s or self.service_guess_s or SERVICE_TIME_GUESS_S)

    @property
    def reaction_s(self) -> float:
        """From an arrival to its start by a worker that is asked for at the next evaluation."""
        return self.tick_s + self.start_up_s + self.lag_s + MARGIN_S


def times_of(view: PoolView) -> PoolTimes:
    """The times of the pool of ``view``."""
    return PoolTimes(
        tick_s=view.tick_s,
        lag_s=view.lag_s,
        known_start_up_s=view.start_up_s,
        start_up_p95_s=view.start_up_p95_s,
        start_up_cpu_s=view.start_up_cpu_s,
        exit_s=view.exit_s or 0.0,
        overhead_s=view.dispatch_overhead_s,
        service_guess_s=view.profile.service_time_guess_s,
    )


def exposed_s(profile: Profile, times: PoolTimes) -> float:
    """For how long from now arriving jobs are late for any worker asked for at the next evaluation. Often 0.

    By the shortest objective of the members.
    """
    return max(0.0, times.reaction_s - profile.shortest_target_s)


def exposed_members(profile: Profile, queues: Iterable[QueueMetrics], times: PoolTimes) -> tuple[QueueMetrics, ...]:
    """Those of ``queues`` whose arriving jobs are late, by their own objective, for a worker asked for at the next
    evaluation.

    All of them in an exposed pool without objectives of members.
    """
    reaction_s = times.reaction_s
    return tuple([queue for queue in queues if profile.objective_of(queue.queue).target_s < reaction_s])
