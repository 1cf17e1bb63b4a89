"""Names of pools as people give them: tables and the dashboard also show those of queues."""

from headway.cli.api_client import connected
from headway.errors import NotFound


def check_pool_name(name: str, command: str) -> None:
    """Refuse the name of a queue, which has a slash, with the name of its pool for ``command``."""
    if "/" not in name:
        return
    with connected() as api:
        profiles = api.get("/v1/profiles")["profiles"]
    pool = next((row["pool"] for row in profiles if name in row["profile"]["queues"]), None)
    if pool is None:
        raise NotFound(f"{name!r} is no pool, and no pool has a queue of that name: see `headway get pools`")
    raise NotFound(f"{name} is a queue of pool {pool}: headway {command} {pool}")
