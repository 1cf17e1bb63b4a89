"""The strategies that ``decide`` has without an entry point, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from headway.scaling.strategies.budget_aware import BUDGET_AWARE
from headway.scaling.strategies.fixed import FIXED
from headway.scaling.strategies.hybrid import HYBRID
from headway.scaling.strategies.time_of_day import TIME_OF_DAY
from headway.scaling.strategy import Strategy

BUILT_IN: Mapping[str, Strategy] = MappingProxyType(
    {strategy.name: strategy for strategy in (HYBRID, FIXED, TIME_OF_DAY, BUDGET_AWARE)}
)
