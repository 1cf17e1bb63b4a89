"""The names that telemetry brings: queues and producers. Each is claimed once, and counted, before it is used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select, text, union
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Conflict, Forbidden, NotFound
from headway.store.audit import record_act
from headway.store.tables import profile_queues, queues

CHANGED = "headway_queues"  # the channel that names a queue that was forgotten
OWNER_SILENT_S = 180.0  # of HEADWAY_TOKEN: so long a program is away that gets a token of its own
_LOCK = 4_640_021  # one transaction at a time counts and claims

_FORGET: Mapping[str, str] = {
    table: f"delete from {table} where queue = :queue"  # noqa: S608 - names of our own
    for table in ("queues", "queue_samples", "queue_seasons", "queue_buckets", "rollup_minutes", "rollup_hours")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Whoever sends telemetry, as the audit log names it."""

    name: str
    sha256: str = ""
    """Of a token of its own; empty of HEADWAY_TOKEN, and where no token is asked for."""
    is_admin: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How many names there may be."""

    one_max: int
    """Of one token."""
    all_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """What became of names that were not known here."""

    known: frozenset[str]
    is_own_full: bool = False
    """The sender's own bound is why the others are not known, else the bound of all."""


async def read_known(conn: AsyncConnection) -> frozenset[str]:
    """Every queue that telemetry is taken for without asking: claimed before, or named by a profile."""
    names = union(select(queues.c.queue), select(profile_queues.c.queue))
    return frozenset((await conn.execute(names)).scalars())


async def claim_queues(conn: AsyncConnection, names: Sequence[str], *, sender: Sender, room: Room) -> Claimed:
    """Make ``names`` known, in their order, as far as there is room. What a profile names takes none."""
    await conn.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    asked = list(names)
    of_profiles = select(profile_queues.c.queue).where(profile_queues.c.queue.in_(asked))
    claimed = select(queues.c.queue).where(queues.c.queue.in_(asked))
    known = set((await conn.execute(union(of_profiles, claimed))).scalars())
    new = [name for name in asked if name not in known]
    if not new:
        return Claimed(known=frozenset(known))
    counts = (await conn.execute(_COUNT_QUEUES, {"sent_by": sender.name})).one()
    own = room.one_max - counts.own if sender.sha256 else room.all_max
    left = min(own, room.all_max - counts.every)
    taken = new[: max(0, left)]
    if taken:
        await conn.execute(_CLAIM_QUEUES, {"queues": taken, "sent_by": sender.name})
    return Claimed(known=frozenset(known.union(taken)), is_own_full=own <= room.all_max - counts.every)


async def claim_producer(conn: AsyncConnection, producer: str, *, sender: Sender, room: Room) -> str | None:
    """Let ``sender`` send as ``producer``.

    Returns:
        The bound that keeps it from being known: ``own`` or ``all``; else ``None``.

    Raises:
        Forbidden: somebody else sends under this name.
    """
    await conn.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    found = (await conn.execute(_PRODUCER, {"producer": producer})).one_or_none()
    if found is None:
        counts = (await conn.execute(_COUNT_PRODUCERS, {"sent_by": sender.name})).one()
        if sender.sha256 and counts.own >= room.one_max:
            return "own"
        if counts.every >= room.all_max:
            return "all"
    elif not _may_send(found.owner_sha256, sender) and found.is_owned:
        raise Forbidden(
            f"producer {producer!r}: {found.sent_by} sends under this name: choose another one, or revoke that token"
        )
    await conn.execute(
        _KEEP_PRODUCER, {"producer": producer, "sent_by": sender.name, "owner_sha256": sender.sha256 or None}
    )
    return None


def _may_send(owner_sha256: str | None, sender: Sender) -> bool:
    return sender.is_admin or (owner_sha256 or "") == sender.sha256


async def touch_producers(conn: AsyncConnection, names: Sequence[str]) -> None:
    """Note that these producers send."""
    await conn.execute(_TOUCH, {"producers": sorted(names)})


async def forget_queue(conn: AsyncConnection, queue: str, *, actor: str) -> None:
    """Forget all that is known of a queue, and make room for another. One that sends again is claimed anew.

    Raises:
        NotFound: no such queue is known.
        Conflict: a profile names it.
    """
    pool = (await conn.execute(select(profile_queues.c.pool).where(profile_queues.c.queue == queue))).scalar()
    if pool is not None:
        raise Conflict(f"queue {queue!r} belongs to pool {pool!r}: take it out of that profile first")
    gone = {
        table: (await conn.execute(text(statement), {"queue": queue})).rowcount for table, statement in _FORGET.items()
    }
    if not any(gone.values()):
        raise NotFound(f"queue {queue!r}: not seen, and no profile names it")
    await record_act(
        conn, actor=actor, action="queue forgotten", subject=f"queue {queue}", before={"rows": sum(gone.values())}
    )
    await conn.execute(text("select pg_notify(:channel, :queue)"), {"channel": CHANGED, "queue": queue})


_COUNT_QUEUES = text(
    """
    select count(*) as every, count(*) filter (where sent_by = :sent_by) as own from queues
    where not exists (select from profile_queues where profile_queues.queue = queues.queue)
    """
)
_CLAIM_QUEUES = text(
    "insert into queues (queue, sent_by) select queue, :sent_by from unnest(cast(:queues as text[])) as queue "
    "on conflict do nothing"
)
_COUNT_PRODUCERS = text("select count(*) as every, count(*) filter (where sent_by = :sent_by) as own from producers")
# HEADWAY_TOKEN has no owner to be revoked: a program that was given a token of its own takes over from it.
_PRODUCER = text(
    f"""
    select sent_by, owner_sha256, case when owner_sha256 is null
        then seen_at > now() - interval '{OWNER_SILENT_S} seconds'
        else exists (
            select from credentials where sha256 = owner_sha256 and revoked_at is null
            and (expires_at is null or expires_at > now())) end as is_owned
    from producers where producer = :producer
    """  # noqa: S608 - a number of ours
)
_KEEP_PRODUCER = text(
    "insert into producers (producer, sent_by, owner_sha256) values (:producer, :sent_by, :owner_sha256) "
    "on conflict (producer) do update set sent_by = excluded.sent_by, owner_sha256 = excluded.owner_sha256, "
    "seen_at = now()"
)
_TOUCH = text(
    "update producers set seen_at = now() from (select producer from producers where producer = "
    "any(cast(:producers as text[])) order by producer for update skip locked) as due "
    "where producers.producer = due.producer"
)
