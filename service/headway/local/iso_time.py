"""Moments as other programs write them."""

from datetime import UTC, datetime
from typing import Any


def unix_s(text: Any) -> float | None:
    """The moment of an ISO 8601 ``text`` in Unix seconds, in UTC where it names no zone; ``None`` of what is none."""
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
