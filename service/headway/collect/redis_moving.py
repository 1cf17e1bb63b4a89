"""Connections to a Redis whose server may be another one at any time: who serves is asked before each connection.

With Sentinel it is the master of a name. In a cluster it is the node that has the slot of the connection's keys, which
all lie in one: their prefix has a hash tag, because queue libraries move jobs between keys in single commands.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import AskError, ClusterDownError, TryAgainError
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool, SentinelManagedConnection
from redis.sentinel import SentinelManagedSSLConnection as EncryptedSentinelConnection

ASKED_EACH_S = 1.0  # of a master that was cut off from its sentinels and from its replicas, but not from here
ASKED_AGAIN_S = 10.0  # where all sentinels hang: they hold up one poll of many
ASK_TIMEOUT_S = 1.0  # of three sentinels two may hang

_ASKING = ("socket_timeout", "socket_connect_timeout")
_OF_ITS_OWN = ("redis_connect_func", "command_packer")
_MOVED = (AskError, TryAgainError, ClusterDownError)

Node = tuple[str, int]


def follow_sentinels(
    sentinels: Sequence[Node],
    master: str,
    *,
    password: str | None,
    certificates: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> "redis.ConnectionPool":
    """Connections to whichever server is the master now.

    Args:
        sentinels: Of which one has to answer.
        master: As they call it.
        password: Of the sentinels themselves.
        certificates: Options of TLS; ``None``: nothing is encrypted.
        options: Of the connections to the master.
    """
    encrypted = {} if certificates is None else {"ssl": True, **certificates}
    asking = dict.fromkeys(_ASKING, ASK_TIMEOUT_S)
    client = Sentinel(  # type: ignore[no-untyped-call]
        list(sentinels), sentinel_kwargs={"password": password, "retry": Retry(NoBackoff(), 0), **asking, **encrypted}
    )
    kind = SentinelManagedConnection if certificates is None else EncryptedSentinelConnection
    return _MasterPool(master, client, connection_class=kind, **options, **(certificates or {}))


class _MasterPool(SentinelConnectionPool):
    """Asks for the master also while its connections are whole: a server that was cut off knows of no successor."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)  # type: ignore[no-untyped-call]
        self._ask_from_s = float("-inf")

    def get_connection(self, *given: Any, **options: Any) -> Any:
        if time.monotonic() >= self._ask_from_s:
            self._ask()
        return super().get_connection(*given, **options)

    def _ask(self) -> None:
        before, pause_s = self.master_address, ASKED_EACH_S
        try:
            if before not in (None, self.get_master_address()):  # type: ignore[no-untyped-call]
                self.disconnect()  # subscriptions as well
        except MasterNotFoundError:  # no sentinel answers: whom they named last may well do
            pause_s = ASKED_AGAIN_S
        self._ask_from_s = time.monotonic() + pause_s


class SlotOwner:
    """Which node of a cluster has the slot of some keys. Remembered until it turns out to be another."""

    def __init__(
        self,
        nodes: Sequence[Node],
        prefix: str,
        *,
        certificates: Mapping[str, Any] | None,
        options: Mapping[str, Any],
    ) -> None:
        """Of the cluster of ``nodes``, and of the keys that begin with ``prefix``, which has a hash tag."""
        self.options = dict(options)
        self._asking = {name: value for name, value in options.items() if name not in _OF_ITS_OWN}
        self.certificates = certificates
        self._slot = key_slot(prefix.encode())
        self._named = tuple(nodes)
        self._nodes = list(nodes)
        """Whom to ask, in this order: who failed goes last."""
        self._address: Node | None = None

    def address(self) -> Node:
        """Where it is. Raises ``redis.ConnectionError`` where no node says so."""
        problem: Exception | None = None
        for node in tuple(self._nodes) if self._address is None else ():
            try:
                self._address = self._asked(node)
                break
            except (redis.RedisError, OSError) as error:
                self._nodes.append(self._nodes.pop(0))
                if isinstance(error, redis.AuthenticationError):
                    raise
                problem = problem or error
        if self._address is None:
            raise redis.ConnectionError(f"no node of the cluster says who has slot {self._slot}") from problem
        return self._address

    def forget(self) -> None:
        """It is another one now, or away; what the node says that was asked last may be old."""
        self._address = None
        self._nodes.append(self._nodes.pop(0))

    def _asked(self, node: Node) -> Node:
        """What ``node`` says, which also names the others."""
        encrypted = {} if self.certificates is None else {"ssl": True, **self.certificates}
        with redis.Redis(
            host=node[0],
            port=node[1],
            **{
                **self._asking,
                **dict.fromkeys(_ASKING, ASK_TIMEOUT_S),
                "decode_responses": True,
                **encrypted,
            },
        ) as client:
            # As the server writes it: what redis-py makes of this reply differs between its versions.
            client.response_callbacks.pop("CLUSTER SLOTS", None)
            ranges = client.execute_command("CLUSTER SLOTS")
        # Without a name of its own a node is where it was asked.
        found = {
            (first, last): [(str(host or node[0]), int(port)) for host, port, *_ in nodes]
            for first, last, *nodes in ranges
        }
        owners = [nodes[0] for (first, last), nodes in found.items() if first <= self._slot <= last]
        if not owners:
            raise redis.ConnectionError(f"no node has slot {self._slot}")
        self._nodes = list(dict.fromkeys((node, *self._named, *(each for nodes in found.values() for each in nodes))))
        return owners[0]


def follow_slot(owner: SlotOwner) -> "redis.ConnectionPool":
    """Connections to whichever node is the slot's owner now."""
    kind = _SlotConnection if owner.certificates is None else _EncryptedSlotConnection
    return redis.ConnectionPool(connection_class=kind, owner=owner, **owner.options, **(owner.certificates or {}))


class _SlotConnection(redis.Connection):
    """To the slot's owner."""

    def __init__(self, *, owner: SlotOwner, **options: Any) -> None:
        self._owner = owner
        super().__init__(**options)  # type: ignore[no-untyped-call]

    def connect(self) -> None:
        """To whoever is the owner, unless there is a connection."""
        self.host, self.port = self._owner.address()
        try:
            super().connect()  # type: ignore[no-untyped-call]
        except (redis.ConnectionError, redis.TimeoutError):
            self._owner.forget()
            raise

    def read_response(self, *given: Any, **options: Any) -> Any:
        """The next reply. One that sends the client elsewhere ends the connection: it says nothing of the keys."""
        try:
            return super().read_response(*given, **options)
        except redis.ResponseError as error:
            if not isinstance(error, _MOVED):
                raise
            self._owner.forget()
            self.disconnect()  # type: ignore[no-untyped-call]
            raise redis.ConnectionError(f"its slot is being moved: {error}") from error


class _EncryptedSlotConnection(_SlotConnection, redis.SSLConnection):
    pass


def has_one_slot(prefix: str) -> bool:
    """Whether all keys that begin with ``prefix`` lie in one slot: it has a hash tag, as in ``{jobs}``."""
    return len({key_slot(f"{prefix}{rest}".encode()) for rest in ("", "a", "b}", "{c}")}) == 1
