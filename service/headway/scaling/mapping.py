"""How keys and values (TOML, YAML, JSON) become the fields of a value, and back. All mistakes are reported together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache, partial
from reprlib import Repr
from typing import Any, TypeGuard, TypeVar, get_args, get_origin

from headway.errors import BREACHES_LISTED_MAX, Invalid
from headway.scaling.keys import Form, Range, key_of, parts_of

Value = TypeVar("Value")


class Reading:
    """Reads values and gathers what is wrong with them."""

    def __init__(self, breaches: list[str] | None = None) -> None:
        self.breaches: list[str] = [] if breaches is None else breaches

    def fields_of(
        self, kind: type[Any], values: Any, *, where: str, left_out: Sequence[str] = (), joint: str = ": "
    ) -> tuple[dict[str, Any], frozenset[str]]:
        """The fields of ``kind`` that ``values`` give, and the names of those that are given wrongly, or under a name
        that looks like theirs: what would follow from that alone is no mistake more.

        A field's annotation says how it is written and between which bounds it lies. Of a value with fields of its own,
        those that are right are given even where others are wrong: it has the defaults in their place. ``joint`` stands
        between ``where`` and a key in a sentence.
        """
        if not isinstance(values, Mapping):
            self.breaches.append(f"{where}: expected keys and values, got {type(values).__name__}")
            return {}, frozenset(item.name for item in fields(kind))
        known = {key_of(item): item for item in fields(kind) if item.name not in left_out}
        taken: dict[str, Any] = {}
        wrong: set[str] = set()
        for key, value in values.items():
            if key not in known:
                meant = self._meant(key, known)
                self.breaches.append(f"{where}: unknown key {key!r};{_question(meant) or _listed(known)}")
                if meant is not None and meant not in values:
                    wrong.add(known[meant].name)
                continue
            name, before = known[key].name, len(self.breaches)
            taken[name] = self._value(value, known[key], within=f"{where}{joint}", key=key)
            if len(self.breaches) > before:
                wrong.add(name)
        for key, item in known.items():
            if key not in values and _is_required(item) and item.name not in wrong:
                purpose = next((rule.missing for rule in parts_of(item.type)[1] if isinstance(rule, Form)), "")
                self.breaches.append(f"{where}: {key} is missing{purpose and f': {purpose}'}")
                wrong.add(item.name)
        return {name: each for name, each in taken.items() if name not in wrong or is_dataclass(each)}, frozenset(wrong)

    def _meant(self, key: Any, known: Iterable[str]) -> str | None:
        # A guess takes 0.1 ms, and nobody is shown one of so many.
        return _nearest(key, known) if len(self.breaches) < BREACHES_LISTED_MAX else None

    def _value(self, value: Any, field: Field[Any], *, within: str, key: str) -> Any:
        where = f"{within}{key}"
        try:
            return self._of_kind(value, field.type, where=where)
        except Invalid as error:
            self.breaches += [f"{within}{breach}" for breach in error.breaches]
        except (TypeError, ValueError, OverflowError) as error:
            is_secret = any(isinstance(rule, Form) and rule.is_secret for rule in parts_of(field.type)[1])
            self.breaches.append(f"{where}{'' if is_secret else f'={_shown(value)}'}{_said(error)}")

    def _of_kind(self, value: Any, kind: Any, *, where: str) -> Any:
        """``value`` as a ``kind``. What is wrong inside it is in ``breaches``; what is wrong with it is raised."""
        kind, rules, is_optional = parts_of(kind)
        if value is None and is_optional:
            return None
        for rule in rules:
            if isinstance(rule, Form):
                return _within(rule.read(value), rules)
        if is_dataclass(kind):
            return self._nested(value, kind, where=where)
        if get_origin(kind) is tuple:
            return self._list(value, get_args(kind)[0], where=where)
        if get_origin(kind) is not None:
            return self._table(value, get_args(kind)[1], where=where)
        return _within(_plain(value, kind, rules), rules)

    def _nested(self, value: Any, kind: Any, *, where: str) -> Any:
        taken, wrong = self.fields_of(kind, value, where=where, joint=".")
        if any(item.name not in taken and _is_required(item) for item in fields(kind)):
            return None
        try:
            return kind(**taken)
        except Invalid as error:
            if not wrong:  # else it may be about a value that nobody wrote
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
                self.breaches.append(f"{where}.{key}={_shown(each)}{_said(error)}")
        return read


class _OutOfRange(ValueError):
    """A number breaks its bounds. The text goes on where ``key=value`` ends."""


def _within(value: Any, rules: Iterable[Any]) -> Any:
    for rule in rules:
        if isinstance(rule, Range) and value not in rule:
            raise _OutOfRange(str(rule))
    return value


def _said(error: Exception) -> str:
    return f" {error}" if isinstance(error, _OutOfRange) else f": {error}"


def range_breaches(value: Any, kind: Any, *, within: str = "") -> Iterator[tuple[str, str]]:
    """Each field of ``value``, which has those of ``kind``, that breaks the bounds of its annotation, and the sentence.

    The fields of values inside it are named with the path that leads there.
    """
    for name, rules, nested in _ranged(kind):
        found, path = getattr(value, name), f"{within}{name}"
        if isinstance(found, int | float):  # most are, and each change of a profile asks for all
            inside: Iterable[tuple[str, Any]] = ((path, found),)
        else:
            inside = () if found is None else _each(found, path)
        for where, each in inside:
            if nested is not None and each is not None:
                yield from ((name, text) for _, text in range_breaches(each, nested, within=f"{where}."))
            else:
                for rule in rules:
                    if each not in rule:
                        yield name, f"{where}={_shown(each)} {rule}"


def _each(value: Any, path: str) -> Iterable[tuple[str, Any]]:
    if isinstance(value, tuple):
        return ((f"{path}[{index}]", each) for index, each in enumerate(value))
    if isinstance(value, Mapping):
        return ((f"{path}.{key}", each) for key, each in value.items())
    return ((path, value),)


@lru_cache(maxsize=64)  # more than there are classes with bounds
def _ranged(kind: Any) -> tuple[tuple[str, tuple[Range, ...], Any], ...]:
    """The fields of ``kind`` that have bounds: their name, the bounds, and the type of the values inside."""
    found: list[tuple[str, tuple[Range, ...], Any]] = []
    for item in fields(kind):
        inner, rules, _ = parts_of(item.type)
        if get_origin(inner) is not None:
            inner, rules, _ = parts_of(get_args(inner)[0 if get_origin(inner) is tuple else 1])
        ranges = tuple(rule for rule in rules if isinstance(rule, Range))
        nested: Any = inner if is_dataclass(inner) else None
        if ranges or (nested and _ranged(nested)):
            found.append((item.name, ranges, nested))
    return tuple(found)


def to_mapping(value: Any) -> Any:
    """``value`` in what JSON and YAML know: dataclasses as mappings, tuples as lists, words as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_mapping(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, tuple):
        return [to_mapping(each) for each in value]
    if isinstance(value, Mapping):
        return {key: to_mapping(each) for key, each in value.items()}
    return value.value if isinstance(value, StrEnum) else value


def from_mapping(kind: type[Value], values: Mapping[str, Any]) -> Value:
    """The dataclass ``kind`` that ``to_mapping`` made ``values`` of, as JSON gives them back.

    What a later version has written is read as far as it goes: its keys are passed over, and its words stay text.

    Raises:
        TypeError: a field without a default is missing, or a value has another form.
    """
    made: Any = kind  # mypy takes no class of a protocol for hashable
    readers = _readers(made)
    return kind(
        **{
            name: value if value is None or readers[name] is None else readers[name](value)
            for name, value in values.items()
            if name in readers
        }
    )


@lru_cache(maxsize=64)  # more than there are classes that are stored
def _readers(kind: Any) -> dict[str, Any]:
    """Field of ``kind`` -> what makes its value of one of JSON; ``None`` where that is the value itself."""
    return {item.name: _reader(item.type) for item in fields(kind)}


def _reader(kind: Any) -> Callable[[Any], Any] | None:
    kind, _, _ = parts_of(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return partial(from_mapping, kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        words = {word.value: word for word in kind}
        return lambda word: words.get(word, word)
    if get_origin(kind) is not tuple:
        return None
    inner = _reader(get_args(kind)[0])
    return tuple if inner is None else lambda items: tuple(map(inner, items))


def _shown(value: Any) -> str:
    """A wrong value in its sentence: cut, since aliases of YAML make a billion values of a few lines."""
    cut = Repr()
    cut.maxlevel, cut.maxlist, cut.maxtuple, cut.maxdict = 3, 20, 20, 20
    cut.maxstring = cut.maxother = cut.maxlong = 200
    return cut.repr(value)


def near(given: Any, known: Iterable[str]) -> str:
    """A question after the name among ``known`` that ``given`` looks like, to stand in a sentence; else nothing.

    A name that begins with the words of ``given`` goes before those with similar letters.
    """
    return _question(_nearest(given, known))


def _nearest(given: Any, known: Iterable[str]) -> str | None:
    if not isinstance(given, str):
        return None
    names, words = tuple(known), _words(given)
    longer = [name for name in names if _words(name)[: len(words)] == words]  # letters alone take cpus for gpus
    found = get_close_matches(given, longer, n=1, cutoff=0.0) or get_close_matches(given, names, n=1)
    return found[0] if found else None


def _question(meant: str | None) -> str:
    return "" if meant is None else f" did you mean {str(meant)!r}?"


def _listed(known: Iterable[str]) -> str:
    return f" known: {', '.join(sorted(known))}"


def _words(name: str) -> list[str]:
    """The words of a name, each without the s of its plural."""
    return [word.removesuffix("s") for word in name.split("_")]


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether ``value`` is a number, which True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def _plain(value: Any, kind: Any, rules: Iterable[Range]) -> Any:
    """``value`` as a word of an enumeration, a number that ``rules`` may bound, or a text."""
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        if value not in list(kind):
            meant = near(value, kind)
            raise ValueError(f"expected one of {', '.join(kind)}{f';{meant}' if meant else ''}")
        return kind(value)
    if kind is bool:
        if not isinstance(value, bool):
            raise TypeError("expected true or false")
        return value
    if kind is float:
        if not is_number(value):
            raise TypeError(f"expected a number{_places(rules)}")
        return float(value)
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"expected a whole number{_places(rules)}")
        return value
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value


def _places(rules: Iterable[Range]) -> str:
    return "".join(f" {rule.place}" for rule in rules)
