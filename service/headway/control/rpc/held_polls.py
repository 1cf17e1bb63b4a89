"""Polls that are held over one connection: a proxy may pass on those of many hosts.

HTTP/2 bounds the calls that a connection has at once, and a client that has so many lets others wait, reports among
them. A proxy that opens no further connection then cuts its hosts off without a word. So some calls stay free of polls.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from headway.control.held_counts import one_more
from headway.errors import Overloaded

POLLS_FRACTION = 0.9  # of a connection's calls; a report takes milliseconds each 15 s


class HeldPolls:
    """How many polls each connection holds, of the ``calls_max`` calls that it has at once."""

    def __init__(self, *, calls_max: int) -> None:
        self._polls_max = max(1, int(calls_max * POLLS_FRACTION))
        self._held: Counter[str] = Counter()

    @contextmanager
    def held(self, peer: str) -> Iterator[None]:
        """One more poll over the connection of ``peer``, in gRPC's words, until the end of the block.

        Raises:
            Overloaded: one more would leave too few calls for reports.
        """
        if self._held[peer] >= self._polls_max:
            raise Overloaded(
                f"this connection holds {self._held[peer]} polls, and more would keep reports waiting: give each host "
                "its own connection through the proxy, or raise HEADWAY_GRPC_CALLS_PER_CONNECTION"
            )
        with one_more(self._held, peer):
            yield
