"""Which queues the messages of Celery's delayed delivery can come to, by the bindings of the virtual host.

At the end of their delay, messages go to an exchange for delivery. A worker binds the exchanges of its queues to it, so
the bindings show which queues can have delayed jobs. A dead letter queue has none, unless a worker serves it.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Any

from headway.collect.rabbitmq.management_api import ExchangeBinding
from headway.errors import Unavailable

DELIVERY = "celery_delayed_delivery"  # behind the prefix of an application that has one
ROUTES_EVERY_S = 30.0


class DelayRoutes:
    """The routes as they were read last. While bindings cannot be read, the former ones hold. One thread uses it."""

    def __init__(self, bindings: Callable[[], Iterable[ExchangeBinding]], state: Any = None) -> None:
        """Read ``bindings`` when routes are wanted; until then go on from ``to_state``."""
        self._bindings = bindings
        self._reached = frozenset(map(str, state)) if isinstance(state, list) else None
        self._names: frozenset[str] = frozenset()
        """The queues that were known when bindings were read."""
        self._read_at_s = float("-inf")

    def to_state(self) -> list[str] | None:
        """What a cursor holds."""
        return None if self._reached is None else sorted(self._reached)

    def only_queue(self, names: Collection[str], *, at_s: float) -> str | None:
        """The only queue that delayed messages can come to; ``None`` where there are several, or it is not known.

        ``names`` are the queues that are known now: bindings are read when one is new, and now and then.
        """
        if not (self._names.issuperset(names) and 0 <= at_s - self._read_at_s < ROUTES_EVERY_S):
            self._names, self._read_at_s = frozenset(names), at_s
            with suppress(Unavailable):
                self._reached = reached_queues(self._bindings())
        return next(iter(self._reached)) if self._reached is not None and len(self._reached) == 1 else None


def reached_queues(bindings: Iterable[ExchangeBinding]) -> frozenset[str]:
    """The queues that a message can come to from an exchange for delivery, whatever its routing key is."""
    targets: dict[str, list[ExchangeBinding]] = {}
    for each in bindings:
        targets.setdefault(each.exchange, []).append(each)
    exchanges = [exchange for exchange in targets if exchange.endswith(DELIVERY)]
    seen = set(exchanges)
    queues = set()
    while exchanges:
        for each in targets.get(exchanges.pop(), ()):
            if each.is_to_queue:
                queues.add(each.target)
            elif each.target not in seen:
                seen.add(each.target)
                exchanges.append(each.target)
    return frozenset(queues)
