"""Caps over several pools: groups, their versions, and who changed them.

A change and its line in the audit log are one transaction, and every change names the version it was made for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Row, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Conflict, NotFound
from headway.scaling.group import Group, conflicts_of, group_to_mapping
from headway.scaling.mapping import from_mapping
from headway.scaling.profile import Profile
from headway.store.audit import record_act
from headway.store.engine import notify_viewers
from headway.store.pools.versions import Expected, require_version
from headway.store.tables import epoch_s, groups

Outcome = Literal["created", "updated", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGroup:
    """A group as it is stored. The version grows by one with each change."""

    group: Group
    version: int
    updated_at_s: float


async def list_groups(conn: AsyncConnection) -> list[StoredGroup]:
    """Every group, by name."""
    rows = await conn.execute(select(groups, _UPDATED_AT_S).order_by(groups.c.name))
    return [_stored(row) for row in rows]


async def get_group(conn: AsyncConnection, name: str) -> StoredGroup:
    """The group ``name``. Raises ``NotFound``."""
    stored = await find_group(conn, name)
    if stored is None:
        raise NotFound(f"no group {name!r}: `headway get groups` lists them")
    return stored


async def find_group(conn: AsyncConnection, name: str) -> StoredGroup | None:
    """The group ``name``; ``None`` if there is none."""
    row = (await conn.execute(select(groups, _UPDATED_AT_S).where(groups.c.name == name))).one_or_none()
    return None if row is None else _stored(row)


async def put_group(
    conn: AsyncConnection, group: Group, profiles: Mapping[str, Profile], *, expected: Expected, actor: str
) -> tuple[StoredGroup, Outcome]:
    """Create or update a group, in a transaction in which no profile changes meanwhile.

    The same group again changes nothing and keeps its version.

    Args:
        conn: the transaction.
        group: the group as it is to be.
        profiles: every profile, by pool, as it is in force.
        expected: what the change takes for granted.
        actor: whom the audit log names.

    Raises:
        StaleVersion: the stored group is not as ``expected``.
        VersionUnstated: it exists, and ``expected`` is not given.
        Conflict: a pool of it has no profile, or profiles guarantee more than the cap.
    """
    stored = await find_group(conn, group.name)
    require_version(f"group {group.name!r}", None if stored is None else stored.version, expected)
    if stored is not None and stored.group == group:
        return stored, "unchanged"
    if breaches := conflicts_of(group, profiles):
        raise Conflict("; ".join(breaches))
    body = group_to_mapping(group)
    if stored is None:
        await conn.execute(insert(groups).values(name=group.name, body=body))
    else:
        await conn.execute(
            update(groups)
            .where(groups.c.name == group.name)
            .values(body=body, version=groups.c.version + 1, updated_at=func.now())
        )
    outcome: Outcome = "created" if stored is None else "updated"
    before = None if stored is None else group_to_mapping(stored.group)
    await _record(conn, actor=actor, action=f"group {outcome}", name=group.name, before=before, after=body)
    return await get_group(conn, group.name), outcome


async def delete_group(conn: AsyncConnection, name: str, *, expected: Expected, actor: str) -> None:
    """Remove a group: its pools are capped by their own profiles only.

    Raises:
        NotFound: there is none.
        StaleVersion: it has another version than ``expected``.
        VersionUnstated: ``expected`` names none.
    """
    stored = await get_group(conn, name)
    require_version(f"group {name!r}", stored.version, expected)
    await conn.execute(delete(groups).where(groups.c.name == name))
    before = group_to_mapping(stored.group)
    await _record(conn, actor=actor, action="group deleted", name=name, before=before, after=None)


async def require_within_caps(conn: AsyncConnection, changed: Profile, profiles: Mapping[str, Profile]) -> None:
    """Return if no group contradicts the ``changed`` profile beside the other ``profiles``, by pool.

    Raises:
        Conflict: it guarantees more than the cap of a group that its pool is in.
    """
    after = {**profiles, changed.pool: changed}
    # A pool of a group may have no profile any more, for which this change is not refused.
    known = [stored.group.among(after) for stored in await list_groups(conn) if changed.pool in stored.group.pools]
    breaches = [breach for group in known if group is not None for breach in conflicts_of(group, after)]
    if breaches:
        raise Conflict("; ".join(breaches))


async def read_groups(conn: AsyncConnection) -> tuple[Group, ...]:
    """Every group, by name."""
    return tuple(stored.group for stored in await list_groups(conn))


_UPDATED_AT_S: ColumnElement[Any] = epoch_s(groups.c.updated_at).label("updated_at_s")


def _stored(row: Row[Any]) -> StoredGroup:
    return StoredGroup(
        group=from_mapping(Group, {**row.body, "name": row.name}),
        version=row.version,
        updated_at_s=row.updated_at_s,
    )


async def _record(
    conn: AsyncConnection,
    *,
    actor: str,
    action: str,
    name: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
) -> None:
    await record_act(conn, actor=actor, action=action, subject=f"group {name}", before=before, after=after)
    await notify_viewers(conn)
