"""The names that telemetry brings: queues and producers. Each is claimed once, and counted, before it is used."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import TextClause, delete, func, select, text, union
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Conflict, Forbidden, NotFound
from headway.store.audit import record_act
from headway.store.tables import job_cuts, metadata, profile_queues, queue_samples, queues

CLAIMED_NAMES_CHANGED = "headway_queues"  # the channel that says that queues were forgotten
CLAIM_OWNER_SILENT_S = 180.0  # of HEADWAY_TOKEN: so long a program is away that gets a token of its own
_LOCK = 4_640_021  # one transaction at a time counts and claims

_NOT_OF_A_QUEUE = {profile_queues.name, job_cuts.name}
OF_A_QUEUE = tuple(
    table for table in metadata.sorted_tables if "queue" in table.c and table.name not in _NOT_OF_A_QUEUE
)
"""The tables whose rows are about one queue: they go with it. What a profile names goes with that.

A cut is of a worker, which calls its queue by another name, without the connection.
"""


class Kind(StrEnum):
    """A kind of name."""

    QUEUES = "queues"
    PRODUCERS = "producers"


class Full(StrEnum):
    """Whose names leave no room."""

    OWN = "own"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Whoever sends telemetry, as the audit log names it."""

    name: str
    sha256: str = ""
    """Of a token of its own; empty of HEADWAY_TOKEN, and where no token is asked for."""
    takes_over: bool = False
    """An administrator; or a host, whose producer bears its own id, whatever credential it shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameCapacity:
    """How many names there may be."""

    one_max: int
    """Of one token."""
    all_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """What became of names that were not known here."""

    known: frozenset[str]
    full: Full | None = None
    """Why the others are not known."""


async def read_known(conn: AsyncConnection) -> frozenset[str]:
    """Every queue that telemetry is taken for without asking: claimed before, or named by a profile."""
    names = union(select(queues.c.queue), select(profile_queues.c.queue))
    return frozenset((await conn.execute(names)).scalars())


async def claim(
    conn: AsyncConnection, kind: Kind, names: Sequence[str], *, sender: Sender, room: NameCapacity
) -> Claimed:
    """Make ``names`` known as those of ``sender``, in their order, as far as there is room.

    A queue that a profile names takes none.

    Raises:
        Forbidden: somebody else sends under the name of one of these producers.
    """
    await conn.execute(_TAKE_LOCK, {"key": _LOCK})
    of_kind, asked = _OF_KIND[kind], list(names)
    rows = (await conn.execute(of_kind.find, {"names": asked, "silent_s": CLAIM_OWNER_SILENT_S})).all()
    for row in rows:
        is_of_other = row.is_owned and (row.owner_sha256 or "") != sender.sha256
        if is_of_other and not sender.takes_over:
            raise Forbidden(
                f"producer {row.name!r}: {row.sent_by} sends under this name: choose another one, or revoke that token"
            )
    known = {row.name for row in rows}
    new = [name for name in asked if name not in known]
    taken, full = new, None
    if new:
        counts = (await conn.execute(of_kind.count, {"sent_by": sender.name})).one()
        left_all = room.all_max - counts.every
        left_own = room.one_max - counts.own if sender.sha256 else left_all
        taken = new[: max(0, min(left_own, left_all))]
        full = Full.OWN if sender.sha256 and left_own <= left_all else Full.ALL
    keep = {"names": [*known, *taken], "sent_by": sender.name, "owner_sha256": sender.sha256 or None}
    await conn.execute(of_kind.keep, keep)
    return Claimed(known=frozenset(known.union(taken)), full=full if len(taken) < len(new) else None)


async def touch_producers(conn: AsyncConnection, names: Sequence[str]) -> None:
    """Note that these producers send."""
    await conn.execute(_TOUCH, {"producers": sorted(names)})


async def forget_queues(conn: AsyncConnection, names: Sequence[str], *, actor: str) -> None:
    """Forget all that is known of these queues, and make room for others. One that sends again is claimed anew.

    Raises:
        NotFound: one of them is not known; then none is forgotten.
        Conflict: a profile names one of them; then none is forgotten.
    """
    asked = sorted(set(names))
    is_asked = profile_queues.c.queue.in_(asked)
    named = (await conn.execute(select(profile_queues).where(is_asked, profile_queues.c.pattern.is_(None)))).all()
    if named:
        raise Conflict(
            "; ".join(
                f"queue {row.queue!r} belongs to pool {row.pool!r}: take it out of that profile first" for row in named
            )
        )
    # What a pattern has matched leaves its pool, and comes back if it sends again.
    await conn.execute(delete(profile_queues).where(is_asked))
    rows: Counter[str] = Counter()
    for table in OF_A_QUEUE:
        gone = delete(table).where(table.c.queue.in_(asked)).returning(table.c.queue).cte("gone")
        counted = await conn.execute(select(gone.c.queue, func.count().label("rows")).group_by(gone.c.queue))
        rows.update({row.queue: row.rows for row in counted})
    if missing := [queue for queue in asked if queue not in rows]:
        raise NotFound("; ".join(f"queue {queue!r}: not seen, and no profile names it" for queue in missing))
    is_one = len(asked) == 1
    await record_act(
        conn,
        actor=actor,
        action="queue forgotten" if is_one else "queues forgotten",
        subject=f"queue {asked[0]}" if is_one else f"{len(asked)} queues",
        before={"queues": asked, "rows": rows.total()},
    )
    await conn.execute(_NOTIFY, {"channel": CLAIMED_NAMES_CHANGED})


async def queues_beginning(conn: AsyncConnection, prefix: str, *, limit: int) -> list[str]:
    """Queues whose names begin so and that no profile names, by name; ``limit`` at most."""
    known = union(select(queues.c.queue), select(queue_samples.c.queue)).subquery()
    is_named = select(profile_queues.c.queue).where(profile_queues.c.queue == known.c.queue).exists()
    begins = known.c.queue.startswith(prefix, autoescape=True)
    rows = await conn.execute(select(known.c.queue).where(begins, ~is_named).order_by(known.c.queue).limit(limit))
    return list(rows.scalars())


@dataclass(frozen=True, slots=True)
class _OfKind:
    """What Postgres is asked about names of a kind."""

    find: TextClause
    """Those of the names that are known, and who owns them."""
    count: TextClause
    keep: TextClause


_OF_KIND: Mapping[Kind, _OfKind] = {
    Kind.QUEUES: _OfKind(
        find=text(
            """
            select queue as name, '' as sent_by, null as owner_sha256, false as is_owned
            from (select queue from queues union select queue from profile_queues) as known
            where queue = any(cast(:names as text[]))
            """
        ),
        count=text(
            """
            select count(*) as every, count(*) filter (where sent_by = :sent_by) as own from queues
            where not exists (select from profile_queues where profile_queues.queue = queues.queue)
            """
        ),
        keep=text(
            """
            insert into queues (queue, sent_by) select name, :sent_by from unnest(cast(:names as text[])) as name
            where not exists (select from profile_queues where queue = name)
            on conflict do nothing
            """
        ),
    ),
    Kind.PRODUCERS: _OfKind(
        # HEADWAY_TOKEN has no owner to be revoked: a program that was given a token of its own takes over from it.
        find=text(
            """
            select producer as name, sent_by, owner_sha256, case when owner_sha256 is null
                then seen_at > now() - make_interval(secs => :silent_s)
                else exists (
                    select from credentials where sha256 = owner_sha256 and revoked_at is null
                    and (expires_at is null or expires_at > now())) end as is_owned
            from producers where producer = any(cast(:names as text[]))
            """
        ),
        count=text("select count(*) as every, count(*) filter (where sent_by = :sent_by) as own from producers"),
        keep=text(
            """
            insert into producers (producer, sent_by, owner_sha256)
            select name, :sent_by, cast(:owner_sha256 as text) from unnest(cast(:names as text[])) as name
            on conflict (producer) do update set sent_by = excluded.sent_by, owner_sha256 = excluded.owner_sha256,
            seen_at = now()
            """
        ),
    ),
}
_TAKE_LOCK = text("select pg_advisory_xact_lock(:key)")
_NOTIFY = text("select pg_notify(:channel, '')")
_TOUCH = text(
    """
    update producers set seen_at = now()
    from (
        select producer from producers where producer = any(cast(:producers as text[]))
        order by producer for update skip locked
    ) as due
    where producers.producer = due.producer
    """
)
