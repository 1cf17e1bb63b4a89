"""What people do to pools beside their profiles: a count for a while, a pause, a restart. None needs a version."""

from fastapi import Request

from headway.control.http.dependencies import PoolPath, WithContext, body_of, model_of, operations, taking
from headway.control.http.overview.profile_views import shown
from headway.control.http.problems import declared
from headway.control.http.schemas.host_bodies import ReasonBody
from headway.control.http.schemas.profile_bodies import PauseBody, SetOverrideBody
from headway.control.http.schemas.responses import ProfileOut
from headway.control.http.schemas.schema_base import Given
from headway.errors import Invalid, NotFound
from headway.store.engine import transaction
from headway.store.pools import overrides, restarts
from headway.store.pools.restarts import Restart

router = operations(prefix="/v1/pools", tags=["profiles"])


class RestartOut(Given):
    """How far the newest restart of a pool is, by what its hosts reported last."""

    pool: str
    restart_generation: int
    """Grows with each restart; 0: the pool was never restarted."""
    renewed_workers: int
    """Running, and started since."""
    outdated_workers: int
    """Yet to be replaced."""
    awaited_workers: int
    """Of a pinned pool: ended, their replacements yet to run. The restart is through once these and the above are 0."""
    silent_workers: int
    """On silent hosts, as far as is known: yet to be replaced once these are back."""

    @classmethod
    def of(cls, restart: Restart) -> "RestartOut":
        """The restart as it is given."""
        return cls.taken_from(restart, restart.progress)


@router.put("/{pool}/override", summary="Set a pool's workers for a while", **taking(SetOverrideBody, NotFound))
async def set_override(pool: PoolPath, context: WithContext, request: Request) -> ProfileOut:
    """Set the count of a pool's workers by hand until it expires; a later one takes its place."""
    now_s = context.clock()
    wanted = await body_of(request, lambda body: model_of(SetOverrideBody, body).value(now_s=now_s))
    async with transaction(context.engine) as conn:
        return await shown(conn, await overrides.set_override(conn, pool, wanted, actor=context.actor), now_s=now_s)


@router.delete(
    "/{pool}/override", summary="Leave a pool's workers to deciding again", responses=declared(Invalid, NotFound)
)
async def end_override(pool: PoolPath, context: WithContext) -> ProfileOut:
    """End an override before it expires. Where there is none, nothing changes."""
    async with transaction(context.engine) as conn:
        stored = await overrides.set_override(conn, pool, None, actor=context.actor)
        return await shown(conn, stored, now_s=context.clock())


@router.put("/{pool}/pause", summary="Pause a pool", **taking(PauseBody, NotFound))
async def pause_pool(pool: PoolPath, context: WithContext, request: Request) -> ProfileOut:
    """Keep a pool's last target, in both directions or in one, whatever its profile's mode says, for a while or not.

    A later pause takes the place of an earlier one, its reason and end included.
    """
    now_s = context.clock()
    wanted = await body_of(request, lambda body: model_of(PauseBody, body or b"{}").value(now_s=now_s))
    async with transaction(context.engine) as conn:
        return await shown(conn, await overrides.set_pause(conn, pool, wanted, actor=context.actor), now_s=now_s)


@router.delete("/{pool}/pause", summary="Resume a pool", responses=declared(Invalid, NotFound))
async def resume_pool(pool: PoolPath, context: WithContext) -> ProfileOut:
    """Let a pool go by its profile's mode again. Where it is not paused by hand, nothing changes."""
    async with transaction(context.engine) as conn:
        stored = await overrides.set_pause(conn, pool, None, actor=context.actor)
        return await shown(conn, stored, now_s=context.clock())


@router.post("/{pool}/restart", summary="Replace a pool's workers", **taking(ReasonBody, NotFound))
async def restart_pool(pool: PoolPath, context: WithContext, request: Request) -> RestartOut:
    """Replace every worker, one by one on a host and host by host; an old one leaves when its replacement runs."""
    reason = await body_of(request, lambda body: model_of(ReasonBody, body).reason)
    async with transaction(context.engine) as conn:
        return RestartOut.of(await restarts.restart_pool(conn, pool, reason=reason, actor=context.actor))


@router.get("/{pool}/restart", summary="Read how far a restart is", responses=declared(Invalid, NotFound))
async def get_restart(pool: PoolPath, context: WithContext) -> RestartOut:
    """How far the newest restart of a pool is."""
    async with transaction(context.engine) as conn:
        return RestartOut.of(await restarts.read_restart(conn, pool))
