"""Groups: caps over several pools. A change names the version it was made for (If-Match, If-None-Match)."""

from collections.abc import Mapping, Sequence
from functools import partial

from fastapi import Request, Response, status

from headway.control.http.dependencies import NamePath, WithContext, body_of, mapping_of, operations, takes
from headway.control.http.preconditions import ETAG, DryRun, IfMatch, IfNoneMatch, etag_of, expected_of
from headway.control.http.problems import TooLarge, declared
from headway.control.http.schemas.group_bodies import GroupBody, GroupOut, GroupsOut
from headway.control.http.schemas.responses import ProfileChangeOut
from headway.errors import Conflict, Invalid, NotFound
from headway.scaling.group import Group, conflicts_of, group_from_mapping, group_to_mapping
from headway.scaling.profile import Profile
from headway.store.engine import Connection, transaction
from headway.store.hosts.hosts import load_hosts
from headway.store.pools import groups
from headway.store.pools.groups import StoredGroup
from headway.store.pools.profiles import list_profiles, one_change_at_a_time
from headway.store.pools.versions import StaleVersion, VersionUnstated

router = operations(prefix="/v1/groups", tags=["profiles"])


@router.get("", summary="List groups", responses=declared())
async def list_groups(context: WithContext) -> GroupsOut:
    """Every cap over several pools, by name, and what is used of it."""
    async with transaction(context.engine) as conn:
        stored = await groups.list_groups(conn)
        return GroupsOut(groups=await _shown(conn, stored, await _profiles(conn, now_s=context.clock())))


@router.get("/{name}", summary="Read a group", responses={**declared(Invalid, NotFound), 200: {"headers": ETAG}})
async def get_group(name: NamePath, context: WithContext, response: Response) -> GroupOut:
    """A cap over several pools. Its version is the ETag."""
    async with transaction(context.engine) as conn:
        stored = await groups.get_group(conn, name)
        (answer,) = await _shown(conn, [stored], await _profiles(conn, now_s=context.clock()))
    response.headers["ETag"] = etag_of(answer.version)
    return answer


@router.put(
    "/{name}",
    summary="Create or update a group",
    responses={
        **declared(Invalid, Conflict, StaleVersion, VersionUnstated, TooLarge),
        200: {"headers": ETAG},
        201: {"headers": ETAG, "model": GroupOut, "description": "Created"},
    },
    openapi_extra=takes(GroupBody),
)
async def put_group(
    name: NamePath,
    context: WithContext,
    request: Request,
    response: Response,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    *,
    dry_run: DryRun = False,
) -> GroupOut:
    """Create or update a cap over several pools.

    Updating needs If-Match. The same group again changes nothing and keeps its version. A dry run answers as the same
    request would, with the keys that it would change, and changes nothing.
    """
    expected = expected_of(if_match, if_none_match, what="group")
    group = await body_of(request, partial(_group, name))
    async with transaction(context.engine) as conn:
        await one_change_at_a_time(conn)
        profiles = await _profiles(conn, now_s=context.clock())
        before = await groups.find_group(conn, name)
        stored, outcome = await groups.put_group(conn, group, profiles, expected=expected, actor=context.actor)
        (answer,) = await _shown(conn, [stored], profiles)
        if dry_run:
            await conn.rollback()
    if before is not None:
        answer.changes = _changes(before.group, group)
    response.headers["ETag"] = etag_of(answer.version)
    if outcome == "created":
        response.status_code = status.HTTP_201_CREATED
    return answer


@router.delete(
    "/{name}",
    summary="Delete a group",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=declared(Invalid, NotFound, StaleVersion, VersionUnstated),
)
async def delete_group(name: NamePath, context: WithContext, if_match: IfMatch = None) -> None:
    """Remove a cap over several pools. Their profiles stay as they are."""
    async with transaction(context.engine) as conn:
        await one_change_at_a_time(conn)
        expected = expected_of(if_match, None, what="group")
        await groups.delete_group(conn, name, expected=expected, actor=context.actor)


async def _profiles(conn: Connection, *, now_s: float) -> dict[str, Profile]:
    return {each.profile.pool: each.in_force_at(now_s) for each in await list_profiles(conn)}


async def _shown(conn: Connection, every: Sequence[StoredGroup], profiles: Mapping[str, Profile]) -> list[GroupOut]:
    hosts = await load_hosts(conn) if every else ()
    return [GroupOut.of(stored, hosts, notes=conflicts_of(stored.group, profiles)) for stored in every]


def _group(name: str, body: bytes) -> Group:
    return group_from_mapping(name, mapping_of(body))


def _changes(before: Group, after: Group) -> list[ProfileChangeOut]:
    old, new = group_to_mapping(before), group_to_mapping(after)
    return [
        ProfileChangeOut(key=key, before=old.get(key), after=new.get(key))
        for key in dict.fromkeys([*new, *old])
        if old.get(key) != new.get(key)
    ]
