"""Lengths of time in Postgres's own terms."""

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, case, func


def seconds(value: BindParameter[float] | float) -> ColumnElement[Any]:
    """An interval of so many seconds."""
    return func.make_interval(0, 0, 0, 0, 0, 0, value)  # seconds are the last of seven


def age_s(moment: ColumnElement[Any]) -> ColumnElement[Any]:
    """Seconds since then, 0 where it is still to come; ``NULL`` where the moment is."""
    # Of a NULL Postgres would make the greatest of the others, and "not known" must not become 0.
    return case((moment.is_not(None), func.greatest(0, func.extract("epoch", func.now() - moment))))
