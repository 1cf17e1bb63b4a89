"""Decisions as they are stored: the only story of why a pool has the workers it has."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, LiteralString
from uuid import UUID

from sqlalchemy import ColumnElement, Row, func, lateral, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.scaling.fields import taken_from
from headway.scaling.mapping import from_mapping
from headway.scaling.model import Decision
from headway.store.cursors import cursor_of, page_of
from headway.store.tables import decisions, profiles

MICROSECOND_S = 1e-6  # as exact as Postgres's clock is
LATEST_WITHIN = timedelta(days=1)  # unchanged decisions are stored again every few minutes; older ones hold nothing new


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """A decision, when it was stored (Postgres's clock) and under which leader's epoch."""

    decision: Decision
    decision_id: UUID
    decided_at: datetime
    epoch: int
    previous_workers: int | None

    @property
    def cursor(self) -> str:
        """Names this row as the place from which the next page goes on."""
        return cursor_of(self.decided_at, self.decision_id)


def decision_to_json(decision: Decision) -> dict[str, Any]:
    """What ``from_mapping`` turns back into ``decision``, in values that JSON knows.

    JSON has no infinity, and one wrong number must not lose the leader's whole transaction: it is stored as not known.
    """
    body: dict[str, Any] = _finite(asdict(decision))
    return body


_COPY: LiteralString = "copy decisions (pool, epoch, target_workers, previous_workers, binding, body) from stdin"
_COPY_NAMED: LiteralString = (
    "copy decisions (pool, epoch, target_workers, previous_workers, binding, body, decision_id) from stdin"
)
_UNNAMED: Mapping[str, UUID] = MappingProxyType({})


async def insert_decisions(
    conn: AsyncConnection, rows: Iterable[tuple[Decision, int, int | None]], *, ids: Mapping[str, UUID] = _UNNAMED
) -> None:
    """Store decisions, each with its epoch and the target it replaced. They date from the transaction's start.

    That of a pool in ``ids`` gets the id there, every other one of its own.
    """
    known = list(rows)
    await _copy(conn, _COPY, [row for row in known if row[0].pool not in ids])
    await _copy(conn, _COPY_NAMED, [row for row in known if row[0].pool in ids], ids)


async def _copy(
    conn: AsyncConnection,
    statement: LiteralString,
    rows: Sequence[tuple[Decision, int, int | None]],
    ids: Mapping[str, UUID] = _UNNAMED,
) -> None:
    if not rows:
        return
    raw = (await conn.get_raw_connection()).driver_connection
    assert raw is not None
    # COPY takes a fifth of the time of inserts, and a tick has thousands of these at worst.
    async with raw.cursor() as cursor, cursor.copy(statement) as copy:
        for decision, epoch, previous_workers in rows:
            body = json.dumps(decision_to_json(decision), allow_nan=False)
            row = (decision.pool, epoch, decision.target_workers, previous_workers, decision.binding, body)
            await copy.write_row((*row, ids[decision.pool]) if ids else row)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionQuery:
    """Which decisions somebody wants. ``None``: any; times are Unix seconds, and ``until_s`` is left out itself."""

    pool: str | None = None
    direction: str | None = None
    """``up``, ``down`` or ``same``: against the target before."""
    reason: str | None = None
    """The demand or limit that decided."""
    from_s: float | None = None
    until_s: float | None = None


ANY_DECISION = DecisionQuery()


def _asked(query: DecisionQuery) -> list[ColumnElement[bool]]:
    before, target = decisions.c.previous_workers, decisions.c.target_workers
    directions = {"up": target > func.coalesce(before, 0), "down": target < before, "same": target == before}
    wanted = [] if query.direction is None else [directions[query.direction]]
    if query.direction in {"up", "down"}:
        wanted.append(target.is_distinct_from(before))  # as the index of changes has it
    if query.pool is not None:
        wanted.append(decisions.c.pool == query.pool)
    if query.reason is not None:
        wanted.append(decisions.c.binding == query.reason)
    if query.from_s is not None:
        wanted.append(decisions.c.decided_at >= func.to_timestamp(query.from_s))
    if query.until_s is not None:
        wanted.append(decisions.c.decided_at < func.to_timestamp(query.until_s))
    return wanted


async def list_decisions(
    conn: AsyncConnection, *, query: DecisionQuery = ANY_DECISION, limit: int = 50, before: str | None = None
) -> list[StoredDecision]:
    """Decisions, newest first: those that are asked for, from the one after the cursor ``before`` on.

    Raises:
        Invalid: ``before`` is no cursor.
    """
    asked = select(decisions).where(*_asked(query))
    page = page_of(asked, decisions.c.decided_at, decisions.c.decision_id, limit=limit, before=before)
    return [_stored(row) for row in await conn.execute(page)]


async def decision_at(conn: AsyncConnection, pool: str, *, at_s: float) -> StoredDecision | None:
    """The decision of ``pool`` that held at ``at_s``; ``None`` where none of the day before is kept."""
    just_after_s = at_s + MICROSECOND_S  # what was decided at that very moment held
    query = DecisionQuery(pool=pool, from_s=max(0.0, at_s - LATEST_WITHIN.total_seconds()), until_s=just_after_s)
    return next(iter(await list_decisions(conn, query=query, limit=1)), None)


async def latest_decisions(conn: AsyncConnection) -> dict[str, StoredDecision]:
    """The newest decision of each pool that has a profile and was decided within a day."""
    newest = lateral(
        select(decisions)
        .where(decisions.c.pool == profiles.c.pool, decisions.c.decided_at > func.now() - LATEST_WITHIN)
        .order_by(decisions.c.decided_at.desc(), decisions.c.decision_id.desc())
        .limit(1)
    )
    rows = await conn.execute(select(newest).select_from(profiles).join(newest, true()))
    return {row.pool: _stored(row) for row in rows}


def _stored(row: Row[Any]) -> StoredDecision:
    return taken_from(StoredDecision, row, decision=from_mapping(Decision, row.body))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
