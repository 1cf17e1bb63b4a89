"""What import contracts cannot see: that ``scaling`` acts on nothing and keeps nothing."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.tree import SERVICE, modules

ACTING = {"open", "print", "input", "exec", "eval", "compile", "__import__", "globals", "setattr", "breakpoint"}
MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_CALLS = {"list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict"}
CACHES = {"cache", "lru_cache", "cached_property"}
CLOCKS = {"now", "utcnow", "today"}


def impurities(tree: ast.Module) -> Iterator[str]:
    """Each breach of purity in a module, as ``line: what``.

    A bounded cache of a function is none: whoever calls it cannot notice, and it cannot grow.
    """
    bounded = {id(each) for node in tree.body for each in _bounded_caches(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ACTING:
            yield f"{node.lineno}: calls {node.func.id}()"
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield f"{node.lineno}: {type(node).__name__.lower()} {', '.join(node.names)}"
        if isinstance(node, ast.Name | ast.Attribute) and _last_name(node) in CACHES and id(node) not in bounded:
            yield f"{node.lineno}: a cache remembers between calls"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS:
            yield f"{node.lineno}: asks for the time with {node.func.attr}()"
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield f"{node.lineno}: waits"
    for statement in tree.body:
        value = getattr(statement, "value", None)
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or value is None:
            continue
        is_names = isinstance(statement, ast.Assign) and _names(statement) == ["__all__"]
        if not is_names and (isinstance(value, MUTABLE) or _last_name(getattr(value, "func", None)) in MUTABLE_CALLS):
            yield f"{statement.lineno}: a mutable value at module level"


def _bounded_caches(node: ast.AST) -> Iterator[ast.AST]:
    """The ``lru_cache`` in each ``@lru_cache(maxsize=<number>)`` over a function of the module."""
    for decorator in getattr(node, "decorator_list", ()) if isinstance(node, ast.FunctionDef) else ():
        sizes = [each.value for each in getattr(decorator, "keywords", ()) if each.arg == "maxsize"]
        if sizes and isinstance(sizes[0], ast.Constant) and isinstance(sizes[0].value, int):
            yield decorator.func


def _names(statement: ast.Assign) -> list[str]:
    return [target.id for target in statement.targets if isinstance(target, ast.Name)]


def _last_name(node: ast.AST | None) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


@pytest.mark.parametrize(
    ("path", "tree"), [pytest.param(path, tree, id=path.stem) for path, tree in modules(SERVICE / "scaling")]
)
def test_scaling_neither_acts_nor_remembers(path: Path, tree: ast.Module) -> None:
    assert list(impurities(tree)) == []


@pytest.mark.parametrize(
    "breach",
    [
        "def f():\n    print('hello')",
        "def f():\n    return open('x').read()",
        "COUNT = 0\ndef f():\n    global COUNT\n    COUNT += 1",
        "SEEN = {}",
        "SEEN: dict[str, int] = dict()",
        "from collections import deque\nSEEN = deque()",
        "import functools\n@functools.lru_cache\ndef f(x): ...",
        "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef f(x): ...",
        "from functools import lru_cache\nclass C:\n    @lru_cache(maxsize=8)\n    def f(self): ...",
        "async def f(): ...",
        "from datetime import datetime\ndef f():\n    return datetime.now()",
    ],
)
def test_a_breach_of_purity_is_seen(breach: str) -> None:
    assert list(impurities(ast.parse(breach))) != []


@pytest.mark.parametrize(
    "harmless",
    [
        "RULES = (1, 2)",
        "__all__ = ['f']",
        "def f():\n    seen = {}\n    return seen",
        "from functools import lru_cache\n@lru_cache(maxsize=8)\ndef f(x): ...",
    ],
)
def test_what_is_pure_passes(harmless: str) -> None:
    assert list(impurities(ast.parse(harmless))) == []
