"""The strategies that come with Headway, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from headway.scaling.strategies.hybrid import HYBRID
from headway.scaling.strategy import Strategy

BUILT_IN: Mapping[str, Strategy] = MappingProxyType({strategy.name: strategy for strategy in (HYBRID,)})
