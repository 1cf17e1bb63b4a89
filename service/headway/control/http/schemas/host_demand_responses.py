"""Hosts that are missing or spare, as the HTTP API gives them."""

from collections.abc import Mapping

from headway.control.http.schemas.schema_base import Given
from headway.scaling.allocation.host_demand import HostsWanted, Sign


class HostsWantedOut(Given):
    """What is missing or spare of one sort of host."""

    sign: Sign
    """`missing`: workers have no place; `spare`: without these hosts all would still have one."""
    hosts: int | None
    """So many of the typical size; null where no host that could run it was ever seen."""
    workers: int
    """Those that have no place; 0 of spare hosts."""
    labels: Mapping[str, str]
    """What the pools ask of a host."""
    templates: list[str]
    """What such a host must have in its `host.toml`."""
    pools: list[str]
    host_names: list[str]
    """Spare hosts: those with the least on them. Drain one before it goes."""
    since_s: float
    """Since when something of this sort has been missing, or spare, without a pause."""
    why: str

    @classmethod
    def of(cls, wanted: HostsWanted) -> "HostsWantedOut":
        """What is wanted, as it is given."""
        return cls.taken_from(wanted, why=why(wanted))


def why(wanted: HostsWanted) -> str:
    """The reason in one sentence."""
    if wanted.sign is Sign.SPARE:
        return f"without {', '.join(wanted.host_names)} every worker would still have a place"
    where = "".join(f" with {name}={value}" for name, value in sorted(wanted.labels.items()))
    workers = "1 worker" if wanted.workers == 1 else f"{wanted.workers} workers"
    asked = f"no capacity for {workers} of {', '.join(wanted.pools)} on a host{where}"
    if wanted.hosts is None:
        return f"{asked}, and no known host with template {', '.join(wanted.templates)} is large enough"
    return asked
