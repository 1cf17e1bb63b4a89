"""Values made of what others have by the same names: one thing has one name everywhere, so nothing is copied."""

from collections.abc import Iterable
from typing import Any, TypeVar

Value = TypeVar("Value")


def taken_from(kind: type[Value], *sources: Any, **differing: Any) -> Value:
    """The dataclass ``kind`` with each field from ``differing``, or else from the first of ``sources`` that has it."""
    fields: Iterable[str] = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return kind(**shared(fields, sources, differing))


def shared(names: Iterable[str], sources: Iterable[Any], differing: dict[str, Any]) -> dict[str, Any]:
    """``differing``, and what of the other ``names`` the first of ``sources`` has that has it."""
    found = dict(differing)
    for name in names:
        for source in sources:
            if name not in found and (value := getattr(source, name, found)) is not found:
                found[name] = value
    return found
