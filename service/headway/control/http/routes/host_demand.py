"""Hosts that are missing, for whoever adds and removes hosts."""

from headway.control.http.dependencies import WithContext, operations
from headway.control.http.problems import declared
from headway.control.http.schemas.host_demand_responses import HostsWantedOut
from headway.control.http.schemas.schema_base import Given
from headway.store.engine import transaction
from headway.store.pools.host_demand import read_hosts_wanted

router = operations(prefix="/v1/hosts", tags=["hosts"])


class WantedOut(Given):
    """Hosts that are missing; empty where they are as many as it takes."""

    at_s: float
    wanted: list[HostsWantedOut]


@router.get("/wanted", summary="Read how many hosts are missing", responses=declared())
async def hosts_wanted(context: WithContext) -> WantedOut:
    """How many hosts more would be right at this moment, why, and for how long it has been so."""
    async with transaction(context.engine) as conn:
        wanted = await read_hosts_wanted(conn)
    return WantedOut(at_s=context.clock(), wanted=[HostsWantedOut.of(each) for each in wanted])
