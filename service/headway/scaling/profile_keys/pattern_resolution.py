"""Which pool each queue belongs to, where pools name queues by patterns: the one place that turns patterns into names.

All that follows (metrics, demands, feasibility, the order of queues) works on the names.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from headway.scaling.profile_keys.queue_patterns import is_match, is_pattern, narrowness
from headway.scaling.profile_keys.rules import is_path_name

MATCHED_QUEUES_MAX = 2_000  # per pool: a worker lists them all in its command line


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenQueues:
    """The queues of one pool, as its profile writes them."""

    pool: str
    queues: tuple[str, ...]
    literal: frozenset[str] = frozenset()
    """Those with ``*`` that an earlier version has stored as the name of one queue; they are, until they are applied
    again."""

    @property
    def has_patterns(self) -> bool:
        """Whether queues can come to the pool that it does not name."""
        return any(self.is_pattern(queue) for queue in self.queues)

    def is_pattern(self, queue: str) -> bool:
        """Whether ``queue``, as it is written, is a pattern."""
        return is_pattern(queue) and queue not in self.literal


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedQueue:
    """A queue, the pool that owns it, and why."""

    queue: str
    pool: str
    rank: int
    """The place of its name or its pattern in the profile; queues of one rank go by name."""
    pattern: str | None = None
    """What matched it; ``None``: the profile names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternResolution:
    """The queues of all pools, by name."""

    owned: tuple[OwnedQueue, ...] = ()
    unserved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Pool -> queues that its patterns match beyond as many as a pool takes: no pool serves them."""

    def queues_of(self, pool: str) -> tuple[str, ...]:
        """The queues of ``pool``, in its order."""
        mine = [each for each in self.owned if each.pool == pool]
        return tuple(each.queue for each in sorted(mine, key=lambda each: (each.rank, each.queue)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePool:
    """The pool of one matched queue, made of a profile with ``pools_max``."""

    pool: str
    made_of: str
    """The pool of that profile, which itself has no queue and no worker."""
    queue: str


def with_own_pools(
    resolution: PatternResolution,
    pools_max: Mapping[str, int],
    *,
    taken: Collection[str],
    before: Mapping[str, str] | None = None,
) -> tuple[PatternResolution, tuple[MadePool, ...]]:
    """``resolution`` with a pool of its own for each matched queue of some pools, and these pools.

    Args:
        resolution: the owners by profiles as they are written.
        pools_max: pool of which others are made -> at most so many; the queues beyond are served by none.
        taken: names that pools have which are written.
        before: queue -> the pool that was made for it: where the most are reached, it stays.
    """
    held = before or {}
    matched: dict[str, list[OwnedQueue]] = {pool: [] for pool in pools_max}
    owned: list[OwnedQueue] = []
    for each in resolution.owned:
        matched.get(each.pool, owned).append(each)
    made: dict[str, MadePool] = {}
    unserved = dict(resolution.unserved)
    for pool, queues in sorted(matched.items()):
        left: list[str] = []
        queues.sort(key=lambda each: (each.queue not in held, each.rank, each.queue))
        for at, each in enumerate(queues):
            name = each.queue.replace("/", ".")
            is_full = at - len(left) >= pools_max[pool]
            if is_full or name in taken or name in made or not is_path_name(name):
                left.append(each.queue)
                continue
            made[name] = MadePool(pool=name, made_of=pool, queue=each.queue)
            owned.append(replace(each, pool=name, rank=0))
        if left:
            unserved[pool] = tuple(sorted((*unserved.get(pool, ()), *left)))
    owned.sort(key=lambda each: each.queue)
    return PatternResolution(owned=tuple(owned), unserved=unserved), tuple(made.values())


def resolve(
    pools: Iterable[WrittenQueues],
    discovered: Iterable[str],
    *,
    before: Mapping[str, str] | None = None,
    queues_max: int = MATCHED_QUEUES_MAX,
) -> PatternResolution:
    """The owner of each queue that a pool names, and of each discovered one that a pattern of a pool matches.

    A queue that any pool names is matched by no pattern. Of several patterns the narrowest owns it, and within one
    pool the first one ranks it. The order of ``pools`` and of ``discovered`` changes nothing.

    Args:
        pools: each pool once.
        discovered: the names of queues that were seen.
        before: queue -> the pool that it belonged to: where a pool is full, such a queue stays.
        queues_max: of one pool, beside those that it names.
    """
    pools = sorted(pools, key=lambda each: each.pool)
    named = {
        queue: OwnedQueue(queue=queue, pool=each.pool, rank=rank)
        for each in reversed(pools)  # of a queue that two name, which is refused where it is written, the first is it
        for rank, queue in enumerate(each.queues)
        if not each.is_pattern(queue)
    }
    patterns = _by_connection(pools)
    found: dict[str, list[OwnedQueue]] = {}
    for queue in discovered:
        # A name with a star would be read as a pattern wherever it is written down.
        if queue in named or is_pattern(queue):
            continue
        if (match := _match(queue, patterns.get(_connection(queue), ()))) is not None:
            found.setdefault(match.pool, []).append(match)
    held = before or {}
    owned, unserved = [*named.values()], {}
    for pool, matches in sorted(found.items()):
        matches.sort(key=lambda each: (held.get(each.queue) != pool, each.rank, each.queue))
        owned += matches[:queues_max]
        if beyond := matches[queues_max:]:
            unserved[pool] = tuple(sorted(each.queue for each in beyond))
    return PatternResolution(owned=tuple(sorted(owned, key=lambda each: each.queue)), unserved=unserved)


_Ranked = tuple[tuple[int, int], str, int, str]
"""A pattern: its narrowness, pool, rank and text, in the order in which patterns own queues."""


def _by_connection(pools: Iterable[WrittenQueues]) -> dict[str, Collection[_Ranked]]:
    found: dict[str, list[_Ranked]] = {}
    for each in pools:
        for rank, queue in enumerate(each.queues):
            if each.is_pattern(queue):
                found.setdefault(_connection(queue), []).append((narrowness(queue), each.pool, rank, queue))
    return {connection: sorted(ranked) for connection, ranked in found.items()}


def _match(queue: str, patterns: Collection[_Ranked]) -> OwnedQueue | None:
    matching = [each for each in patterns if is_match(each[3], queue)]
    if not matching:
        return None
    owner = matching[0][1]
    rank, pattern = min((rank, pattern) for _, pool, rank, pattern in matching if pool == owner)
    return OwnedQueue(queue=queue, pool=owner, rank=rank, pattern=pattern)


def _connection(queue: str) -> str:
    return queue.partition("/")[0]
