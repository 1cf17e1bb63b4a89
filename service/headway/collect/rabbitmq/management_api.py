"""RabbitMQ's management API, read: which queues there are, and how many messages each has."""

import base64
import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from headway.collect.broker_errors import LoginRefused, Untrusted
from headway.collect.rabbitmq.broker_address import address_of
from headway.collect.rabbitmq.time_limit import ended_after
from headway.connections import Connection, shown
from headway.errors import Misconfigured, Unavailable

ANSWER_TIMEOUT_S = 4.0
ANSWER_BYTES_MAX = 64_000_000  # of 10,000 queues: 5 MB
COUNT_MAX = 2**53  # of messages, and of seconds: from here on a float is not exact, and in the end raises
CLASSIC = "classic"
ENDED_WHILE_IDLE = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)
COLUMNS = "name,type,state,exclusive,auto_delete,messages_ready,messages_unacknowledged,arguments,policy"
SINGLE_CONSUMER = "x-single-active-consumer"
MESSAGE_TTL = "x-message-ttl"
DEAD_LETTER_EXCHANGE = "x-dead-letter-exchange"
DEAD_LETTER_KEY = "x-dead-letter-routing-key"
EXPIRES = "x-expires"
OUT_OF_ORDER = frozenset({"x-max-priority", MESSAGE_TTL, "x-max-length", "x-max-length-bytes"})
"""Arguments by which jobs leave elsewhere than at the head, or to nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedQueue:
    """A queue as the management API lists it."""

    name: str
    kind: str
    """``classic``, ``quorum`` or ``stream``."""
    is_transient: bool
    """Whether it is deleted with its connection or its last consumer."""
    ready_jobs: int | None
    """Messages that wait for a consumer; ``None``: the node that has the queue does not answer."""
    unacked_jobs: int | None
    """Messages that consumers hold."""
    state: str
    keeps_order: bool = False
    """Whether its jobs leave in the order in which they entered, each to a consumer, and its figures are of now."""
    has_single_consumer: bool = False
    """Whether one of its consumers gets all its messages, and the others wait for that one to end."""
    expires_after_ms: int | None = None
    """For how long a message waits in it at most, by its arguments; ``None`` where they set no such time."""
    dead_letter_exchange: str | None = None
    """Where messages go that are rejected or expire, by its arguments; ``None``: nowhere, or a policy says it."""
    dead_letter_key: str = ""
    """Their routing key there; empty: each keeps its own."""
    does_expire: bool = False
    """Whether its arguments let it be deleted a while after its last use."""
    policy: str | None = None
    """Which one is in force: it may do the same."""


class ExchangeBinding(NamedTuple):
    """A route of messages in the virtual host."""

    exchange: str
    target: str
    is_to_queue: bool
    """Whether ``target`` is a queue; else an exchange."""


class ManagementApi:
    """One kept connection to the management API of a broker. It connects at its first call."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._http: http.client.HTTPConnection | None = None
        self._url = self._api = self._vhost = ""
        self._headers: dict[str, str] = {}
        self._known: dict[str, tuple[dict[str, Any], ListedQueue]] = {}
        """What was answered last: most queues of a thousand are as they were."""

    def queues(self) -> tuple[ListedQueue, ...]:
        """All queues of the virtual host, counted now: the broker asks each queue itself.

        Those of quorum queues are what the queue noted last, up to 5 s ago.

        Raises:
            Unavailable: the API does not answer, refuses the login, or knows no such virtual host.
        """
        entries = self._get("", f"?disable_stats=true&enable_queue_totals=true&columns={COLUMNS}")
        if not isinstance(entries, list):
            raise Unavailable(f"management API {self._shown} answers with something other than a list of queues")
        known, self._known = self._known, {}
        for entry in entries:
            name = entry.get("name") if isinstance(entry, dict) else None
            if isinstance(name, str) and name:
                seen = known.get(name)
                self._known[name] = seen if seen is not None and seen[0] == entry else (entry, _listed(name, entry))
        return tuple(queue for _, queue in self._known.values())

    def bindings(self) -> tuple[ExchangeBinding, ...]:
        """The bindings in the virtual host.

        Raises:
            Unavailable: as ``queues``.
        """
        return tuple(
            ExchangeBinding(
                str(each.get("source")), str(each.get("destination")), each.get("destination_type") == "queue"
            )
            for each in self._entries("bindings", "?columns=source,destination,destination_type")
        )

    def policies(self) -> dict[str, dict[str, Any]]:
        """The definitions of the policies of the virtual host, by name.

        Raises:
            Unavailable: as ``queues``.
        """
        named = ((str(each.get("name")), each.get("definition")) for each in self._entries("policies", ""))
        return {name: definition for name, definition in named if isinstance(definition, dict)}

    def head_time_s(self, queue: str) -> float | None:
        """The timestamp of the oldest message in ``queue``, ready or held; ``None``: it has none.

        As of the queue's statistics, up to 5 s ago.

        Raises:
            Unavailable: as ``queues``.
        """
        found = self._get(f"/{quote(queue, safe='')}", "?columns=head_message_timestamp")
        at_s = found.get("head_message_timestamp") if isinstance(found, dict) else None
        return float(at_s) if isinstance(at_s, int) and 0 < at_s < COUNT_MAX else None

    def close(self) -> None:
        """Let the API go."""
        if self._http is not None:
            self._http.close()
            self._http = None

    @property
    def _shown(self) -> str:
        return shown(self._url)

    def _entries(self, of: str, query: str) -> list[dict[str, Any]]:
        """The list ``of`` the virtual host, without what is no entry."""
        found = self._get("", query, of=of)
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    def _get(self, path: str, query: str, *, of: str = "queues") -> Any:
        """What is at ``path`` below ``of`` in the virtual host; asked once more where a kept connection has ended."""
        was_kept = self._http is not None
        try:
            return self._get_once(path, query, of)
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            self.close()
            if not (was_kept and isinstance(error, ENDED_WHILE_IDLE)):
                kind = Untrusted if isinstance(error, ssl.SSLCertVerificationError) else Unavailable
                raise kind(f"management API {self._shown} cannot be reached ({error})") from error
        return self._get(path, query, of=of)

    def _get_once(self, path: str, query: str, of: str) -> Any:
        client = self._opened()
        with ended_after(ANSWER_TIMEOUT_S, lambda: client.sock):
            client.request("GET", f"{self._api}/{of}/{self._vhost}{path}{query}", headers=self._headers)
            answer = client.getresponse()
            body = answer.read(ANSWER_BYTES_MAX)
            if not answer.isclosed() or answer.will_close:
                self.close()
        if answer.status != http.HTTPStatus.OK:
            self.close()
            raise _refusal(answer.status, f"management API {self._shown}")
        return json.loads(body)

    def _opened(self) -> http.client.HTTPConnection:
        if self._http is None:
            try:
                address = address_of(self._connection)
            except Misconfigured as error:  # the password's file, which was there at the start
                raise Unavailable(str(error)) from error
            self._url = address.management_url
            parts = urlsplit(self._url)
            self._api, self._vhost = f"{parts.path}/api", quote(address.vhost, safe="")
            login = base64.b64encode(f"{address.user}:{address.password}".encode()).decode()
            self._headers = {"Authorization": f"Basic {login}", "User-Agent": "headway-collect"}
            if parts.scheme == "https":
                trusted = ssl.create_default_context(cafile=self._connection.ca_file)
                self._http = http.client.HTTPSConnection(
                    parts.hostname or "", parts.port, timeout=ANSWER_TIMEOUT_S, context=trusted
                )
            else:
                self._http = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_TIMEOUT_S)
        return self._http


def _refusal(status: int, api: str) -> Unavailable:
    if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
        return LoginRefused(
            f"{api} refuses the login: check user and password; the user needs the tag 'management' or 'monitoring', "
            "and a permission, empty ones are enough, in the virtual host"
        )
    if status == http.HTTPStatus.NOT_FOUND:
        return Unavailable(f"{api} knows no such virtual host: check the end of url")
    return Unavailable(f"{api} answers with status {status}")


def _listed(name: str, entry: dict[str, Any]) -> ListedQueue:
    arguments = entry.get("arguments")
    arguments = arguments if isinstance(arguments, dict) else {}
    return ListedQueue(
        name=name,
        kind=str(entry.get("type", CLASSIC)),
        is_transient=bool(entry.get("exclusive") or entry.get("auto_delete")),
        ready_jobs=count_of(entry.get("messages_ready")),
        unacked_jobs=count_of(entry.get("messages_unacknowledged")),
        state=str(entry.get("state", "unknown")),
        keeps_order=_keeps_order(entry),
        has_single_consumer=arguments.get(SINGLE_CONSUMER) is True,  # no policy can make a queue one
        expires_after_ms=count_of(arguments.get(MESSAGE_TTL)),
        dead_letter_exchange=_text(arguments, DEAD_LETTER_EXCHANGE),
        dead_letter_key=_text(arguments, DEAD_LETTER_KEY) or "",
        does_expire=arguments.get(EXPIRES) is not None,
        policy=str(entry["policy"]) if entry.get("policy") else None,
    )


def _text(arguments: dict[str, Any], name: str) -> str | None:
    value = arguments.get(name)
    return value if isinstance(value, str) else None


def _keeps_order(entry: dict[str, Any]) -> bool:
    arguments = entry.get("arguments")
    # Only administrators may read what a policy does: it may do the same as such an argument.
    if not isinstance(arguments, dict) or entry.get("policy") or entry.get("type", CLASSIC) != CLASSIC:
        return False
    return OUT_OF_ORDER.isdisjoint(arguments)


def count_of(value: Any) -> int | None:
    """``value`` where it is a number of things, or of milliseconds; ``None`` of anything else."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < COUNT_MAX
    return value if is_count else None
