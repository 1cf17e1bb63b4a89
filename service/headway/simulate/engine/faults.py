"""What may go wrong in a rehearsal: jobs, workers, templates, metrics, hosts and the control plane itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from headway.errors import Invalid
from headway.local.backoff import DoublingPause


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A time in seconds from the start: from ``from_s`` until just before ``until_s``."""

    from_s: float
    until_s: float

    def __post_init__(self) -> None:
        if not self.from_s < self.until_s:
            raise Invalid(f"a stretch from {self.from_s} s until {self.until_s} s is empty")

    def covers(self, now_s: float) -> bool:
        """Whether ``now_s`` is in it."""
        return self.from_s <= now_s < self.until_s


def is_covered(stretches: Sequence[Stretch], now_s: float) -> bool:
    """Whether ``now_s`` is in one of them."""
    return any(stretch.covers(now_s) for stretch in stretches)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOutage:
    """A time in which a host and all that ran on it are gone."""

    host_id: str
    stretch: Stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong in one pool. The defaults: nothing."""

    job_failure_fraction: float = 0.0
    """Part of the attempts that fail, at their end."""
    attempts_max: int = 3
    """A job that failed so often is given up."""
    retry_after_s: float = 0.0
    worker_life_s: float | None = None
    """Mean time from a worker's spawn to its sudden death, exponential; ``None``: it dies of nothing."""
    redeliver_after_s: float = 0.0
    """Until the broker gives out again what a worker had when it died or was killed."""
    crash_loops: tuple[Stretch, ...] = ()
    """When workers die as their start-up ends; each tries again after a pause that doubles."""
    back_off_s: float = 1.0
    back_off_max_s: float = 60.0
    metric_lag_s: float = 0.0
    """How old the newest metrics of the queue are; what is known of the workers is not late."""
    metric_losses: tuple[Stretch, ...] = ()
    """When no new metrics come."""

    def __post_init__(self) -> None:
        breaches = [
            f"{name}={getattr(self, name)} is negative"
            for name in ("retry_after_s", "redeliver_after_s", "back_off_s", "back_off_max_s", "metric_lag_s")
            if getattr(self, name) < 0
        ]
        if not 0 <= self.job_failure_fraction <= 1:
            breaches.append(f"job_failure_fraction={self.job_failure_fraction} is not a part of 1")
        if self.attempts_max < 1:
            breaches.append(f"attempts_max={self.attempts_max} is below 1")
        if self.worker_life_s is not None and self.worker_life_s <= 0:
            breaches.append(f"worker_life_s={self.worker_life_s} is not above 0")
        if breaches:
            raise Invalid(*breaches, where="faults")

    @property
    def are_late(self) -> bool:
        """Whether metrics ever come late or not at all."""
        return self.metric_lag_s > 0 or bool(self.metric_losses)

    def back_off_after_s(self, crashes: int) -> float:
        """The pause before a worker that has crashed so often tries again."""
        return DoublingPause(self.back_off_s, self.back_off_max_s).after_s(crashes)


def worker_lives(faults: Faults, draws: Random) -> Callable[[], float] | None:
    """Draws how long one worker after the other lives; ``None``: for ever."""
    life_s = faults.worker_life_s
    return None if life_s is None else lambda: draws.expovariate(1.0 / life_s)


def job_failures(faults: Faults, draws: Random) -> Callable[[], bool] | None:
    """Draws whether one attempt after the other fails; ``None``: never."""
    fraction = faults.job_failure_fraction
    return None if not fraction else lambda: draws.random() < fraction
