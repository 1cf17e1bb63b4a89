"""The audit log: who did what, when, with before and after; refused calls and failed sign-ins included.

Lines are only ever added. ``retention`` decides which of them go, and when.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from sqlalchemy import ColumnElement, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Invalid, printable
from headway.store.cursors import cursor_of, page_of
from headway.store.tables import audit_log

AUDIT_ANYTHING = "*"  # in a filter, for any characters
AUDIT_TIME_MAX_S = 2.0**37  # the year 6325: what is later Postgres may not take


class Actor(str):
    """Whom the audit log names, and from where that calls. It is the name: what keeps only that need not know."""

    __slots__ = ("address",)
    address: str | None
    """``None``: nobody called, as of what Headway does by itself."""

    def __new__(cls, name: str, *, address: str | None) -> Self:
        made = super().__new__(cls, name)
        made.address = address
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A line of the audit log. Its texts can be printed: names in them came from outside."""

    audit_id: UUID
    acted_at: datetime
    actor: str
    action: str
    subject: str
    before: Any
    after: Any
    address: str | None

    @property
    def cursor(self) -> str:
        """Names this line as the place from which the next page goes on."""
        return cursor_of(self.acted_at, self.audit_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Which lines somebody wants. ``None``: any; times are Unix seconds, and ``until_s`` is left out itself."""

    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    address: str | None = None
    from_s: float | None = None
    until_s: float | None = None


async def record_act(
    conn: AsyncConnection,
    *,
    actor: str,
    action: str,
    subject: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Write a line of the audit log; with the address of an ``Actor`` that has one."""
    await conn.execute(
        insert(audit_log).values(
            actor=printable(actor),
            action=action,
            subject=printable(subject),
            before=before,
            after=after,
            address=actor.address if isinstance(actor, Actor) else None,
        )
    )


async def list_acts(conn: AsyncConnection, asked: AuditQuery, *, limit: int, before: str | None = None) -> list[Act]:
    """At most ``limit`` lines, newest first, from the one after the cursor ``before`` on.

    Raises:
        Invalid: ``before`` is no cursor, or a time is none.
    """
    lines = select(audit_log).where(*_conditions(asked))
    query = page_of(lines, audit_log.c.acted_at, audit_log.c.audit_id, limit=limit, before=before)
    return [
        Act(**{name: _printable(value) for name, value in row.items()})
        for row in (await conn.execute(query)).mappings()
    ]


def _conditions(asked: AuditQuery) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    for name in ("actor", "action", "subject", "address"):
        wanted: str | None = getattr(asked, name)
        if wanted is not None:
            conditions.append(audit_log.c[name].like(_pattern(wanted), escape="\\"))
    for name in ("from_s", "until_s"):
        value: float | None = getattr(asked, name)
        if value is not None and not -AUDIT_TIME_MAX_S <= value <= AUDIT_TIME_MAX_S:
            raise Invalid(f"{name}={value:g} is no time in Unix seconds")
    if asked.from_s is not None:
        conditions.append(audit_log.c.acted_at >= func.to_timestamp(asked.from_s))
    if asked.until_s is not None:
        conditions.append(audit_log.c.acted_at < func.to_timestamp(asked.until_s))
    return conditions


def _pattern(wanted: str) -> str:
    """``wanted`` in SQL's words."""
    plain = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return plain.replace(AUDIT_ANYTHING, "%")


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_printable(each) for each in value]
    if isinstance(value, dict):
        return {printable(name): _printable(each) for name, each in value.items()}
    return value
