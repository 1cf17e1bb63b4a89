"""Durations that vary, drawn one after the other from what was measured of them."""

from collections.abc import Callable
from math import log
from random import Random

from headway.scaling.metrics.behaviour import Spread, parameters

Draw = Callable[[], float]


def chance(seed: int, stream: str) -> Random:
    """Its own stream of chance for each use, so that one more draw here moves nothing there."""
    return Random(f"{seed}/{stream}")  # noqa: S311 - no secret


def drawn(spread: Spread | None, draws: Random) -> Draw | None:
    """Draws from the lognormal distribution with the median and the 95th percentile of ``spread``.

    ``None`` where nothing is known, and where it is known to take no time: then nothing need be drawn.
    """
    if spread is None or spread.p95_s <= 0:
        return None
    if spread.p50_s == spread.p95_s:
        return lambda: spread.p50_s
    mu, sigma = parameters(spread)
    return lambda: draws.lognormvariate(mu, sigma)


def lognormal(mean_s: float, sigma: float, draws: Random) -> Draw:
    """Draws from the lognormal distribution with that mean; with ``sigma`` 0 always the mean."""
    if not sigma or not mean_s:
        return lambda: mean_s
    mu = log(mean_s) - sigma * sigma / 2  # so that the mean stays mean_s
    return lambda: draws.lognormvariate(mu, sigma)
