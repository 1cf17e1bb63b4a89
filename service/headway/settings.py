"""The environment, read once at the root into one frozen value a role. Only ``cli`` imports this module.

Flags of the command line are laid over the environment before it is read, under the same names.
"""

import ipaddress
import math
import re
import socket
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.connection_tables import connections_from
from headway.connections import Connection
from headway.environment import HTTP_ADDRESS, ClientTls, EnvironmentReader, reading
from headway.errors import Misconfigured

GRPC_ADDRESS = "127.0.0.1:8461"
DATA_DIR = ".headway"
_IS_TOML = re.compile(r"""^\s*(\[|[\w"'-]+\s*=\s*["'{\[])""", re.MULTILINE)
TOKEN_BITS_MIN = 64  # 16 characters drawn from 16; at a million guesses a second half a million years
BOUNDS: Mapping[str, tuple[str, int]] = {
    "HEADWAY_QUEUES": ("queues_max", 10_000),
    "HEADWAY_QUEUES_PER_TOKEN": ("queues_per_token_max", 5_000),
    "HEADWAY_PRODUCERS": ("producers_max", 10_000),
    "HEADWAY_PRODUCERS_PER_TOKEN": ("producers_per_token_max", 2_000),
    "HEADWAY_QUEUES_PER_PROFILE": ("queues_per_profile_max", 1_000),
    "HEADWAY_HOSTS": ("hosts_max", 20_000),
    "HEADWAY_WORKERS": ("workers_max", 200_000),
    "HEADWAY_WORKERS_PER_HOST": ("workers_per_host_max", 2_000),
    "HEADWAY_TEMPLATES_PER_HOST": ("templates_per_host_max", 200),
    "HEADWAY_LABELS": ("labels_max", 50),
    "HEADWAY_START_UPS_PER_REPORT": ("start_ups_per_report_max", 1_000),
    "HEADWAY_HTTP_CONNECTIONS": ("http_connections_max", 1_000),
    "HEADWAY_GRPC_CONNECTIONS": ("grpc_connections_max", 20_000),
    "HEADWAY_GRPC_CALLS_PER_CONNECTION": ("grpc_calls_per_connection_max", 1_000),
    "HEADWAY_VIEWERS": ("viewers_max", 200),
    "HEADWAY_VIEWERS_PER_TOKEN": ("viewers_per_token_max", 50),
    "HEADWAY_METRICS_SERIES": ("metrics_series_max", 100_000),
}
"""Setting -> the bound that it sets, and its default."""


ConnectionCheck = Callable[[Iterable[Connection]], list[str]]
"""A sentence for each thing that is wrong with connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A host and a port to bind or to call. Port 0 binds any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """The files of the certificate that both servers show. With ``client_ca``, the gRPC server asks for one, too."""

    certificate: Path
    key: Path
    client_ca: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSettings:
    """What a control plane needs."""

    database_url: str
    event_log: Path
    unread_files_max: int
    unread_gb_max: float
    http: Address
    grpc: Address
    token: str | None
    tls: ServerTls | None
    bounds: Mapping[str, int] = field(default_factory=dict)
    """Name of a bound of ``headway.control.bounds`` -> its value."""
    recommends_only: bool = False
    """Whether it decides and starts and stops nothing, whatever profiles say; agents are not served."""
    notifications: Path | None = None
    """The TOML file of who is notified of incidents."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "ControlSettings":
        """The settings in ``env``.

        Raises:
            Invalid: with every value that is missing or wrong.
            Misconfigured: a listener would be open to the network without a token, or without TLS.
        """
        with reading(_RoleReader(env)) as read:
            settings = cls(
                database_url=read.text("HEADWAY_DATABASE_URL", needed_for="where Postgres is"),
                event_log=read.path("HEADWAY_EVENT_LOG", f"{DATA_DIR}/events"),
                unread_files_max=math.ceil(read.positive("HEADWAY_UNREAD_FILES", 100_000.0)),
                unread_gb_max=read.positive("HEADWAY_UNREAD_GB", 2.0),
                http=read.address("HEADWAY_HTTP_ADDRESS", HTTP_ADDRESS),
                grpc=read.address("HEADWAY_GRPC_ADDRESS", GRPC_ADDRESS),
                token=read.token(),
                tls=read.server_tls(),
                bounds={name: read.count(setting, default) for setting, (name, default) in BOUNDS.items()},
                recommends_only=read.one_of("HEADWAY_RECOMMEND_ONLY", ("no", "yes")) == "yes",
                notifications=read.file("HEADWAY_NOTIFICATIONS"),
            )
            if settings.token is not None and (bits := _bits(settings.token)) < TOKEN_BITS_MIN:
                read.refuse(
                    f"HEADWAY_TOKEN can be guessed: it has {bits:.0f} bits at most, and {TOKEN_BITS_MIN} are needed; "
                    "`openssl rand -hex 32` makes one"
                )
            is_elsewhere = read.one_of("HEADWAY_TLS", ("here", "elsewhere")) == "elsewhere"
        for name, address in (("HEADWAY_HTTP_ADDRESS", settings.http), ("HEADWAY_GRPC_ADDRESS", settings.grpc)):
            if address.is_loopback:
                continue
            if settings.token is None:
                raise Misconfigured(
                    f"{name}={address} can be reached from other machines: set HEADWAY_TOKEN_FILE, "
                    "whose token every request then carries, or bind 127.0.0.1"
                )
            if settings.tls is None and not is_elsewhere:
                raise Misconfigured(
                    f"{name}={address} can be reached from other machines, and tokens would cross the network for "
                    "all to read: set HEADWAY_TLS_CERT and HEADWAY_TLS_KEY (`headway keys` makes them), or "
                    "HEADWAY_TLS=elsewhere where a proxy, a VPN or a network of its own sees to that, or bind 127.0.0.1"
                )
        return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """What the Spark pipeline needs."""

    database_url: str
    event_log: Path
    checkpoint: Path | str
    """A folder, or the URI of one in object storage."""
    work_dir: Path
    archive_days: float
    archive_gb: float
    heap_mb: int
    packages: str
    """Maven coordinates that Spark fetches when it starts, separated by commas."""
    is_rebuilt_unasked: bool
    source: str
    kafka_servers: str
    kafka_topic: str
    time_zone: str
    """Whose hours of the week are learned."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "PipelineSettings":
        """The settings in ``env``. Raises ``Invalid`` with every value that is missing or wrong."""
        with reading(_RoleReader(env)) as read:
            settings = cls(
                database_url=read.text("HEADWAY_DATABASE_URL", needed_for="where Postgres is"),
                event_log=read.path("HEADWAY_EVENT_LOG", f"{DATA_DIR}/events"),
                checkpoint=read.path_or_uri("HEADWAY_CHECKPOINT", f"{DATA_DIR}/checkpoint"),
                work_dir=read.path("HEADWAY_STATE_DIR", f"{DATA_DIR}/pipeline"),
                archive_days=read.positive("HEADWAY_ARCHIVE_DAYS", 14.0),
                archive_gb=read.positive("HEADWAY_ARCHIVE_GB", 20.0),
                heap_mb=math.ceil(read.positive("HEADWAY_SPARK_HEAP_MB", 768.0)),
                packages=env.get("HEADWAY_SPARK_PACKAGES", ""),
                is_rebuilt_unasked=read.one_of("HEADWAY_REBUILD", ("ask", "auto")) == "auto",
                source=read.one_of("HEADWAY_SOURCE", ("files", "kafka")),
                kafka_servers=env.get("HEADWAY_KAFKA_SERVERS", ""),
                kafka_topic=env.get("HEADWAY_KAFKA_TOPIC", ""),
                time_zone=env.get("HEADWAY_TIME_ZONE") or "UTC",
            )
            for name, value in (
                ("HEADWAY_KAFKA_SERVERS", settings.kafka_servers),
                ("HEADWAY_KAFKA_TOPIC", settings.kafka_topic),
            ):
                if settings.source == "kafka" and not value:
                    read.refuse(f"{name} is not set: HEADWAY_SOURCE=kafka reads its events there")
            if settings.source == "files" and isinstance(settings.checkpoint, str):
                read.refuse(
                    f"HEADWAY_CHECKPOINT={settings.checkpoint} is no folder: what the stream has read of the event "
                    "log's files is kept and moved by it; object storage will do with HEADWAY_SOURCE=kafka"
                )
            return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """What the agent of one host needs."""

    control: tuple[str, ...]
    """Where control planes are called, at least one."""
    host_file: Path
    state_dir: Path
    host_name: str
    token: str | None = field(repr=False)
    join_token: str | None = field(repr=False)
    join_token_file: Path | None
    tls: ClientTls | None

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "AgentSettings":
        """The settings in ``env``. Raises ``Invalid`` with every value that is missing or wrong."""
        with reading(_RoleReader(env)) as read:
            return cls(
                control=read.addresses("HEADWAY_CONTROL", GRPC_ADDRESS),
                host_file=read.path("HEADWAY_HOST_FILE", "host.toml"),
                state_dir=read.path("HEADWAY_STATE_DIR", f"{DATA_DIR}/agent"),
                host_name=env.get("HEADWAY_HOST_NAME") or socket.gethostname(),
                token=read.token(),
                join_token=env.get("HEADWAY_JOIN_TOKEN") or None,
                join_token_file=read.file("HEADWAY_JOIN_TOKEN_FILE"),
                tls=read.client_tls(),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectSettings:
    """What the collectors need."""

    control: tuple[str, ...]
    """Where control planes are called, at least one."""
    connections: tuple[Connection, ...]
    state_dir: Path
    token: str | None
    tls: ClientTls | None

    @classmethod
    def from_env(cls, env: Mapping[str, str], *, check: ConnectionCheck = lambda _: []) -> "CollectSettings":
        """The settings in ``env``. Raises ``Invalid`` with every value that is missing or wrong.

        ``check`` says what else is wrong with connections: which libraries there are is not known here.
        """
        with reading(_RoleReader(env)) as read:
            return cls(
                control=read.addresses("HEADWAY_CONTROL", GRPC_ADDRESS),
                connections=read.connections(check),
                state_dir=read.path("HEADWAY_STATE_DIR", f"{DATA_DIR}/collect"),
                token=read.token(),
                tls=read.client_tls(),
            )


def database_url_of(env: Mapping[str, str]) -> str | None:
    """Where ``env`` places Postgres, itself or by a file; ``None``: nowhere. Raises ``Invalid``."""
    with reading(_RoleReader(env)) as read:
        return read.secret("HEADWAY_DATABASE_URL", holds="where Postgres is")


def _bits(token: str) -> float:
    """The most that somebody has to guess of ``token``: its length times what its alphabet is good for."""
    return len(token) * math.log2(len(set(token)))


class _RoleReader(EnvironmentReader):
    """Reads also what only a role is given: addresses to bind and to call, its certificate, connections."""

    def server_tls(self) -> ServerTls | None:
        certificate, key = self.pair()
        client_ca = self.file("HEADWAY_TLS_CLIENT_CA")
        if certificate is None or key is None:
            if client_ca is not None:
                self.refuse("HEADWAY_TLS_CLIENT_CA without HEADWAY_TLS_CERT: who asks for certificates shows one")
            return None
        return ServerTls(certificate=certificate, key=key, client_ca=client_ca)

    def address(self, name: str, default: str) -> Address:
        return self._address(name, self._env.get(name) or default, default)

    def addresses(self, name: str, default: str) -> tuple[str, ...]:
        words = [word.strip() for word in (self._env.get(name) or default).split(",")]
        # One named twice is called no more often than another.
        return tuple(dict.fromkeys(str(self._address(name, word, default)) for word in words))

    def _address(self, name: str, value: str, default: str) -> Address:
        host, _, port = value.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            self.breaches.append(f"{name}={value!r}: expected HOST:PORT, as in {default}")
            return Address(host="127.0.0.1", port=0)
        return Address(host=host.strip("[]"), port=int(port))

    def connections(self, check: ConnectionCheck) -> tuple[Connection, ...]:
        value = self.secret("HEADWAY_BROKERS", holds="which brokers to read, as NAME=URL, one a line, or as TOML") or ""
        if not value and not self._env.get("HEADWAY_BROKERS_FILE"):
            self.breaches.append("HEADWAY_BROKERS is not set: it says which brokers to read, as NAME=URL,…")
        connections = connections_from(self._brokers(value), self.breaches, where="HEADWAY_BROKERS")
        self.breaches += check(connections)
        return connections

    def _brokers(self, value: str) -> Mapping[str, Any]:
        """Connection name -> URL or table. No message repeats what may hold a password."""
        try:
            return tomllib.loads(value)
        except tomllib.TOMLDecodeError as error:
            if _IS_TOML.search(value):
                self.breaches.append(f"HEADWAY_BROKERS is no TOML: {error}")
                return {}
        brokers: dict[str, str] = {}
        pieces = list(filter(None, (piece.strip() for line in value.splitlines() for piece in line.split(","))))
        for number, part in enumerate(pieces, 1):
            name, separator, url = part.partition("=")
            if not separator or set(name) & set("/@:") or not name or "://" not in url:
                self.breaches.append(
                    f"HEADWAY_BROKERS: number {number} of {len(pieces)} is not NAME=URL, as in "
                    "redis=redis://127.0.0.1:6379/0 (it may hold a password and is not repeated here)"
                )
            elif name in brokers:
                self.breaches.append(f"HEADWAY_BROKERS names the connection {name!r} twice")
            else:
                brokers[name] = url
        return brokers
