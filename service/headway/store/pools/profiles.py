"""What people want of pools: profiles, their versions, and who changed them.

A change and its line in the audit log are one transaction, and every change names the version it was made for.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlalchemy import ColumnElement, Row, Text, cast, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import ARRAY, array
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Conflict, NotFound
from headway.scaling.model import Mode
from headway.scaling.profile import Override, Pause, Profile, profile_from_mapping, profile_to_mapping
from headway.scaling.profile_keys.pattern_resolution import WrittenQueues
from headway.scaling.profile_keys.queue_patterns import conflicts, is_pattern
from headway.store.audit import record_act
from headway.store.engine import notify_viewers
from headway.store.pools.groups import require_within_caps
from headway.store.pools.queue_ownership import LOCK_QUEUES, OWNED, name_queues, read_written
from headway.store.pools.versions import Expected, require_version
from headway.store.tables import epoch_s, profile_queues, profiles

Outcome = Literal["created", "updated", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProfile:
    """A profile as it is stored. The version grows by one with each change."""

    profile: Profile
    """With the queues that its patterns match by name. One whose patterns match none yet has the patterns, and
    ``has_queues`` is false."""
    written: Profile
    """As it was applied, with its patterns."""
    version: int
    updated_at_s: float
    has_queues: bool = True
    made_of: str | None = None
    """The pool whose profile this one is a copy of, for one queue; ``None``: people wrote it."""
    override: Override | None = None
    """Set by hand beside the profile."""
    pause: Pause | None = None
    """The same."""

    def in_force_at(self, now_s: float) -> Profile:
        """The profile as it is decided by: what was set by hand takes the place of its own until it expires.

        A pause does not end ``recommend``: what is only advised has no target that could be kept.
        """
        override, pause = self.override_at(now_s), self.pause_at(now_s)
        if self.profile.mode is Mode.RECOMMEND:
            pause = None
        return replace(self.profile, override=override or self.profile.override, pause=pause or self.profile.pause)

    def override_at(self, now_s: float) -> Override | None:
        """What was set by hand and has not expired."""
        return None if self.override is None or now_s >= self.override.until_s else self.override

    def pause_at(self, now_s: float) -> Pause | None:
        """The same."""
        return None if self.pause is None or self.pause.is_over(now_s) else self.pause


async def list_profiles(conn: AsyncConnection) -> list[StoredProfile]:
    """Every profile, by pool."""
    rows = await conn.execute(select(profiles, _UPDATED_AT_S, OWNED).order_by(profiles.c.pool))
    return [_stored(row) for row in rows]


async def get_profile(conn: AsyncConnection, pool: str) -> StoredProfile:
    """The profile of ``pool``. Raises ``NotFound``."""
    stored = await find_profile(conn, pool)
    if stored is None:
        raise NotFound(f"no profile {pool!r}: `headway get profiles` lists them")
    return stored


async def put_profile(
    conn: AsyncConnection, profile: Profile, *, expected: Expected, actor: str
) -> tuple[StoredProfile, Outcome]:
    """Create or update a profile. The same profile again changes nothing and keeps its version.

    Raises:
        StaleVersion: the stored profile is not as ``expected``.
        VersionUnstated: it exists, and ``expected`` is not given.
        Conflict: one of its queues belongs to another pool, one of its patterns crosses another pool's, or it
            guarantees more than a group of its pool allows.
    """
    await one_change_at_a_time(conn)
    stored = await find_profile(conn, profile.pool)
    require_version(f"profile {profile.pool!r}", None if stored is None else stored.version, expected)
    others = await read_written(conn) if any(map(is_pattern, profile.queues)) else ()
    has_names_with_stars = any(each.literal for each in others if each.pool == profile.pool)
    is_as_written = stored is not None and stored.made_of is None and not has_names_with_stars
    if stored is not None and is_as_written and stored.written == profile:
        return stored, "unchanged"
    await _check_queues_are_free(conn, profile)
    _check_patterns(profile, others)
    await require_within_caps(conn, profile, {each.profile.pool: each.profile for each in await list_profiles(conn)})
    body = profile_to_mapping(profile)
    if stored is None:
        await conn.execute(insert(profiles).values(pool=profile.pool, body=body))
    else:
        await conn.execute(
            update(profiles)
            .where(profiles.c.pool == profile.pool)
            .values(body=body, made_of=None, version=profiles.c.version + 1, updated_at=func.now())
        )
    await name_queues(conn, profile)
    outcome: Outcome = "created" if stored is None else "updated"
    before = None if stored is None else profile_to_mapping(stored.written)
    await record_change(conn, actor=actor, action=f"profile {outcome}", pool=profile.pool, before=before, after=body)
    return await get_profile(conn, profile.pool), outcome


async def read_owned(conn: AsyncConnection, queues: Collection[str]) -> frozenset[str]:
    """Those of ``queues`` that a pool owns."""
    if not queues:
        return frozenset()
    rows = await conn.execute(select(profile_queues.c.queue).where(profile_queues.c.queue.in_(queues)))
    return frozenset(rows.scalars())


async def is_shared(conn: AsyncConnection, profile: Profile) -> bool:
    """Whether workers of ``profile``'s pool may run jobs of queues of others, or theirs those of its queues."""
    named = cast(array(profile.queues), ARRAY(Text))
    helpers = select(profiles.c.pool).where(profiles.c.body["helps"].has_any(named)).exists()
    return bool(profile.helps) or bool((await conn.execute(select(helpers))).scalar_one())


async def delete_profile(conn: AsyncConnection, pool: str, *, expected: Expected, actor: str) -> None:
    """Remove a profile. Its workers are let go by the leader's next tick.

    Raises:
        NotFound: there is none.
        Conflict: it was made of another one, which would make it again.
        StaleVersion: it has another version than ``expected``.
        VersionUnstated: ``expected`` names none.
    """
    await one_change_at_a_time(conn)
    stored = await get_profile(conn, pool)
    require_version(f"profile {pool!r}", stored.version, expected)
    if stored.made_of is not None:
        raise Conflict(
            f"profile {pool!r} is made of profile {stored.made_of!r} for queue {stored.written.queues[0]!r}: narrow "
            "the patterns there, or name the queue in a pool"
        )
    is_of_it = (profiles.c.pool == pool) | (profiles.c.made_of == pool)
    await conn.execute(delete(profiles).where(is_of_it))
    before = profile_to_mapping(stored.written)
    await record_change(conn, actor=actor, action="profile deleted", pool=pool, before=before, after=None)


def in_force(row: Row[Any], *, at_s: float) -> Mapping[str, Any] | None:
    """The keys of a profile's ``row`` with what was set by hand in the place of its own, until it expires, and with its
    queues by name. ``None``: its patterns match no queue.

    They may make no profile. A pause does not end ``recommend``, as in ``StoredProfile``.
    """
    pause = None if row.body.get("mode") == Mode.RECOMMEND else _pause_of(row)
    by_hand = {"override": row.override, "pause": pause}
    if row.owned == []:
        return None
    queues = {} if row.owned is None else {"queues": row.owned}
    held = {key: value for key, value in by_hand.items() if value and not _is_over(value, at_s)}
    return {**row.body, **queues, **held}


def _pause_of(row: Row[Any]) -> dict[str, Any] | None:
    return {"mode": row.pause, "reason": row.pause_reason, "until_s": row.pause_until_s} if row.pause else None


def _is_over(set_by_hand: Mapping[str, Any], at_s: float) -> bool:
    until_s = set_by_hand.get("until_s")
    return until_s is not None and at_s >= until_s


_UPDATED_AT_S: ColumnElement[Any] = epoch_s(profiles.c.updated_at).label("updated_at_s")


async def find_profile(conn: AsyncConnection, pool: str) -> StoredProfile | None:
    """The profile of ``pool``; ``None`` where there is none."""
    query = select(profiles, _UPDATED_AT_S, OWNED).where(profiles.c.pool == pool)
    row = (await conn.execute(query)).one_or_none()
    return None if row is None else _stored(row)


def _stored(row: Row[Any]) -> StoredProfile:
    written = profile_from_mapping(row.pool, row.body)
    return StoredProfile(
        profile=replace(written, queues=tuple(row.owned)) if row.owned else written,
        written=written,
        has_queues=row.owned != [],
        made_of=row.made_of,
        version=row.version,
        updated_at_s=row.updated_at_s,
        override=Override(**row.override) if row.override else None,
        pause=Pause(**{**pause, "mode": Mode(row.pause)}) if (pause := _pause_of(row)) else None,
    )


async def one_change_at_a_time(conn: AsyncConnection) -> None:
    """Make changes of profiles wait for each other until this transaction ends."""
    # People change profiles rarely. One at a time, a check made here still holds when its write follows; readers, and
    # the tick among them, do not wait for this lock.
    await conn.execute(LOCK_QUEUES)


async def _check_queues_are_free(conn: AsyncConnection, profile: Profile) -> None:
    taken = await conn.execute(
        select(profile_queues.c.queue, profile_queues.c.pool)
        .where(
            profile_queues.c.queue.in_(profile.queues),
            profile_queues.c.pool != profile.pool,
            profile_queues.c.pattern.is_(None),  # what a pattern has matched goes to the pool that names it
        )
        .order_by(profile_queues.c.queue)
    )
    breaches = [
        f"queue {row.queue!r} belongs to pool {row.pool!r} and cannot be served by pool {profile.pool!r} as well: "
        f"name it under helps of pool {profile.pool!r}, if its workers are to take from it, too"
        for row in taken
    ]
    if breaches:
        raise Conflict("; ".join(breaches))


def _check_patterns(profile: Profile, others: Iterable[WrittenQueues]) -> None:
    patterns = {each.pool: [queue for queue in each.queues if each.is_pattern(queue)] for each in others}
    if breaches := conflicts(profile.pool, profile.queues, patterns):
        raise Conflict("; ".join(breaches))


async def record_change(
    conn: AsyncConnection,
    *,
    actor: str,
    action: str,
    pool: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
) -> None:
    """Write a line of the audit log, and notify those who watch."""
    await record_act(conn, actor=actor, action=action, subject=f"profile {pool}", before=before, after=after)
    # A dashboard shows a changed profile at once, not with the next decision.
    await notify_viewers(conn)
