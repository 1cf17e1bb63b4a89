"""Places in a listing by time, newest first: a page goes on after the moment and the id of its last row."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Column, Select, tuple_

from headway.errors import Invalid

_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cursor_of(at: datetime, row_id: UUID) -> str:
    """Names a row as the place from which the next page goes on."""
    return f"{(at - _UNIX_EPOCH) // timedelta(microseconds=1)}-{row_id.hex}"


def page_of(
    rows: Select[Any], at: Column[datetime], row_id: Column[UUID], *, limit: int, before: str | None
) -> Select[Any]:
    """The newest ``limit`` of ``rows``, or of those after the cursor ``before``. Raises ``Invalid`` if it is none."""
    newest = rows.order_by(at.desc(), row_id.desc()).limit(limit)
    return newest if before is None else newest.where(tuple_(at, row_id) < tuple_(*_place_of(before)))


def _place_of(cursor: str) -> tuple[datetime, UUID]:
    try:
        micros, _, row_id = cursor.partition("-")
        return _UNIX_EPOCH + timedelta(microseconds=int(micros)), UUID(hex=row_id)
    except (ValueError, OverflowError) as error:
        raise Invalid(f"before={cursor!r} is no cursor: pass the `next` of an earlier answer") from error
