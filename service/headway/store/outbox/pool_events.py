"""The outbox of events of pools: which is posted to which receiver, in which order, and with what result.

An event is written in the fenced transaction that makes it so, with the next number of its receiver and pool. So it is
neither lost nor doubled nor moved by a crash: what was not committed did not happen.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from uuid import UUID, uuid4

from sqlalchemy import Text, bindparam, cast, func, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from headway.scaling.fields import taken_from
from headway.scaling.model import Decision, PoolEvent, PoolEventKind
from headway.store.engine import Connection
from headway.store.leadership import fence
from headway.store.outbox.notifications import DUE_MAX, WAITING
from headway.store.tables import decisions, pool_events, pool_states

PREDICTED_AGAIN_AFTER_S = 300.0  # a prediction that comes and goes within minutes is one
PREDICTED_NOTED_EVERY_S = 60.0  # not at each evaluation: it is the time of a whole breach
_NUMBERS_LOCK = 0x6865_6164_7761_7902  # evaluations and incidents take turns: numbers follow the commits

Subscribers = Callable[[PoolEventKind, str], Collection[str]]
"""The names of the receivers that subscribe to such an event of this pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedEvent(PoolEvent):
    """An event for one receiver."""

    receiver: str
    number: int
    """Counts the events of this pool for this receiver, from 1."""
    event_id: UUID
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleEvents:
    """What may follow from the decisions of one evaluation."""

    subscribers_of: Subscribers
    predicted: Mapping[str, Decision]
    """Pool -> its decision, if that predicts a breach."""
    reasons: Mapping[tuple[PoolEventKind, str], str]
    """Event and pool -> why, of each event that may be news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is stored of a pool before a decision."""

    target_workers: int
    breach_predicted_at_s: float | None


def no_subscribers(kind: PoolEventKind, pool: str) -> Collection[str]:
    """No receiver subscribes to anything."""
    del kind, pool
    return ()


async def events_of(
    conn: Connection, remembered: Sequence[Decision], possible: PossibleEvents, *, at_s: float
) -> list[PoolEvent]:
    """The events that follow from decisions whose targets are stored next: a prediction before a changed target.

    Of the ``possible`` ones these are news by what is stored, which another leader may have written. A pool whose
    evaluation failed keeps the target that is stored, and has none.
    """
    if not possible.reasons:
        return []
    known = await _known(conn, {pool for _, pool in possible.reasons})
    events = []
    for pool, decision in possible.predicted.items():
        why = possible.reasons.get((PoolEventKind.BREACH_PREDICTED, pool))
        if why is not None and _is_news(known.get(pool), at_s=at_s):
            events.append(_event(PoolEventKind.BREACH_PREDICTED, decision, _before(known, decision), why))
    for decision in remembered:
        why, before = possible.reasons.get((PoolEventKind.SCALED, decision.pool)), _before(known, decision)
        if why is not None and before != decision.target_workers:
            events.append(_event(PoolEventKind.SCALED, decision, before, why))
    ids = {each.pool: str(uuid4()) for each in events}
    return [replace(each, decision_id=ids[each.pool]) for each in events]


def _before(known: Mapping[str, _Known], decision: Decision) -> int:
    return known[decision.pool].target_workers if decision.pool in known else 0


def _is_news(known: _Known | None, *, at_s: float) -> bool:
    """Whether the last prediction of a breach is so long ago that this is another, or the clock was set back."""
    last_s = None if known is None else known.breach_predicted_at_s
    return last_s is None or not 0.0 <= at_s - last_s < PREDICTED_AGAIN_AFTER_S + PREDICTED_NOTED_EVERY_S


def _event(kind: PoolEventKind, decision: Decision, before: int, why: str) -> PoolEvent:
    return PoolEvent(
        pool=decision.pool,
        event=kind,
        at_s=decision.at_s,
        from_workers=before,
        to_workers=decision.target_workers,
        why=why,
    )


async def _known(conn: Connection, pools: Collection[str]) -> dict[str, _Known]:
    row = pool_states.c
    query = select(row.pool, row.target_workers, row.breach_predicted_at_s).where(
        row.pool == func.any(cast(sorted(pools), ARRAY(Text)))
    )
    return {each.pool: taken_from(_Known, each) for each in await conn.execute(query)}


async def note_predictions(conn: Connection, pools: Collection[str], *, at_s: float) -> None:
    """Keep that breaches of these pools are predicted at that time."""
    row = pool_states.c
    is_due = func.abs(func.coalesce(row.breach_predicted_at_s, float("-inf")) - at_s) >= PREDICTED_NOTED_EVERY_S
    await conn.execute(
        update(pool_states)
        .where(row.pool == func.any(cast(sorted(pools), ARRAY(Text))), is_due)
        .values(breach_predicted_at_s=at_s)
    )


async def add_events(conn: Connection, events: Sequence[PoolEvent], subscribers_of: Subscribers) -> None:
    """Keep events for the receivers that subscribe to them, in their order."""
    rows = [
        {**asdict(each), "receiver": name, "place": place}
        for place, each in enumerate(events)
        for name in subscribers_of(each.event, each.pool)
    ]
    if rows:
        await conn.execute(select(func.pg_advisory_xact_lock(_NUMBERS_LOCK)))
        await conn.execute(_ADD, {"rows": rows})


_ADD = text(
    """
    insert into pool_events (receiver, pool, number, event, at_s, from_workers, to_workers, why, decision_id)
    select receiver, pool,
        coalesce((select max(number) from pool_events as known
                  where known.receiver = given.receiver and known.pool = given.pool), 0)
            + row_number() over (partition by receiver, pool order by place),
        event, at_s, from_workers, to_workers, why, decision_id
    from jsonb_to_recordset(:rows) as given(
        receiver text, pool text, event text, at_s double precision, from_workers integer, to_workers integer, why text,
        decision_id uuid, place integer)
    """
).bindparams(bindparam("rows", type_=JSONB))


async def incident_event(
    conn: Connection, kind: PoolEventKind, pool: str, *, why: str, now_s: float
) -> PoolEvent | None:
    """The begin or the end of a breach, with the target of the pool now; ``None`` if the pool was never decided."""
    newest = (
        select(decisions.c.decision_id)
        .where(decisions.c.pool == pool_states.c.pool)
        .order_by(decisions.c.decided_at.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = select(pool_states.c.target_workers, newest.label("decision_id")).where(pool_states.c.pool == pool)
    found = (await conn.execute(query)).first()
    if found is None:
        return None
    workers = found.target_workers
    return PoolEvent(
        pool=pool,
        event=kind,
        at_s=now_s,
        from_workers=workers,
        to_workers=workers,
        why=why,
        decision_id=_text(found.decision_id),
    )


def _text(decision_id: UUID | None) -> str | None:
    return None if decision_id is None else str(decision_id)


async def read_due_events(conn: Connection, receiver: str, *, now_s: float, epoch: int) -> list[PostedEvent]:
    """The oldest waiting event of each pool, where its pause is over: so many as are sent at once.

    Raises:
        Superseded: another process leads under a later epoch.
    """
    await fence(conn, epoch=epoch)
    row = pool_events.c
    is_waiting = row.receiver == receiver, row.state == WAITING
    firsts = select(row.pool, func.min(row.number)).where(*is_waiting).group_by(row.pool)
    query = (
        select(pool_events)
        .where(*is_waiting, tuple_(row.pool, row.number).in_(firsts), row.next_at_s <= now_s)
        .order_by(row.at_s, row.pool)
        .limit(DUE_MAX)
    )
    return [
        taken_from(PostedEvent, each, event=PoolEventKind(each.event), decision_id=_text(each.decision_id))
        for each in await conn.execute(query)
    ]


async def save_event_attempt(conn: Connection, sent: PostedEvent, *, state: str, next_at_s: float, epoch: int) -> None:
    """Keep what became of an attempt.

    Raises:
        Superseded: another process leads under a later epoch; nothing was written.
    """
    await fence(conn, epoch=epoch)
    row = pool_events.c
    await conn.execute(
        update(pool_events)
        .where(row.receiver == sent.receiver, row.pool == sent.pool, row.number == sent.number, row.state == WAITING)
        .values(state=state, next_at_s=next_at_s, attempts=row.attempts + 1)
    )
