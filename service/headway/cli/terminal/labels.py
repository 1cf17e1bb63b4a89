"""The words of tables, which are the dashboard's. A test holds both to the same."""

from collections.abc import Mapping
from types import MappingProxyType

from headway.scaling.conditions.condition_table import CONDITIONS

LONGEST_WAIT = "longest wait"
IN_FLIGHT = "in flight"
WITHIN = "started within"
WANTED = "wanted"

STATES: Mapping[str, str] = MappingProxyType({name: each.word for name, each in CONDITIONS.items() if each.word})
"""The words for the state of a pool."""
