"""What the policies of a virtual host do to its queues, beside the arguments of the queues."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from headway.collect.rabbitmq.management_api import ListedQueue, ManagementApi, count_of
from headway.errors import Unavailable

POLICIES_EVERY_S = 60.0


class QueuePolicies:
    """The policies as they were read last. While they cannot be read, the former ones hold."""

    def __init__(self, api: ManagementApi) -> None:
        self._api = api
        self._names: set[str] = set()
        """Those that queues had when policies were read."""
        self._definitions: dict[str, dict[str, Any]] = {}
        self._read_at_s = float("-inf")

    def read(self, listed: Iterable[ListedQueue], at_s: float) -> None:
        """Read what policies do where one is new in the list, and now and then."""
        names = {each.policy for each in listed if each.policy is not None}
        if names <= self._names and (not names or 0 <= at_s - self._read_at_s < POLICIES_EVERY_S):
            return
        self._names, self._read_at_s = names, at_s
        with suppress(Unavailable):
            self._definitions = self._api.policies()

    def let_expire(self, queue: ListedQueue) -> bool:
        """Whether ``queue`` is deleted a while after its last use."""
        return queue.does_expire or "expires" in self._definition(queue)

    def message_ttl_s(self, queue: ListedQueue) -> float | None:
        """How long a message waits in ``queue`` until the broker drops or moves it; ``None``: for any time.

        The lower one holds where both arguments and a policy set a time.
        """
        both = queue.expires_after_ms, count_of(self._definition(queue).get("message-ttl"))
        return min((each / 1000.0 for each in both if each is not None), default=None)

    def _definition(self, queue: ListedQueue) -> dict[str, Any]:
        return {} if queue.policy is None else self._definitions.get(queue.policy, {})
