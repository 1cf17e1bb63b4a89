"""Profiles: what people want of pools. A change names the version it was made for (If-Match, If-None-Match)."""

import re
from functools import partial
from typing import Annotated

from fastapi import Header, Query, Request, Response, status

from headway.control.bounds import Bounds
from headway.control.http.dependencies import PoolPath, WithContext, body_of, mapping_of, operations, takes
from headway.control.http.overview.profile_views import all_shown, shown
from headway.control.http.problems import TooLarge, declared
from headway.control.http.schemas.profile_bodies import ProfileBody, refuse_larger
from headway.control.http.schemas.responses import ProfileChangeOut, ProfileOut, ProfilesOut
from headway.errors import Conflict, Invalid, NotFound
from headway.scaling.mapping import to_mapping
from headway.scaling.model import Mode
from headway.scaling.profile import Profile, profile_from_mapping
from headway.scaling.profile_changes import changes
from headway.store.engine import transaction
from headway.store.pools import profiles
from headway.store.pools.versions import Expected, StaleVersion, VersionUnstated
from headway.strategies import refuse_unknown, refuse_unread_forecast
from headway.zones import refuse_unknown_zones

router = operations(prefix="/v1/profiles", tags=["profiles"])

ETAG = {"ETag": {"description": "The version, in quotes.", "schema": {"type": "string"}}}

IfMatch = Annotated[str | None, Header(description='The version that the change was made for: its ETag, as `"3"`.')]
DryRun = Annotated[bool, Query(description="Change nothing, and answer what would change.")]
IfNoneMatch = Annotated[str | None, Header(description="`*`: create it, and refuse where it exists.")]


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
    response.headers["ETag"] = _etag(answer.version)
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
    expected = _expected(if_match, if_none_match)
    profile = await body_of(request, partial(_profile, pool, context.bounds))
    if context.recommends_only and profile.mode is not Mode.RECOMMEND:
        raise Conflict(
            f"profile {pool!r}: mode {profile.mode.value} is refused, because this control plane only recommends: "
            "write `mode: recommend`, or run `headway up` without --recommend-only"
        )
    refuse_unknown(profile, context.strategies)
    refuse_unread_forecast(profile)
    refuse_unknown_zones(profile)
    async with transaction(context.engine) as conn:
        before = await profiles.find_profile(conn, pool)
        stored, outcome = await profiles.put_profile(conn, profile, expected=expected, actor=context.actor)
        answer = await shown(conn, stored, now_s=context.clock())
        if dry_run:
            await conn.rollback()
    if before is not None:
        answer.changes = [ProfileChangeOut(**to_mapping(change)) for change in changes(before.profile, profile)]
    response.headers["ETag"] = _etag(answer.version)
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
        await profiles.delete_profile(conn, pool, expected=_expected(if_match, None), actor=context.actor)


def _profile(pool: str, bounds: Bounds, body: bytes) -> Profile:
    values = mapping_of(body)
    refuse_larger(pool, values, bounds)
    return profile_from_mapping(pool, values)


def _etag(version: int) -> str:
    return f'"{version}"'


def _expected(if_match: str | None, if_none_match: str | None) -> Expected:
    if if_match is not None and if_none_match is not None:
        raise Invalid("If-Match and If-None-Match contradict each other: send one")
    if if_none_match is not None:
        if if_none_match.strip() != "*":
            raise Invalid(f"If-None-Match={if_none_match!r}: only * is taken, to create a profile that does not exist")
        return Expected(is_absent=True)
    if if_match is None:
        return Expected()
    version = re.fullmatch(r'\s*"(\d{1,18})"\s*', if_match)
    if version is None:
        raise Invalid(f'If-Match={if_match!r}: expected the ETag of a profile, as "3" with its quotes')
    return Expected(version=int(version[1]))
