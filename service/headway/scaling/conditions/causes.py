"""Which conditions are true, what is said of them, and the state of a pool."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.host_table import OF_HOSTS
from headway.scaling.conditions.installation_facts import InstallationFacts
from headway.scaling.conditions.installation_table import OF_INSTALLATION
from headway.scaling.conditions.pool_facts import PoolFacts
from headway.scaling.conditions.pool_table import OF_POOLS

ON_TIME = "on_time"


@dataclass(frozen=True, slots=True)
class Cause:
    """A condition that is true, and its sentence without its full stop. Health and pools have these."""

    kind: str
    """The name of the condition."""
    text: str


def state_of(pool: PoolFacts) -> str:
    """The state of a pool: the worst that is true of it. What is not known is never a good one."""
    return next((each.name for each in OF_POOLS if each.word and each.is_true(pool)), ON_TIME)


def causes_of(pool: PoolFacts) -> Sequence[Cause]:
    """What is wrong with a pool, worst first; empty where nothing is."""
    found = [(each.name, text) for each in (*OF_POOLS, *OF_HOSTS) if each.is_true(pool) for text in each.says(pool)]
    return [Cause(name, text) for name, text in found if text is not None]


def ailing_installation(facts: InstallationFacts) -> Sequence[Cause]:
    """The reasons for which health is degraded by the installation itself."""
    return [Cause(each.name, text) for each in OF_INSTALLATION for text in each.of_installation(facts)]


def ailing_hosts(hosts: Iterable[HostRow]) -> Sequence[Cause]:
    """Those for which it is degraded by hosts: these do not report, report what they may not, or cannot work."""
    found = tuple(hosts)
    return [Cause(each.name, text) for each in (*OF_HOSTS, *OF_INSTALLATION) for text in each.of_hosts(found)]


def ailing_pools(pools: Iterable[PoolFacts]) -> Iterator[Cause]:
    """Those for which it is degraded by pools: one per condition, with the number of pools or jobs."""
    found = list(pools)
    for each in OF_POOLS:
        if not each.is_in_health:
            continue
        having = [pool for pool in found if each.is_true(pool)]
        numbers = Counter(f": {detail}" for pool in having for detail in each.counting.details(pool))
        if not numbers:
            numbers[""] = sum(each.counting.number(pool) for pool in having)
        for detail, number in numbers.items():
            if number:
                yield Cause(each.name, f"{each.counted(number)}{detail}: see `{each.counting.see}`")
