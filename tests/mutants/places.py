"""Finds the place of a mistake in a module's syntax tree, so that a new format or a moved line does not lose it.

A place is a function and a pattern as Python is written:

- An expression, or statements that follow one another.
- ``...`` in it stands for any expression, or for any number of arguments, operands or statements. In the replacement it
  stands for the same ones.
- A string alone is a part of one string in the function, whatever spaces and line breaks are between its words.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
NOT_COMPARED = frozenset({"ctx", "kind", "type_comment"})  # how a name is used, how a string is written


class Change(Protocol):
    """One place, and what becomes of it."""

    @property
    def within(self) -> str:
        """``"function"``, ``"Class.method"``, or empty for a place outside of all functions."""

    @property
    def right(self) -> str:
        """The pattern."""

    @property
    def wrong(self) -> str:
        """Its replacement, empty where statements are left out."""


class NotOnce(LookupError):
    """A pattern is nowhere in its function, or more than once."""


def changed(source: str, change: Change) -> str:
    """The source of a module with ``wrong`` in the one place of ``right``. Raises ``NotOnce``."""
    tree = ast.parse(source)
    place_of(change, tree).write()
    return ast.unparse(tree)


def place_of(change: Change, tree: ast.Module) -> "Place":
    """The one place of ``right``. Raises ``NotOnce``."""
    pattern = _pattern_of(change)
    found = [place for scope in _scopes(tree, change.within) for place in pattern.places_in(scope)]
    if len(found) != 1:
        raise NotOnce(f"{change.within or 'the module'} has {len(found)} places of: {change.right}")
    return found[0]


@dataclass(slots=True)
class Place:
    """``count`` entries of a list from ``key`` on, or the child of a node that has this name."""

    holder: Any
    key: str | int
    replacement: Sequence[ast.AST | str]
    count: int = 1
    rests: list[list[ast.AST]] = field(default_factory=list)
    """What each ``...`` stands for, in their order."""

    def write(self) -> None:
        written = list(_filled(self.replacement, iter(self.rests)))
        if isinstance(self.key, str):
            setattr(self.holder, self.key, written[0])
        else:
            self.holder[self.key : self.key + self.count] = written


@dataclass(frozen=True, slots=True)
class _TreePattern:
    right: Sequence[ast.AST]
    wrong: Sequence[ast.AST]

    def places_in(self, scope: ast.AST) -> Iterator[Place]:
        for holder, name, value in _children(scope):
            if isinstance(value, list):
                yield from self._places_of(value)
            elif len(self.right) == 1:
                place = Place(holder, name, self.wrong)
                if _is_like(self.right[0], value, place.rests):
                    yield place

    def _places_of(self, nodes: list[ast.AST]) -> Iterator[Place]:
        count = len(self.right)
        for start in range(len(nodes) - count + 1):
            place = Place(nodes, start, self.wrong, count)
            pairs = zip(self.right, nodes[start : start + count], strict=True)
            if all(_is_like(*pair, place.rests) for pair in pairs):
                yield place


@dataclass(frozen=True, slots=True)
class _TextPattern:
    right: str
    wrong: str

    def places_in(self, scope: ast.AST) -> Iterator[Place]:
        words = re.compile(r"\s+".join(map(re.escape, self.right.split())))
        for holder in ast.walk(scope):
            if isinstance(holder, ast.Constant) and isinstance(holder.value, str):
                for found in words.finditer(holder.value):
                    value = holder.value[: found.start()] + self.wrong + holder.value[found.end() :]
                    yield Place(holder, "value", [value])


def _pattern_of(change: Change) -> _TreePattern | _TextPattern:
    right, wrong = ast.parse(change.right).body, ast.parse(change.wrong).body
    alone = [each.value for each in (*right, *wrong) if isinstance(each, ast.Expr)]
    if len(right) != 1 or len(wrong) != 1 or len(alone) != 2:
        return _TreePattern(right, wrong)
    texts = [each.value for each in alone if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return _TextPattern(*texts) if len(texts) == 2 else _TreePattern(alone[:1], alone[1:])


def _scopes(tree: ast.Module, within: str) -> list[ast.AST]:
    """All of that name, of which a property and its setter are two."""
    found: list[ast.AST] = [tree]
    for name in filter(None, within.split(".")):
        found = [each for scope in found for each in _definitions(scope) if each.name == name]
    return found


def _definitions(scope: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Those right below a scope, under an ``if`` or a ``try`` too."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, SCOPES):
            yield child
        else:
            yield from _definitions(child)


def _children(scope: ast.AST) -> Iterator[tuple[ast.AST, str, Any]]:
    for holder in ast.walk(scope):
        for name, value in ast.iter_fields(holder):
            if isinstance(value, (ast.AST, list)):
                yield holder, name, value


def _is_like(pattern: Any, value: Any, rests: list[list[ast.AST]]) -> bool:
    """Whether they are the same tree; what ``...`` stands for is added to ``rests``."""
    if _is_rest(pattern):
        rests.append([value])
        return isinstance(value, ast.expr)
    if isinstance(pattern, list) and isinstance(value, list):
        return _are_like(pattern, value, rests)
    if not isinstance(pattern, ast.AST):
        return type(pattern) is type(value) and pattern == value
    return type(pattern) is type(value) and all(
        _is_like(getattr(pattern, name, None), getattr(value, name, None), rests)
        for name in pattern._fields
        if name not in NOT_COMPARED
    )


def _are_like(pattern: list[Any], values: list[Any], rests: list[list[ast.AST]]) -> bool:
    rest = next((place for place, each in enumerate(pattern) if _is_rest(each)), None)
    if rest is None:
        return len(pattern) == len(values) and all(_is_like(*pair, rests) for pair in zip(pattern, values, strict=True))
    after = len(pattern) - rest - 1
    until = len(values) - after
    if until < rest or not _are_like(pattern[:rest], values[:rest], rests):
        return False
    rests.append(values[rest:until])
    return _are_like(pattern[rest + 1 :], values[until:], rests)


def _filled(nodes: Iterable[Any], rests: Iterator[list[ast.AST]]) -> Iterator[Any]:
    """The nodes with what ``...`` stood for."""
    for node in nodes:
        if _is_rest(node):
            yield from next(rests)
            continue
        if isinstance(node, ast.AST):
            for name, value in ast.iter_fields(node):
                if isinstance(value, list):
                    value[:] = _filled(value, rests)
                elif isinstance(value, ast.AST):
                    (filled,) = _filled([value], rests)
                    setattr(node, name, filled)
        yield node


def _is_rest(node: Any) -> bool:
    if isinstance(node, ast.Expr):
        node = node.value
    return isinstance(node, ast.Constant) and node.value is ...
