"""What people set of hosts: cordoned, draining, serving again, forgotten; and hosts that are missing."""

from fastapi import Request, Response

from headway.control.http.dependencies import ApiContext, NamePath, WithContext, body_of, model_of, operations, taking
from headway.control.http.problems import declared
from headway.control.http.schemas.host_bodies import CordonBody, ReasonBody
from headway.control.http.schemas.responses import HostOut, HostsWantedOut
from headway.control.http.schemas.schema_base import Given
from headway.errors import Conflict, Invalid, NotFound
from headway.scaling.model import HostState
from headway.store.engine import snapshot, transaction
from headway.store.hosts import host_lifecycle
from headway.store.overview import read_hosts
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


@router.post("/{host}/cordon", summary="Give a host nothing new", **taking(CordonBody, NotFound))
async def cordon_host(host: NamePath, context: WithContext, request: Request) -> HostOut:
    """Keep what the host runs and give it nothing new, for a while or until it is uncordoned."""
    return await _shut(context, host, HostState.CORDONED, request)


@router.post("/{host}/drain", summary="Empty a host", **taking(CordonBody, NotFound))
async def drain_host(host: NamePath, context: WithContext, request: Request) -> HostOut:
    """Place the host's workers elsewhere; each leaves, with its own drain, when what replaces it runs.

    The host serves again when the time is over that the body gives, or when it is uncordoned.
    """
    return await _shut(context, host, HostState.DRAINING, request)


@router.post("/{host}/uncordon", summary="Let a host serve again", responses=declared(Invalid, NotFound))
async def uncordon_host(host: NamePath, context: WithContext) -> HostOut:
    """End a cordon or a drain. Where there is none, nothing changes."""
    return await _set(context, host, HostState.SERVING)


@router.post(
    "/{host}/forget", summary="Forget a host that is gone", status_code=204, **taking(ReasonBody, NotFound, Conflict)
)
async def forget_host(host: NamePath, context: WithContext, request: Request) -> Response:
    """Wait no longer for what a silent host may run. Refused while it reports; one that comes back enrols anew."""
    reason = await body_of(request, lambda body: model_of(ReasonBody, body).reason)
    async with transaction(context.engine) as conn:
        await host_lifecycle.forget_host(conn, host, reason=reason, actor=context.actor)
    return Response(status_code=204)


async def _shut(context: ApiContext, name: str, state: HostState, request: Request) -> HostOut:
    now_s = context.clock()

    def read(body: bytes) -> tuple[str, float | None]:
        said = model_of(CordonBody, body)
        return said.reason, said.ends_s(now_s=now_s)

    reason, until_s = await body_of(request, read)
    return await _set(context, name, state, reason=reason, until_s=until_s)


async def _set(
    context: ApiContext, name: str, state: HostState, *, reason: str | None = None, until_s: float | None = None
) -> HostOut:
    async with transaction(context.engine) as conn:
        await host_lifecycle.set_host_state(conn, name, state, reason=reason, until_s=until_s, actor=context.actor)
    # Read by itself: the host's row would be locked for as long as that takes, and its reports would wait.
    async with snapshot(context.engine) as conn:
        found = next((HostOut.of(row) for row in await read_hosts(conn) if row.host.name == name), None)
    if found is None:
        raise NotFound(f"host {name!r} was forgotten meanwhile")
    return found
