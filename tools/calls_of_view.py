"""Which calls hand on the view that ``decide`` is given: whoever has it can work out anything of the pool once more.

    .venv/bin/python tools/calls_of_view.py

Follows the syntax trees of ``headway.scaling`` from ``decide``. A call counts if an argument of it is a ``PoolView``:
a parameter or an attribute that is annotated as one, what a function that returns one gave, or another name of any of
these. Functions are followed through their names and their modules; a strategy's ``advise`` is followed into that of
the default strategy. Each call site is printed, then the number of calls by module, and the sums.
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVICE = ROOT / "service"
PACKAGE = "headway.scaling"
BEGIN = (f"{PACKAGE}.decide", "decide")
DYNAMIC = {"advise": (f"{PACKAGE}.strategies.hybrid", "advise")}
"""Calls of an attribute that a strategy fills, and what the default strategy has there."""
VALUE = "PoolView"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """One call with a view among its arguments."""

    module: str
    line: int
    caller: str
    text: str


@dataclass(slots=True)
class Module:
    """The functions of one module, and what its names mean."""

    name: str
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name here -> module and name there; of a module the name there is empty."""


class Tree:
    """All modules of the package, and which attributes and functions of them are views."""

    def __init__(self, service: Path = SERVICE) -> None:
        self.modules: dict[str, Module] = {}
        self.attributes: set[str] = set()
        for file in sorted((service / PACKAGE.replace(".", "/")).rglob("*.py")):
            parts = file.relative_to(service).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self._read(name, ast.parse(file.read_text()))

    def _read(self, name: str, tree: ast.Module) -> None:
        module = self.modules[name] = Module(name=name)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE):
                module.imports |= {each.asname or each.name: (node.module, each.name) for each in node.names}
            elif isinstance(node, ast.ClassDef):
                fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and _is_value(each.annotation)]
                self.attributes |= {each.target.id for each in fields if isinstance(each.target, ast.Name)}
            elif isinstance(node, ast.FunctionDef):
                module.functions.setdefault(node.name, node)

    def function_of(self, module: Module, called: ast.expr) -> tuple[Module, ast.FunctionDef] | None:
        """The function of the package that ``called`` names in ``module``; ``None`` if it is another."""
        if isinstance(called, ast.Name):
            return self._named(module, called.id)
        if not isinstance(called, ast.Attribute):
            return None
        if isinstance(called.value, ast.Name) and called.value.id in module.imports:
            above, name = module.imports[called.value.id]
            inner = self.modules.get(f"{above}.{name}")
            if inner is not None:
                return self._named(inner, called.attr)
        if called.attr in DYNAMIC:
            there, name = DYNAMIC[called.attr]
            return self._named(self.modules[there], name)
        return self._named(module, called.attr)  # a method of a class of the same module

    def _named(self, module: Module, name: str) -> tuple[Module, ast.FunctionDef] | None:
        if name in module.functions:
            return module, module.functions[name]
        there, known = module.imports.get(name, ("", ""))
        return self._named(self.modules[there], known) if there in self.modules else None


def call_sites(tree: Tree) -> list[CallSite]:
    """Every call reached from ``decide`` with a view among its arguments, in the order of modules and lines."""
    module, name = BEGIN
    left, seen, found = [(tree.modules[module], tree.modules[module].functions[name])], set(), set()
    while left:
        where, function = left.pop()
        if (where.name, function.name) in seen:
            continue
        seen.add((where.name, function.name))
        views = _views_of(tree, where, function)
        for call in _calls_of(function):
            target = tree.function_of(where, call.func)
            left += [] if target is None else [target]
            left += _handed_on(tree, where, call)
            arguments = (*call.args, *(each.value for each in call.keywords))
            if any(_is_view(tree, where, each, views) for each in arguments):
                text = " ".join(ast.unparse(call).split())
                found.add(CallSite(module=where.name, line=call.lineno, caller=function.name, text=text))
    return sorted(found, key=lambda each: (each.module, each.line, each.text))


def _handed_on(tree: Tree, module: Module, call: ast.Call) -> Iterator[tuple[Module, ast.FunctionDef]]:
    """The functions that are arguments: ``map`` and ``sorted`` call them."""
    for each in (*call.args, *(keyword.value for keyword in call.keywords)):
        target = tree.function_of(module, each) if isinstance(each, ast.Name) else None
        if target is not None:
            yield target


def _calls_of(function: ast.FunctionDef) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Call))


def _views_of(tree: Tree, module: Module, function: ast.FunctionDef) -> frozenset[str]:
    """The names in ``function`` that are views: its parameters, and what is assigned from a view."""
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    views = {each.arg for each in arguments if each.annotation is not None and _is_value(each.annotation)}
    while True:
        more = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            for target, value in _pairs(node)
            if isinstance(target, ast.Name) and _is_view(tree, module, value, frozenset(views))
        }
        if more <= views:
            return frozenset(views)
        views |= more


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _is_view(tree: Tree, module: Module, node: ast.expr, views: frozenset[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in views
        case ast.Attribute(attr=name):
            return name in tree.attributes
        case ast.IfExp(body=body, orelse=other):
            return _is_view(tree, module, body, views) or _is_view(tree, module, other, views)
        case ast.Call(func=ast.Name(id="copied" | "replace"), args=[first, *_]):
            return _is_view(tree, module, first, views)
        case ast.Call(func=called):
            target = tree.function_of(module, called)
            return target is not None and target[1].returns is not None and _is_value(target[1].returns)
        case _:
            return False


def _is_value(annotation: ast.expr) -> bool:
    return any(isinstance(each, ast.Name) and each.id == VALUE for each in ast.walk(annotation))


def main() -> int:
    """Print the call sites and the sums. Returns the exit status."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    sites = call_sites(Tree())
    for each in sites:
        print(f"{each.module.removeprefix(PACKAGE + '.')}:{each.line} {each.caller}: {each.text}")
    by_module = Counter(each.module for each in sites)
    print()
    for name, count in by_module.most_common():
        print(f"{count:4} {name.removeprefix(PACKAGE + '.')}")
    print(f"\n{len(sites)} calls in {len(by_module)} modules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
