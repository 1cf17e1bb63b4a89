"""Passive declares: how many messages of a queue are ready now, asked over AMQP. They need no permission at all."""

import ssl
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import amqp

from headway.collect.broker_errors import LoginRefused, Untrusted
from headway.collect.rabbitmq.broker_address import address_of
from headway.collect.rabbitmq.time_limit import ended_after
from headway.connections import Connection
from headway.errors import Misconfigured, Unavailable

CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 4.0
ASKED_TOGETHER = 100
FRAME_HEAD, FRAME_END = struct.Struct(">BHIHHHB"), b"\xce"
METHOD_FRAME = 1
PASSIVE_ONLY = b"\x01"  # of the five flags
NO_ARGUMENTS = b"\0\0\0\0"
NAME_BYTES_MAX = 255
NO_QUEUE = "no queue"  # else the queue is there, and its node is down


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredQueue:
    """What the broker answers about a queue."""

    ready_jobs: int
    consumers: int


class PassiveDeclares:
    """One AMQP connection. It connects at its first call."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._amqp: Any = None
        self._channel: Any = None

    def read(self, queues: Iterable[str]) -> dict[str, DeclaredQueue | None]:
        """Each of ``queues`` as it is now; ``None``: there is none of that name.

        One that is locked, or whose node is down, is left out.

        Raises:
            Unavailable: the broker does not answer, or refuses the login or the virtual host.
        """
        found: dict[str, DeclaredQueue | None] = {}
        names = list(queues)
        try:
            self._open()
            with ended_after(ANSWER_TIMEOUT_S, self._socket):
                while names:
                    names = names[self._read(names[:ASKED_TOGETHER], found) :]
        except Misconfigured as error:  # the password's file, which was there at the start
            self.close()
            raise Unavailable(str(error)) from error
        except (amqp.AMQPError, OSError, EOFError, ValueError) as error:
            self.close()
            raise self._unavailable(error) from error
        return found

    def close(self) -> None:
        """Let the broker go, without waiting for it to agree."""
        if self._amqp is not None:
            self._amqp.collect()
            self._amqp = self._channel = None

    def _read(self, names: Sequence[str], found: dict[str, DeclaredQueue | None]) -> int:
        """Ask for ``names`` in one write. Returns how many were answered.

        The broker closes the channel at a name that is not there, and ignores what follows.
        """
        self._amqp.transport.write(b"".join(_declare(self._channel.channel_id, name) for name in names))
        for number, name in enumerate(names):
            try:
                answer = self._channel.wait(amqp.spec.Queue.DeclareOk, returns_tuple=True)
            except amqp.ChannelError as error:  # the client has opened the channel again
                if isinstance(error, amqp.NotFound) and NO_QUEUE in str(error.reply_text):
                    found[name] = None
                return number + 1
            found[name] = DeclaredQueue(ready_jobs=answer[1], consumers=answer[2])
        return len(names)

    def _open(self) -> None:
        if self._amqp is not None:
            return
        address = address_of(self._connection)
        trusted: Any = False
        if address.is_tls:
            context = {"purpose": ssl.Purpose.SERVER_AUTH, "cafile": self._connection.ca_file, "check_hostname": True}
            trusted = {"context": context, "server_hostname": address.host}
        self._amqp = amqp.Connection(
            host=f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}",
            userid=address.user,
            password=address.password,
            login_method="PLAIN",
            virtual_host=address.vhost,
            ssl=trusted,
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=ANSWER_TIMEOUT_S,
            write_timeout=ANSWER_TIMEOUT_S,
            client_properties={"connection_name": "headway-collect", "product": "headway-collect"},
        )
        with ended_after(ANSWER_TIMEOUT_S, self._socket):
            self._amqp.connect()
            self._channel = self._amqp.channel()

    def _socket(self) -> Any:
        return getattr(getattr(self._amqp, "_transport", None), "sock", None)

    def _unavailable(self, error: Exception) -> Unavailable:
        broker = f"broker {self._connection.shown_url}"
        if isinstance(error, amqp.AccessRefused):
            return LoginRefused(f"{broker} refuses the login ({error.reply_text}): check its user and password")
        if isinstance(error, amqp.NotAllowed):
            return Unavailable(f"{broker} refuses the virtual host ({error.reply_text}): check the end of url")
        kind = Untrusted if isinstance(error, ssl.SSLCertVerificationError) else Unavailable
        return kind(f"{broker} cannot be reached ({error}): check its URL and that it runs")


def _declare(channel: int, name: str) -> bytes:
    """The frame of one passive declare, without a client's work for each: 30 times as fast."""
    named = name.encode(errors="surrogatepass")[:NAME_BYTES_MAX]
    size = 7 + len(named) + len(PASSIVE_ONLY) + len(NO_ARGUMENTS)
    head = FRAME_HEAD.pack(METHOD_FRAME, channel, size, *amqp.spec.Queue.Declare, 0, len(named))
    return b"".join((head, named, PASSIVE_ONLY, NO_ARGUMENTS, FRAME_END))
