"""Something else in the place of a name of a module: refused where it would not fit, or would change nothing."""

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from inspect import Parameter
from types import ModuleType
from typing import Any


class PatchMisfit(Exception):
    """A patch that its module has outgrown."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A value that takes the place of a module's constant or function.

    Raises:
        PatchMisfit: The module has no such name, no function of the module reads the name, or the value cannot be
            called like the function that it replaces.
    """

    module: ModuleType
    name: str
    value: Any

    def __post_init__(self) -> None:
        where = f"{self.module.__name__}.{self.name}"
        original = getattr(self.module, self.name, None)
        if original is None:
            raise PatchMisfit(f"{where} is not there any more")
        if self.name not in _names_read(self.module):
            raise PatchMisfit(f"{where} is read by no function of its module: a patch would change nothing")
        if callable(original) != callable(self.value):
            raise PatchMisfit(f"{where} is {original!r}, and the patch is {self.value!r}")
        if callable(original):
            _refuse_other_calls(where, original, self.value)

    def apply(self) -> None:
        """Put it there, for as long as the process lives."""
        setattr(self.module, self.name, self.value)


@cache
def _names_read(module: ModuleType) -> frozenset[str]:
    """The names that functions of a module read: what is read while it is imported has been read before a patch."""
    functions = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.FunctionDef)]
    return frozenset(
        node.id
        for function in functions
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )


def _refuse_other_calls(where: str, original: Callable[..., Any], value: Callable[..., Any]) -> None:
    for positional, named in _calls(original):
        try:
            inspect.signature(value).bind(*positional, **named)
        except TypeError as error:
            taken, given = inspect.signature(original), inspect.signature(value)
            raise PatchMisfit(f"{where}{taken} cannot be replaced by what takes {given}: {error}") from error


def _calls(function: Callable[..., Any]) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The shortest and the longest way to call ``function``, each argument by its own name."""
    parameters = inspect.signature(function).parameters.values()
    for counted in ([each for each in parameters if each.default is Parameter.empty], parameters):
        positional = [each.name for each in counted if each.kind <= Parameter.POSITIONAL_OR_KEYWORD]
        yield positional, {each.name: each.name for each in counted if each.kind is Parameter.KEYWORD_ONLY}
