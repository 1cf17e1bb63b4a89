"""Restarts of pools: every worker replaced, host by host."""

from fastapi import Request

from headway.control.http.dependencies import PoolPath, WithContext, body_of, model_of, operations, taking
from headway.control.http.problems import declared
from headway.control.http.schemas.host_bodies import ReasonBody
from headway.control.http.schemas.schema_base import Given
from headway.errors import Invalid, NotFound
from headway.store.engine import transaction
from headway.store.pools import restarts
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
