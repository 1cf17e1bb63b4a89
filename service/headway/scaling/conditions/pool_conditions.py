"""Which conditions are true of a pool, its state, and how many pools health counts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from headway.scaling.conditions.condition_table import CONDITIONS, HEALTH_KINDS, OF_POOLS
from headway.scaling.conditions.pool_facts import PoolFacts

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
    own = [(each.name, text) for each in OF_POOLS if each.is_true(pool) for text in each.says(pool)]
    return [Cause(name, text) for name, text in (*own, *pool.host_troubles) if text is not None]


def ailing_pools(pools: Iterable[PoolFacts]) -> Iterator[Cause]:
    """The reasons for which health is degraded by pools: one per condition, with the number of pools or jobs."""
    found = list(pools)
    for kind in HEALTH_KINDS:
        condition, counting = CONDITIONS[kind], CONDITIONS[kind].counting
        if counting is None:
            continue
        having = [pool for pool in found if condition.is_true(pool)]
        numbers = Counter(f": {detail}" for pool in having for detail in counting.details(pool))
        if not numbers:
            numbers[""] = sum(counting.number(pool) for pool in having)
        for detail, number in numbers.items():
            if number:
                are_so = counting.several if number > 1 else counting.one or f"pool {condition.sentence}"
                yield Cause(kind, f"{number} {are_so}{detail}: see `{counting.see}`")
