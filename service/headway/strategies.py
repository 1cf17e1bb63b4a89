"""The strategies that are installed: those that come with Headway, and those of packages that announce theirs.

A package announces one as an entry point of the group ``headway.strategies`` whose name is the strategy's. They are
loaded once, at the start, and what cannot be loaded ends it.
"""

import math
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from headway.errors import Invalid, Misconfigured
from headway.scaling.mapping import is_number, near
from headway.scaling.profile import Forecast, Profile
from headway.scaling.profile_keys.presets import PRESETS
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Strategy

GROUP = "headway.strategies"
READS_POLICIES = "hybrid_v3"
"""The strategy to which the policies of a forecast mean something; to others they mean auto."""


def load_strategies(announced: Iterable[EntryPoint] | None = None) -> Mapping[str, Strategy]:
    """Every strategy by its name; of ``announced`` entry points, else of those that are installed.

    Raises:
        Misconfigured: one cannot be loaded, is no strategy, or has a name that is taken; with its name and its package.
    """
    found = dict(BUILT_IN)
    for entry in entry_points(group=GROUP) if announced is None else announced:
        strategy = _loaded(entry)
        if found.setdefault(strategy.name, strategy) is not strategy:
            raise Misconfigured(f"{_named(entry)}: the name is taken; give it another")
    return MappingProxyType(found)


def refuse_unknown(profile: Profile, strategies: Mapping[str, Strategy]) -> None:
    """Return if ``profile`` names one of ``strategies`` and gives it numbers that it reads.

    Raises:
        Invalid: with every name that is not known.
    """
    strategy = strategies.get(profile.strategy)
    if strategy is None:
        meant = near(profile.strategy, strategies) or f" known: {', '.join(sorted(strategies))}"
        raise Invalid(f"strategy {profile.strategy!r} is not known;{meant}", where=f"profile {profile.pool!r}")
    unknown = sorted(profile.strategy_options.keys() - strategy.options.keys())
    if unknown:
        known = ", ".join(sorted(strategy.options)) or "none"
        raise Invalid(
            *(
                f"strategy_options.{name} is no number of strategy {strategy.name!r}; known: {known}"
                for name in unknown
            ),
            where=f"profile {profile.pool!r}",
        )


def refuse_unread_forecast(profile: Profile) -> None:
    """Return if the strategy of ``profile`` reads its forecast, or its preset brought that.

    Raises:
        Invalid: it is a policy that the strategy takes for auto.
    """
    forecast, preset = profile.forecast, PRESETS.get(profile.preset or "", {})
    if forecast in {Forecast.AUTO, Forecast.OFF, preset.get("forecast")} or profile.strategy == READS_POLICIES:
        return
    raise Invalid(
        f"profile {profile.pool!r}: forecast={forecast.value} is a policy of strategy {READS_POLICIES!r}; "
        f"strategy {profile.strategy!r} reads auto or off"
    )


def _loaded(entry: EntryPoint) -> Strategy:
    try:
        strategy = entry.load()
    except Exception as error:  # importing others' code may raise anything
        raise Misconfigured(f"{_named(entry)}: {type(error).__name__}: {error}") from error
    if not isinstance(strategy, Strategy):
        raise Misconfigured(f"{_named(entry)}: expected a headway.scaling.strategy.Strategy, got {strategy!r}")
    if strategy.name != entry.name:
        raise Misconfigured(f"{_named(entry)}: it calls itself {strategy.name!r}; the two names must agree")
    odd = [name for name, value in strategy.options.items() if not (is_number(value) and math.isfinite(value))]
    if odd:
        raise Misconfigured(f"{_named(entry)}: options must be finite numbers; {', '.join(odd)} is none")
    return strategy


def _named(entry: EntryPoint) -> str:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value
    return f"strategy {entry.name!r} of package {package} cannot be loaded"
