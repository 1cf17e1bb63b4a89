"""How much this control plane takes of what others may name at will. Each field has a setting of its name."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from headway.errors import Invalid

BIGINT_MAX = 2**63 - 1  # as Postgres has it
THREAD_BYTES = 64 * 1024  # reading more takes milliseconds, which evaluations and polls should not wait for
BREACHES_MAX = 10  # what is wrong throughout gets one line about it
TEXT_CHARS_MAX = 500  # of a name that others choose: Postgres indexes keys of up to 2,700 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The most of each: of one token or host, and of all."""

    queues_per_token_max: int = 5_000
    queues_max: int = 10_000
    """Beside those that profiles name. So many are benchmarked."""
    producers_per_token_max: int = 2_000
    producers_max: int = 10_000
    queues_per_profile_max: int = 1_000
    """A pool of so many is decided in milliseconds; changing one with 90,000 stopped everything for seconds."""
    hosts_max: int = 20_000
    workers_max: int = 200_000
    """Of all hosts. Where there are so many, a host still has its share; ten times what is benchmarked."""
    workers_per_host_max: int = 2_000
    templates_per_host_max: int = 200
    labels_max: int = 50
    """Of a host, and of each of its templates."""
    start_ups_per_report_max: int = 1_000
    """And exits; of more the newest are taken."""
    http_connections_max: int = 1_000
    grpc_connections_max: int = 20_000
    grpc_calls_per_connection_max: int = 1_000
    """At once. An agent has two; a proxy may pass on those of many hosts over one connection."""
    viewers_max: int = 200
    """At `/v1/events`."""
    viewers_per_token_max: int = 50
    """A team with one token, and a quarter of all. Where all show HEADWAY_TOKEN, or nothing: from one address."""
    metrics_series_max: int = 100_000
    """In one answer of `/metrics`."""


DEFAULT = Bounds()


def refuse(breaches: Iterable[str]) -> None:
    """Return if there are no ``breaches``. Raises ``Invalid`` with the first ``BREACHES_MAX``; no others are made."""
    found = list(islice(breaches, BREACHES_MAX))
    if found:
        raise Invalid(*found)
