"""Every condition, once. Health, states of pools, incidents, rules of Prometheus, `headway doctor` and
docs/reference/conditions.md are made from this table.

Within a subject the worst comes first: the state of a pool is the first that is true of it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from headway.scaling.conditions.condition import DEGRADED, Alert, Condition, Severity, Subject
from headway.scaling.conditions.host_table import OF_HOSTS
from headway.scaling.conditions.installation_table import OF_INSTALLATION
from headway.scaling.conditions.pool_table import OF_POOLS
from headway.scaling.conditions.series_table import OF_SERIES

_ALL = (*OF_INSTALLATION, *OF_HOSTS, *OF_POOLS, *OF_SERIES)
WITH_OWN_INCIDENT = frozenset(each.name for each in _ALL if each.is_in_health and each.own_rule)
"""The kinds of health that are an incident, and a rule of Prometheus, of their own: they need no second one."""
_DEGRADED = Condition(
    name=DEGRADED,
    subject=Subject.INSTALLATION,
    what="health is degraded by a condition that has no incident of its own",
    severity=Severity.PAGE,
    cure="`headway get health` has a sentence for each reason",
    alert=Alert(
        "HeadwayDegraded",
        f'headway_health_reason{{reason!~"{"|".join(sorted(WITH_OWN_INCIDENT))}"}} == 1',
        for_s=120,
        summary="health is degraded, and the reason is {{ $labels.reason }}: headway get health",
    ),
)
CONDITIONS: Mapping[str, Condition] = MappingProxyType({each.name: each for each in (_DEGRADED, *_ALL)})
"""Every condition by its name."""
HEALTH_KINDS: Sequence[str] = tuple(each.name for each in _ALL if each.is_in_health)
"""The kinds of reasons for which health is degraded."""
CAUSES: Sequence[str] = tuple(each.name for each in (*OF_POOLS, *OF_SERIES, *OF_HOSTS) if each.severity is not None)
"""What causes of a pool may be about."""
STATES: Sequence[str] = tuple(each.name for each in _ALL if each.word)
"""The states of a pool, the worst first."""
STATES_BY_URGENCY: Sequence[str] = tuple(
    name for severity in Severity for name in STATES if CONDITIONS[name].severity is severity
)
"""The states of a pool that are not in order, the most urgent first."""
URGENCIES: Mapping[str, int] = MappingProxyType(
    {
        name: len(STATES_BY_URGENCY) - place if name in STATES_BY_URGENCY and not CONDITIONS[name].is_momentary else 0
        for place, name in enumerate(dict.fromkeys((*STATES_BY_URGENCY, *STATES)))
    }
)
"""Every state of a pool, the most urgent first, and how urgent it is: 0 of what is in order, or so for moments."""
