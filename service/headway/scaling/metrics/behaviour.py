"""How the workers of a pool behave live, as measured: what a rehearsal needs so that it is a rehearsal of what runs.

Every figure may be unknown: ``None`` is "not measured yet" and never zero.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from headway.errors import Invalid

Z95 = 1.6448536269514722  # the 95th percentile of the standard normal distribution
SHORTEST_PART = 1e-3  # of the 95th percentile
# How timings of a template are learned, live and in rehearsals alike.
WEIGHT = 0.3  # of the newest in the mean: after ten of them what was before counts 3 %
RECENT_MAX = 100  # observations that a spread is made of: the 95th percentile needs twenty


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A duration that varies: its median, its 95th percentile, and how many observations say so."""

    p50_s: float
    p95_s: float
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.p50_s <= self.p95_s < math.inf or self.count < 1:
            raise Invalid(
                f"spread with p50_s={self.p50_s}, p95_s={self.p95_s}, count={self.count}: "
                "needs 0 <= p50_s <= p95_s, both finite, and at least one observation"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """How long workers of a template take to start and to end."""

    start_up: Spread | None = None
    """From the spawn of a worker to ready."""
    start_up_of_late_s: float | None = None
    """What the live loop takes a start to be: the mean of all, in which the newest count most."""
    start_up_cpu_s: float | None = None
    """CPU seconds that a worker takes from spawn to ready: starts beside each other compete for cores."""
    start_up_alone: Spread | None = None
    """The same as ``start_up`` less what the workers waited for a core: what a start takes with a core of its own."""
    exit: Spread | None = None
    """From the request to stop to the end of the process, of workers that had no job."""
    exit_cpu_s: float | None = None
    """CPU seconds that a worker takes from the request to stop to its end."""
    exit_alone: Spread | None = None
    """The same as ``exit`` less what the workers waited for a core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour(Timings):
    """What the live loop has measured of one pool: timings of its template, and what is the pool's own."""

    dispatch_overhead_s: float | None = None
    """From the end of a job to the start of the next one in the same slot while jobs wait.

    A slot starts ``1 / (service time + overhead)`` jobs a second.
    """
    sample_lag: Spread | None = None
    """How old the newest queue sample is at an evaluation."""
    worker_lag: Spread | None = None
    """From the change of a worker's state on its host to its report, from which on every evaluation knows it."""
    evaluation_delay: Spread | None = None
    """How much later than its interval an evaluation begins."""
    apply_delay: Spread | None = None
    """From the beginning of an evaluation to the spawns and the requests to stop that it makes on a host."""
    wake_delay: Spread | None = None
    """From a job that reaches a pool at zero to the beginning of the evaluation that wakes the pool."""

    def __post_init__(self) -> None:
        breaches = [
            f"behaviour: {name}={value} must be finite and at least 0"
            for name in ("start_up_of_late_s", "start_up_cpu_s", "exit_cpu_s", "dispatch_overhead_s")
            if (value := getattr(self, name)) is not None and not 0 <= value < math.inf
        ]
        if breaches:
            raise Invalid(*breaches)


def of_late_s(behaviour: Behaviour) -> float | None:
    """What the live loop takes a start to be; ``None`` where it has seen none."""
    if behaviour.start_up_of_late_s is None and behaviour.start_up is not None:
        return mean_s(behaviour.start_up)
    return behaviour.start_up_of_late_s


def alone(behaviour: Behaviour) -> Behaviour:
    """The same where no worker waits for a core; what was not measured so stays as it is, and so does what is known."""
    return replace(
        behaviour,
        start_up_of_late_s=of_late_s(behaviour),
        start_up=behaviour.start_up_alone or behaviour.start_up,
        exit=behaviour.exit_alone or behaviour.exit,
    )


def spread_of(values_s: Collection[float]) -> Spread | None:
    """The spread of these observations; ``None`` of none."""
    if not values_s:
        return None
    ordered = sorted(values_s)
    return Spread(p50_s=nearest_rank(ordered, 0.5), p95_s=nearest_rank(ordered, 0.95), count=len(ordered))


def parameters(spread: Spread) -> tuple[float, float]:
    """The logarithm of the median, and sigma, of the lognormal distribution with these two percentiles.

    A median of nothing has no logarithm: it counts as a thousandth of the 95th percentile, which must not be nothing.
    """
    median_s = max(spread.p50_s, SHORTEST_PART * spread.p95_s)
    return math.log(median_s), math.log(spread.p95_s / median_s) / Z95


def mean_s(spread: Spread) -> float:
    """The mean of the lognormal distribution with these two percentiles."""
    if spread.p50_s == spread.p95_s:
        return spread.p50_s
    mu, sigma = parameters(spread)
    return math.exp(mu + sigma * sigma / 2)


def nearest_rank(ordered: Sequence[float], fraction: float) -> float:
    """The value that ``fraction`` of them do not exceed: an observed one, so that rounding never puts p50 above p95."""
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]


_SPREADS = frozenset(each.name for each in fields(Behaviour) if each.type == Spread | None)


def behaviour_to_mapping(behaviour: Behaviour) -> dict[str, Any]:
    """``behaviour`` in what JSON knows; every key is there, unknown ones as ``None``."""
    return {each.name: _plain(getattr(behaviour, each.name)) for each in fields(Behaviour)}


def _plain(value: Spread | float | None) -> Any:
    return {each.name: getattr(value, each.name) for each in fields(Spread)} if isinstance(value, Spread) else value


def behaviour_from_mapping(body: Mapping[str, Any]) -> Behaviour:
    """The behaviour that ``body`` holds. Keys of later versions are passed over, missing ones are unknown.

    Raises:
        Invalid: a figure that is there is none.
    """
    try:
        known: dict[str, Any] = {
            each.name: _spread(body[each.name]) if each.name in _SPREADS else float(body[each.name])
            for each in fields(Behaviour)
            if body.get(each.name) is not None
        }
        return Behaviour(**known)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Invalid(f"behaviour: {error!r} in {body!r}") from error


def _spread(body: Mapping[str, Any]) -> Spread:
    return Spread(p50_s=float(body["p50_s"]), p95_s=float(body["p95_s"]), count=int(body.get("count", 1)))
