"""Profiles: what people want of pools. A change names the version it was made for (If-Match, If-None-Match)."""

from functools import partial

from fastapi import Request, Response, status

from headway.control.bounds import Bounds
from headway.control.http.dependencies import PoolPath, WithContext, body_of, mapping_of, operations, takes
from headway.control.http.overview.profile_views import all_shown, shown
from headway.control.http.preconditions import ETAG, DryRun, IfMatch, IfNoneMatch, etag_of, expected_of
from headway.control.http.problems import TooLarge, declared
from headway.control.http.schemas.profile_bodies import ProfileBody, refuse_larger
from headway.control.http.schemas.responses import ProfileChangeOut, ProfileOut, ProfilesOut
from headway.errors import Conflict, Invalid, NotFound
from headway.scaling.mapping import to_mapping
from headway.scaling.model import Mode
from headway.scaling.profile import Profile, profile_from_mapping
from headway.scaling.profile_changes import changes
from headway.scaling.profile_keys.queue_patterns import refuse_unsound_patterns
from headway.store.engine import transaction
from headway.store.pools import profiles
from headway.store.pools.versions import StaleVersion, VersionUnstated
from headway.strategies import refuse_unknown, refuse_unread_forecast
from headway.zones import refuse_unknown_zones

router = operations(prefix="/v1/profiles", tags=["profiles"])


@router.get("", summary="List profiles", responses=declared())
async def list_profiles(context: WithContext) -> ProfilesOut:
    """Every profile, by pool."""
    async with transaction(context.engine) as conn:
        return ProfilesOut(profiles=await all_shown(conn, await profiles.list_profiles(conn), now_s=context.clock()))


@router.get(
    "/{pool}",
    summary="Read a profile",
    responses={**declared(Invalid, NotFound), 200: {"headers": ETAG}},
)
async def get_profile(pool: PoolPath, context: WithContext, response: Response) -> ProfileOut:
    """The profile of a pool. Its version is the ETag."""
    async with transaction(context.engine) as conn:
        answer = await shown(conn, await profiles.get_profile(conn, pool), now_s=context.clock())
    response.headers["ETag"] = etag_of(answer.version)
    return answer


@router.put(
    "/{pool}",
    summary="Create or update a profile",
    responses={
        **declared(Invalid, Conflict, StaleVersion, VersionUnstated, TooLarge),
        200: {"headers": ETAG},
        201: {"headers": ETAG, "model": ProfileOut, "description": "Created"},
    },
    openapi_extra=takes(ProfileBody),
)
async def put_profile(
    pool: PoolPath,
    context: WithContext,
    request: Request,
    response: Response,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    *,
    dry_run: DryRun = False,
) -> ProfileOut:
    """Create or update the profile of a pool.

    Updating needs If-Match. The same profile again changes nothing and keeps its version. A dry run answers as the same
    request would, with the keys that it would change, and changes nothing.
    """
    expected = expected_of(if_match, if_none_match, what="profile")
    profile = await body_of(request, partial(_profile, pool, context.bounds))
    if context.recommends_only and profile.mode is not Mode.RECOMMEND:
        raise Conflict(
            f"profile {pool!r}: mode {profile.mode.value} is refused, because this control plane only recommends: "
            "write `mode: recommend`, or run `headway up` without --recommend-only"
        )
    refuse_unknown(profile, context.strategies)
    refuse_unread_forecast(profile)
    refuse_unsound_patterns(profile)
    refuse_unknown_zones(profile)
    async with transaction(context.engine) as conn:
        before = await profiles.find_profile(conn, pool)
        stored, outcome = await profiles.put_profile(conn, profile, expected=expected, actor=context.actor)
        answer = await shown(conn, stored, now_s=context.clock())
        if dry_run:
            await conn.rollback()
    if before is not None:
        answer.changes = [ProfileChangeOut(**to_mapping(change)) for change in changes(before.written, profile)]
    response.headers["ETag"] = etag_of(answer.version)
    if outcome == "created":
        response.status_code = status.HTTP_201_CREATED
    return answer


@router.delete(
    "/{pool}",
    summary="Delete a profile",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=declared(Invalid, NotFound, StaleVersion, VersionUnstated),
)
async def delete_profile(pool: PoolPath, context: WithContext, if_match: IfMatch = None) -> None:
    """Remove the profile of a pool. Its workers are drained; its queues are seen on."""
    async with transaction(context.engine) as conn:
        await profiles.delete_profile(
            conn, pool, expected=expected_of(if_match, None, what="profile"), actor=context.actor
        )


def _profile(pool: str, bounds: Bounds, body: bytes) -> Profile:
    values = mapping_of(body)
    refuse_larger(pool, values, bounds)
    return profile_from_mapping(pool, values)
