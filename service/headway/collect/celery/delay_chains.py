"""The queues of Celery's delayed delivery in one virtual host: a chain of levels per prefix of their names.

An application without a prefix delays in ``celery_delayed_N``, one with a prefix in ``PREFIX_celery_delayed_N``. Any
application may have a queue of such a name. So a queue with a prefix is a level only if its arguments are those that
kombu declares for that level.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from headway.collect.celery.delayed_delivery import DelayLevels
from headway.collect.rabbitmq.management_api import ListedQueue
from headway.scaling.model import DueJobs
from headway.scaling.model.due_jobs import due_by_groups

PREFIXES_MAX = 8  # each has 28 levels, of which a cursor holds some points

_BASE = "celery_delayed_"
_NAME = re.compile(r"(?:(.+)_)?celery_delayed_(\d|1\d|2[0-7])", re.DOTALL)


class DelayQueue(NamedTuple):
    """A level of a chain."""

    prefix: str
    """Empty for the chain of applications without one."""
    level: int

    @property
    def name(self) -> str:
        """The queue's name."""
        return f"{self._base}{self.level}"

    def is_declared_as(self, queue: ListedQueue) -> bool:
        """Whether ``queue`` passes its messages on as this level does."""
        next_exchange = f"{self._base}{self.level - 1 if self.level else 'delivery'}"
        return queue.expires_after_ms == 1_000 * 2**self.level and queue.dead_letter_exchange == next_exchange

    @property
    def _base(self) -> str:
        return f"{self.prefix}_{_BASE}" if self.prefix else _BASE


def delay_queue(name: str) -> DelayQueue | None:
    """The level that a queue of this name can be; ``None`` where it can be none."""
    found = _NAME.fullmatch(name) if _BASE in name else None
    return None if found is None else DelayQueue(prefix=found[1] or "", level=int(found[2]))


class DelayChains:
    """The chains of one virtual host. One thread uses it."""

    def __init__(self, plain: Any = None, prefixed: Any = None) -> None:
        """Go on from what ``to_state`` gave."""
        states = prefixed if isinstance(prefixed, dict) else {}
        self._chains = {prefix: DelayLevels(state) for prefix, state in {**states, "": plain}.items()}
        self._prefixed = {
            DelayQueue(prefix, int(level))
            for prefix, state in states.items()
            for level in (state if isinstance(state, dict) else {})
        }
        """The levels with a prefix that a list has shown, with their arguments."""

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a cursor holds of the chain without a prefix, and of the others by their prefixes."""
        states = {prefix: chain.to_state() for prefix, chain in self._chains.items()}
        return states.pop(""), states

    def accepts(self, queue: ListedQueue) -> bool:
        """Whether ``queue`` is a level; from then on its name is enough."""
        found = delay_queue(queue.name)
        if found is None or not found.prefix:
            return found is not None
        is_level = found.is_declared_as(queue)
        (self._prefixed.add if is_level else self._prefixed.discard)(found)
        return is_level

    def level(self, name: str) -> DelayQueue | None:
        """The level that the queue ``name`` is; ``None`` where it is none, or no list has shown its arguments."""
        found = delay_queue(name)
        return found if found is not None and (not found.prefix or found in self._prefixed) else None

    def forget_except(self, names: Collection[str]) -> None:
        """Forget the levels with a prefix whose queues are not among ``names``."""
        self._prefixed = {each for each in self._prefixed if each.name in names}
        prefixes = {"", *(each.prefix for each in self._prefixed)}
        self._chains = {prefix: chain for prefix, chain in self._chains.items() if prefix in prefixes}

    def see(self, counts: Mapping[DelayQueue, int], *, at_s: float) -> None:
        """Learn from how many messages there are at each level now."""
        for prefix, levels in _by_prefix(counts).items():
            if prefix in self._chains or len(self._chains) <= PREFIXES_MAX:
                self._chains.setdefault(prefix, DelayLevels()).see(levels, at_s=at_s)

    def due(self, counts: Mapping[DelayQueue, int], *, at_s: float) -> tuple[DueJobs, ...] | None:
        """When the messages at each level may be due; ``None`` with more prefixes than are read."""
        by_prefix = _by_prefix(counts)
        if len(by_prefix.keys() | self._chains.keys()) > 1 + PREFIXES_MAX:
            return None
        chains = ((self._chains.get(prefix, DelayLevels()), levels) for prefix, levels in by_prefix.items())
        return due_by_groups(each for chain, levels in chains for each in chain.delayed(levels, at_s=at_s))


def _by_prefix(counts: Mapping[DelayQueue, int]) -> dict[str, dict[int, int]]:
    chains: dict[str, dict[int, int]] = {}
    for each, jobs in counts.items():
        chains.setdefault(each.prefix, {})[each.level] = jobs
    return chains
