"""How keys and values (YAML, JSON) become the fields of a value, and back. All mistakes are reported together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from enum import StrEnum
from reprlib import Repr
from types import UnionType
from typing import Any, TypeGuard, get_args, get_origin

from headway.errors import BREACHES_LISTED_MAX, Invalid


class Reading:
    """Reads values and gathers what is wrong with them."""

    def __init__(self) -> None:
        self.breaches: list[str] = []

    def fields_of(
        self, kind: type[Any], values: Any, *, where: str, left_out: Sequence[str] = ()
    ) -> tuple[dict[str, Any], frozenset[str]]:
        """The fields of ``kind`` that ``values`` give, and the names of those that are given wrongly.

        A field's metadata ``read`` gives the reader where its type does not imply one.
        """
        if not isinstance(values, Mapping):
            self.breaches.append(f"{where}: expected keys and values, got {type(values).__name__}")
            return {}, frozenset()
        known = {item.name: item for item in fields(kind) if item.name not in left_out}
        taken: dict[str, Any] = {}
        wrong: set[str] = set()
        for key, value in values.items():
            if key not in known:
                self.breaches.append(f"{where}: unknown key {key!r};{self._hint(key, known)}")
                continue
            before = len(self.breaches)
            taken[key] = self._value(value, known[key], where=where)
            if len(self.breaches) > before:
                wrong.add(key)
        missing = [name for name, item in known.items() if name not in values and _is_required(item)]
        self.breaches += [f"{where}: {name} is missing" for name in missing]
        wrong.update(missing)
        return {key: value for key, value in taken.items() if key not in wrong}, frozenset(wrong)

    def _hint(self, key: Any, known: Iterable[str]) -> str:
        if len(self.breaches) >= BREACHES_LISTED_MAX:
            return ""  # a guess takes 0.1 ms, and nobody is shown this one
        return near(key, known) or f" known: {', '.join(sorted(known))}"

    def _value(self, value: Any, field: Field[Any], *, where: str) -> Any:
        read: Callable[[Any], Any] | None = field.metadata.get("read")
        try:
            return read(value) if read else self._of_kind(value, field.type, where=f"{where}: {field.name}")
        except (TypeError, ValueError, OverflowError) as error:
            self.breaches.append(f"{where}: {field.name}={_shown(value)}: {error}")

    def _of_kind(self, value: Any, kind: Any, *, where: str) -> Any:
        """``value`` as a ``kind``. What is wrong inside it is in ``breaches``; what is wrong with it is raised."""
        if isinstance(kind, UnionType):
            given = next(each for each in get_args(kind) if each is not type(None))
            return None if value is None else self._of_kind(value, given, where=where)
        if is_dataclass(kind):
            return self._nested(value, kind, where=where)
        if get_origin(kind) is tuple:
            return self._list(value, get_args(kind)[0], where=where)
        if get_origin(kind) is not None:
            return self._table(value, get_args(kind)[1], where=where)
        return _plain(value, kind)

    def _nested(self, value: Any, kind: Any, *, where: str) -> Any:
        taken, wrong = self.fields_of(kind, value, where=where)
        if wrong or not isinstance(value, Mapping):
            return None
        try:
            return kind(**taken)
        except Invalid as error:
            self.breaches += [f"{where}: {breach}" for breach in error.breaches]

    def _list(self, value: Any, kind: Any, *, where: str) -> tuple[Any, ...]:
        what = "text" if kind is str else "keys and values"
        if not isinstance(value, list | tuple) or (kind is str and not all(isinstance(each, str) for each in value)):
            raise TypeError(f"expected a list of {what}")
        return tuple(self._of_kind(each, kind, where=f"{where}[{index}]") for index, each in enumerate(value))

    def _table(self, value: Any, kind: Any, *, where: str) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise TypeError("expected names and values")
        read: dict[str, Any] = {}
        for key, each in value.items():
            try:
                read[key] = self._of_kind(each, kind, where=f"{where}.{key}")
            except (TypeError, ValueError, OverflowError) as error:
                self.breaches.append(f"{where}.{key}={_shown(each)}: {error}")
        return read


def to_mapping(value: Any) -> Any:
    """``value`` in what JSON and YAML know: dataclasses as mappings, tuples as lists, words as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_mapping(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, tuple):
        return [to_mapping(each) for each in value]
    if isinstance(value, Mapping):
        return {key: to_mapping(each) for key, each in value.items()}
    return value.value if isinstance(value, StrEnum) else value


def _shown(value: Any) -> str:
    """A wrong value in its sentence: cut, since aliases of YAML make a billion values of a few lines."""
    cut = Repr()
    cut.maxlevel, cut.maxlist, cut.maxtuple, cut.maxdict = 3, 20, 20, 20
    cut.maxstring = cut.maxother = cut.maxlong = 200
    return cut.repr(value)


def near(given: Any, known: Iterable[str]) -> str:
    """A question after the name among ``known`` that ``given`` looks like, to stand in a sentence; else nothing."""
    found = get_close_matches(given, known, n=1) if isinstance(given, str) else []
    return f" did you mean {str(found[0])!r}?" if found else ""


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether ``value`` is a number, which True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def _plain(value: Any, kind: Any) -> Any:
    """``value`` as a word of an enumeration, a number or a text."""
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        if value not in list(kind):
            meant = near(value, kind)
            raise ValueError(f"expected one of {', '.join(kind)}{f';{meant}' if meant else ''}")
        return kind(value)
    if kind is float:
        if not is_number(value):
            raise TypeError("expected a number")
        return float(value)
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError("expected a whole number")
        return value
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value
