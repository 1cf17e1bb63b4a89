"""Places in a listing by time, newest first: a page goes on after the moment and the id of its last row."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from headway.errors import Invalid

_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cursor_of(at: datetime, row_id: UUID) -> str:
    """Names a row as the place from which the next page goes on."""
    return f"{(at - _UNIX_EPOCH) // timedelta(microseconds=1)}-{row_id.hex}"


def place_of(cursor: str) -> tuple[datetime, UUID]:
    """The moment and the id of the row that ``cursor`` names. Raises ``Invalid`` where it is none."""
    try:
        micros, _, row_id = cursor.partition("-")
        return _UNIX_EPOCH + timedelta(microseconds=int(micros)), UUID(hex=row_id)
    except (ValueError, OverflowError) as error:
        raise Invalid(f"before={cursor!r} is no cursor: pass the `next` of an earlier answer") from error
