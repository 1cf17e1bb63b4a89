"""So many workers as the jobs that wait, divided by a constant: the rule with which KEDA scales on a queue's length.

KEDA gives a queue's length to Kubernetes' Horizontal Pod Autoscaler, which wants ``ceil(length / target)`` workers each
15 s and goes down only to the most that it wanted in the last five minutes. Left out is what makes the rule slower:
KEDA wakes a queue from zero each 30 s only, and Kubernetes adds at most four workers, or doubles them, in 15 s.

Source: KEDA, "Redis Lists" scaler (``listLength``, 5 by default) and ``cooldownPeriod`` (300 s); Kubernetes,
``--horizontal-pod-autoscaler-sync-period`` (15 s) and ``stabilizationWindowSeconds`` (300 s).
"""

import math
from collections import deque
from dataclasses import dataclass

from headway.errors import Invalid
from headway.simulate.observation import Count, Observation

EVALUATION_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaSettings:
    """What an operator sets of the rule; the defaults are KEDA's."""

    jobs_per_worker: float = 5.0
    cooldown_s: float = 300.0
    """For so long a lower count must have been enough."""

    def __post_init__(self) -> None:
        if not self.jobs_per_worker > 0 or not self.cooldown_s >= 0:
            raise Invalid(
                f"jobs_per_worker={self.jobs_per_worker} must be above 0, cooldown_s={self.cooldown_s} not below"
            )


class KedaRule:
    """The rule, from one evaluation to the next: what a simulation takes in place of a ``Controller``."""

    def __init__(self, settings: KedaSettings, *, workers_max: int) -> None:
        self._settings = settings
        self._workers_max = workers_max
        self._wanted: deque[tuple[float, int]] = deque()

    def step(self, observation: Observation, /, *, now_s: float | None = None) -> Count:  # noqa: ARG002 - the port's shape
        """The most that the rule wanted since ``cooldown_s`` ago, up to ``workers_max``."""
        now = math.ceil(observation.waiting / self._settings.jobs_per_worker)
        self._wanted.append((observation.at_s, min(now, self._workers_max)))
        while self._wanted[0][0] <= observation.at_s - self._settings.cooldown_s and len(self._wanted) > 1:
            self._wanted.popleft()
        return Count(max(workers for _, workers in self._wanted))
