"""Incidents, each opened once and closed once, and what silences them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from headway.errors import NotFound
from headway.scaling.conditions.condition_table import CONDITIONS
from headway.scaling.conditions.incident_rules import IncidentChange, IncidentKey, is_silenced
from headway.scaling.explanations.phrases import duration
from headway.scaling.fields import taken_from
from headway.scaling.model import PoolEventKind
from headway.store.audit import record_act
from headway.store.cursors import cursor_of, page_of
from headway.store.engine import Connection
from headway.store.leadership import fence
from headway.store.outbox.notifications import ReceiversOf, add_begin, add_end, nobody
from headway.store.outbox.pool_events import Subscribers, add_events, incident_event, no_subscribers
from headway.store.tables import alerts, silences

LATE = CONDITIONS["breaching"].own_rule
"""The rule of the incidents of pools whose jobs wait too long."""
_KEY = (alerts.c.rule, alerts.c.pool, alerts.c.host, alerts.c.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One incident. ``until_s`` is ``None`` while it goes on."""

    alert_id: UUID
    rule: str
    severity: str
    pool: str
    host: str
    kind: str
    since_s: float
    until_s: float | None
    summary: str
    action: str
    opened_at: datetime

    @property
    def labels(self) -> Mapping[str, str]:
        """What silences can name."""
        return {name: getattr(self, name) for name in ("rule", "severity", "pool", "host", "kind")}

    @property
    def cursor(self) -> str:
        """Names this incident as the place from which the next page goes on."""
        return cursor_of(self.opened_at, self.alert_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Incidents with these labels are not to disturb anybody for a while."""

    name: str
    matchers: Mapping[str, str]
    until_s: float
    reason: str
    created_by: str


async def read_open(conn: Connection) -> frozenset[IncidentKey]:
    """The incidents that go on."""
    rows = await conn.execute(select(*_KEY).where(alerts.c.until_s.is_(None)))
    return frozenset(IncidentKey(rule=rule, pool=pool, host=host, kind=kind) for rule, pool, host, kind in rows)


async def save_change(
    conn: Connection,
    change: IncidentChange,
    *,
    now_s: float,
    epoch: int,
    receivers_of: ReceiversOf = nobody,
    subscribers_of: Subscribers = no_subscribers,
) -> None:
    """Open and close incidents, and keep what is to be posted of them. Done twice, it changes nothing.

    Whom ``receivers_of`` names for the labels of an incident is notified, unless it is silenced as it begins. Receivers
    that ``subscribers_of`` names get the breach of a pool and its end as events, silenced or not.

    Raises:
        Superseded: another process leads under a later epoch; nothing was written.
    """
    await fence(conn, epoch=epoch)
    for key, (since_s, condition) in change.opened.items():
        row = {**asdict(key), **asdict(condition), "since_s": since_s}
        alert_id = await conn.scalar(upsert(alerts).values(row).on_conflict_do_nothing().returning(alerts.c.alert_id))
        labels = {**asdict(key), "severity": condition.severity}
        if alert_id is not None and (receivers := receivers_of(labels)) and not await _is_silent(conn, labels, now_s):
            await add_begin(conn, alert_id, pool=key.pool, receivers=receivers, now_s=now_s)
        if alert_id is not None and key.rule == LATE:
            await _add_event(conn, PoolEventKind.BREACH, key.pool, subscribers_of, why=condition.summary, now_s=now_s)
    for key in change.closed:
        which = tuple_(*_KEY) == tuple_(key.rule, key.pool, key.host, key.kind)
        ended = update(alerts).where(which, alerts.c.until_s.is_(None)).values(until_s=now_s)
        for alert_id, since_s in (await conn.execute(ended.returning(alerts.c.alert_id, alerts.c.since_s))).all():
            await add_end(conn, alert_id, now_s=now_s)
            if key.rule == LATE:
                why = f"The incident has ended after {duration(now_s - since_s)}."
                await _add_event(conn, PoolEventKind.RECOVERED, key.pool, subscribers_of, why=why, now_s=now_s)


async def _add_event(
    conn: Connection, kind: PoolEventKind, pool: str, subscribers_of: Subscribers, *, why: str, now_s: float
) -> None:
    event = await incident_event(conn, kind, pool, why=why, now_s=now_s) if subscribers_of(kind, pool) else None
    if event is not None:
        await add_events(conn, [event], subscribers_of)


async def _is_silent(conn: Connection, labels: Mapping[str, str], now_s: float) -> bool:
    return any(each.until_s > now_s and is_silenced(each.matchers, labels) for each in await list_silences(conn))


async def list_incidents(
    conn: Connection, *, is_firing: bool, pool: str | None, limit: int, before: str | None
) -> list[Incident]:
    """Incidents, those that began last first.

    Raises:
        Invalid: ``before`` is no cursor.
    """
    query = page_of(select(alerts), alerts.c.opened_at, alerts.c.alert_id, limit=limit, before=before)
    if is_firing:
        query = query.where(alerts.c.until_s.is_(None))
    if pool is not None:
        query = query.where(alerts.c.pool == pool)
    return [taken_from(Incident, row) for row in await conn.execute(query)]


async def list_silences(conn: Connection) -> list[Silence]:
    """Every silence, by name, those that have ended included."""
    return [taken_from(Silence, row) for row in await conn.execute(select(silences).order_by(silences.c.name))]


def silenced_until_s(incident: Incident, among: Sequence[Silence], *, now_s: float) -> float | None:
    """When the last silence of ``incident`` ends; ``None`` where none holds."""
    ends_s = [each.until_s for each in among if each.until_s > now_s and is_silenced(each.matchers, incident.labels)]
    return max(ends_s, default=None)


async def put_silence(conn: Connection, silence: Silence, *, actor: str) -> None:
    """Set a silence, in the place of one of that name."""
    before = (await conn.execute(select(silences).where(silences.c.name == silence.name))).mappings().first()
    values = asdict(silence)
    await conn.execute(upsert(silences).values(values).on_conflict_do_update(index_elements=["name"], set_=values))
    await record_act(
        conn,
        actor=actor,
        action="silence set",
        subject=silence.name,
        before=None if before is None else dict(before),
        after=values,
    )


async def delete_silence(conn: Connection, name: str, *, actor: str) -> None:
    """End a silence. Raises ``NotFound`` where there is none of that name."""
    gone = (await conn.execute(delete(silences).where(silences.c.name == name).returning(silences))).mappings().first()
    if gone is None:
        raise NotFound(f"there is no silence {name!r}")
    await record_act(conn, actor=actor, action="silence ended", subject=name, before=dict(gone))
