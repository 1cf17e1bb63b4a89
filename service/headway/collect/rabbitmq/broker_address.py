"""Where a RabbitMQ is, by a connection's URL: read as kombu reads it, so that an application's own URL serves."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from headway.connections import Connection
from headway.errors import Misconfigured

SCHEMES = ("amqp", "amqps", "pyamqp")
PORT, TLS_PORT = 5672, 5671
MANAGEMENT_PORT, MANAGEMENT_TLS_PORT = 15672, 15671


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAddress:
    """Host, login and virtual host of a broker, and where its management API is."""

    host: str
    port: int
    is_tls: bool
    vhost: str
    user: str
    password: str = field(repr=False)
    management_url: str
    """Without a path behind it: ``http://HOST:PORT`` or ``https://…``, and the path prefix, if any."""


def refusals(connection: Connection) -> Iterator[str]:
    """What of a connection to a RabbitMQ cannot be done, a sentence each."""
    if ";" in connection.url or "," in urlsplit(connection.url).netloc.rpartition("@")[2]:
        yield "several brokers in url: expected one host, which may be a load balancer's name"
    elif not urlsplit(connection.url).hostname:
        yield f"broker URL {connection.shown_url!r}: expected amqp://USER@HOST:PORT/VHOST or amqps://…"
    if connection.prefix is not None:
        yield "prefix: RabbitMQ has none; name the virtual host at the end of url"
    is_tls = connection.scheme == "amqps" or (connection.management_url or "").startswith("https://")
    if connection.ca_file is not None and not is_tls:
        yield "ca_file needs a URL that begins with amqps://, or a management_url that begins with https://"


def address_of(connection: Connection) -> BrokerAddress:
    """The broker of ``connection``, with the password as its file has it now.

    Raises:
        Misconfigured: the URL cannot be one, or the password's file cannot be read.
    """
    refused = "; ".join(refusals(connection))
    if refused:
        raise Misconfigured(refused)
    parts = urlsplit(connection.url)
    is_tls = parts.scheme == "amqps"
    host = parts.hostname or ""
    shown_host = f"[{host}]" if ":" in host else host
    scheme, port = ("https", MANAGEMENT_TLS_PORT) if is_tls else ("http", MANAGEMENT_PORT)
    password = connection.password()
    return BrokerAddress(
        host=host,
        port=parts.port or (TLS_PORT if is_tls else PORT),
        is_tls=is_tls,
        vhost=unquote(parts.path[1:]) or "/",
        user=unquote(parts.username or "guest"),
        password=unquote(parts.password or "guest") if password is None else password,
        management_url=(connection.management_url or f"{scheme}://{shown_host}:{port}").rstrip("/"),
    )
