"""The outbox of incidents: what is to be posted to whom, in which order, and what became of it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, insert, literal, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from headway.scaling.fields import taken_from
from headway.store.engine import Connection
from headway.store.leadership import fence
from headway.store.tables import alerts, notifications

BEGIN, END = "begin", "end"
WAITING, SENT, GIVEN_UP = "waiting", "sent", "given_up"
DUE_MAX = 100  # of one receiver, read at once

ReceiversOf = Callable[[Mapping[str, str]], Collection[str]]
"""The names of those who are notified of an incident with these labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """That an incident begins or ends, for one receiver."""

    alert_id: UUID
    phase: str
    receiver: str
    at_s: float
    attempts: int
    next_at_s: float
    rule: str
    severity: str
    pool: str
    host: str
    kind: str
    since_s: float
    summary: str
    action: str


def nobody(labels: Mapping[str, str]) -> Collection[str]:
    """Nobody is notified."""
    del labels
    return ()


async def add_begin(conn: Connection, alert_id: UUID, *, pool: str, receivers: Collection[str], now_s: float) -> None:
    """Keep for each receiver that an incident begins."""
    rows = [{"alert_id": alert_id, "phase": BEGIN, "receiver": name, "pool": pool, "at_s": now_s} for name in receivers]
    await conn.execute(upsert(notifications).on_conflict_do_nothing(), rows)


async def add_end(conn: Connection, alert_id: UUID, *, now_s: float) -> None:
    """Keep that an incident ends, for those whom its begin was kept for."""
    row = notifications.c
    begun = select(row.alert_id, literal(END), row.receiver, row.pool, literal(now_s)).where(
        row.alert_id == alert_id, row.phase == BEGIN
    )
    await conn.execute(insert(notifications).from_select(["alert_id", "phase", "receiver", "pool", "at_s"], begun))


async def read_due(conn: Connection, receiver: str, *, now_s: float, epoch: int) -> list[Notification]:
    """The oldest waiting notification of each pool, where its pause is over: so many as are sent at once.

    Raises:
        Superseded: another process leads under a later epoch.
    """
    await fence(conn, epoch=epoch)
    row = notifications.c
    firsts = select(func.min(row.sequence)).where(row.receiver == receiver, row.state == WAITING).group_by(row.pool)
    incident = (alerts.c.rule, alerts.c.severity, alerts.c.host, alerts.c.kind)
    query = (
        select(notifications, *incident, alerts.c.since_s, alerts.c.summary, alerts.c.action)
        .join(alerts, alerts.c.alert_id == row.alert_id)
        .where(row.receiver == receiver, row.state == WAITING, row.sequence.in_(firsts), row.next_at_s <= now_s)
        .order_by(row.sequence)
        .limit(DUE_MAX)
    )
    return [taken_from(Notification, found) for found in await conn.execute(query)]


async def save_attempt(conn: Connection, sent: Notification, *, state: str, next_at_s: float, epoch: int) -> None:
    """Keep what became of an attempt.

    Raises:
        Superseded: another process leads under a later epoch; nothing was written.
    """
    await fence(conn, epoch=epoch)
    row = notifications.c
    await conn.execute(
        update(notifications)
        .where(tuple_(row.alert_id, row.phase, row.receiver) == tuple_(sent.alert_id, sent.phase, sent.receiver))
        .where(row.state == WAITING)
        .values(state=state, next_at_s=next_at_s, attempts=row.attempts + 1)
    )
