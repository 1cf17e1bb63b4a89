"""How long a new worker takes, learned from those that were started."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

SHORTEST_S, LONGEST_S = 0.1, 30.0
START_UP_FORGOTTEN_S = 300.0  # a worker without a job for this long was never started for one


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUps:
    """Workers that were started and have had no job yet, and the mean of those that have."""

    started_at_s: Mapping[str, float] = field(default_factory=dict)
    mean_s: float | None = None
    samples: int = 0


def after_spawn(seen: StartUps, worker: str, *, at_s: float) -> StartUps:
    """``seen`` with a worker that has just been started."""
    return replace(seen, started_at_s={**seen.started_at_s, worker: at_s})


def after_first_pickup(seen: StartUps, worker: str, *, at_s: float, weight: float) -> StartUps:
    """``seen`` after a worker's first job: an exponential mean, ``weight`` for the newest. Others change nothing."""
    spawned_s = seen.started_at_s.get(worker)
    if spawned_s is None:
        return seen
    waiting = {name: since_s for name, since_s in seen.started_at_s.items() if name != worker}
    if at_s - spawned_s > START_UP_FORGOTTEN_S:
        return replace(seen, started_at_s=waiting)
    took_s = min(max(at_s - spawned_s, SHORTEST_S), LONGEST_S)
    mean_s = took_s if seen.mean_s is None else weight * took_s + (1.0 - weight) * seen.mean_s
    return StartUps(started_at_s=waiting, mean_s=mean_s, samples=seen.samples + 1)


def start_up_s(seen: StartUps, *, samples_min: int, fallback_s: float) -> float:
    """The mean, once enough were seen."""
    return fallback_s if seen.mean_s is None or seen.samples < samples_min else seen.mean_s
