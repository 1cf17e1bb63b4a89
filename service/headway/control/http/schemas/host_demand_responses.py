"""Hosts that are missing, as the HTTP API gives them."""

from collections.abc import Mapping

from headway.control.http.schemas.schema_base import Given
from headway.scaling.allocation.host_demand import HostsWanted


class HostsWantedOut(Given):
    """Hosts of one sort that are missing."""

    hosts: int | None
    """So many of the typical size; null where no host that could run it was ever seen."""
    workers: int
    """Those that have no place."""
    labels: Mapping[str, str]
    """What the pools ask of a host."""
    templates: list[str]
    """What such a host must have in its `host.toml`."""
    pools: list[str]
    since_s: float
    """Since when hosts of this sort have been missing without a pause."""
    why: str

    @classmethod
    def of(cls, wanted: HostsWanted) -> "HostsWantedOut":
        """What is wanted, as it is given."""
        return cls.taken_from(wanted, why=why(wanted))


def why(wanted: HostsWanted) -> str:
    """The reason in one sentence."""
    where = "".join(f" with {name}={value}" for name, value in sorted(wanted.labels.items()))
    workers = "1 worker" if wanted.workers == 1 else f"{wanted.workers} workers"
    asked = f"no capacity for {workers} of {', '.join(wanted.pools)} on a host{where}"
    if wanted.hosts is None:
        return f"{asked}, and no known host with template {', '.join(wanted.templates)} is large enough"
    return asked
