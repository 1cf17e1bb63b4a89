"""SQL is a named statement of one literal, or an expression of SQLAlchemy: docs/decisions/0036."""

import ast
import re
from collections.abc import Iterator

import pytest

from support.tree import SERVICE, SPARK, modules

SQL = re.compile(
    r"""
    ^\s*(
        select\s(.*\sfrom\s|\w+\() | insert\sinto\s | update\s\w+\s(as\s\w+\s)?set\s | delete\sfrom\s
        | with\s\w+\sas\s(materialized\s)?\( | truncate\s | lock\stable\s
        | copy\s\w+\s?(\(.*\)\s)?(from|to)\sstd | (un)?listen\s\S+$
        | (create|drop|alter)\s(temporary\s)?(table|(unique\s)?index|database|role|schema|view|extension|sequence)\s
        | set\s((local|session)\s)?\w+\s=
    )
    | \bexcluded\. | \bcast\(:\w | \bon\sconflict\s | \bnow\(\)\s[-+]\s | \bexists\s\(\s?select\s | \binterval\s'
    | ::(text|bigint|integer|jsonb|double\sprecision)\b
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
RUNS = {"execute", "executemany", "exec_driver_sql", "scalar", "scalars", "stream", "copy"}
TAKES_LITERALS = {"text", "literal_column", "SQL"}
PIECES = {"format", "join", "replace", "format_map"}


def _words(node: ast.AST) -> str:
    """The constant text of an expression, with ``{}`` for the rest of an f-string."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.BinOp):
        return _words(node.left) or _words(node.right)
    if isinstance(node, ast.List | ast.Tuple):
        return " ".join(map(_words, node.elts))
    return ""


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_composed(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(each, ast.FormattedValue) for each in node.values)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in PIECES and isinstance(node.func.value, ast.Constant | ast.JoinedStr | ast.BinOp)


def _composed(tree: ast.AST) -> Iterator[int]:
    """The lines where a text that looks like SQL is put together."""
    for node in ast.walk(tree):
        if _is_composed(node):
            parts = [node.func.value, *node.args] if isinstance(node, ast.Call) else [node]
            if any(SQL.search(_words(part)) for part in parts):
                yield node.lineno


def _unnamed(tree: ast.Module) -> Iterator[int]:
    """The lines where a statement runs that has no name, or where a statement is made of anything but one literal."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {"sqlalchemy", "psycopg"}
        for alias in node.names
    }
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        is_literal = isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
        root = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        if _name(node) in TAKES_LITERALS and getattr(root, "id", "") in imported:
            if not is_literal or (_name(node) != "literal_column" and id(node) in inside):
                yield node.lineno
        elif _name(node) in RUNS and (_is_composed(node.args[0]) or (is_literal and SQL.search(_words(node.args[0])))):
            yield node.lineno


@pytest.mark.parametrize("root", [SERVICE, SPARK], ids=lambda root: root.name)
def test_no_sql_is_put_together(root) -> None:
    found = [f"{path.relative_to(root)}:{line}" for path, tree in modules(root) for line in _composed(tree)]
    assert not found, "write the statement out, and bind what varies"


@pytest.mark.parametrize("root", [SERVICE, SPARK], ids=lambda root: root.name)
def test_every_statement_has_a_name_and_is_one_literal(root) -> None:
    found = [f"{path.relative_to(root)}:{line}" for path, tree in modules(root) for line in _unnamed(tree)]
    assert not found, "give the statement a name beside the function that runs it"


@pytest.mark.parametrize(
    "source",
    [
        'f"select {columns} from queues"',
        "\"select * from queues where queue = '%s'\" % queue",
        '"delete from {} where true".format(table)',
        '"select queue from queues where " + condition',
        '" ".join(["select queue from queues", "where true"])',
        '"update queues set seen_at = now()".replace("queues", table)',
        "f\"seen_at < now() - interval '{DAYS} days'\"",
        '", ".join(f"{name} = excluded.{name}" for name in names)',
        "f\"set lock_timeout = '{WAIT_S}s'\"",
        'f"listen {channel}"',
        'f"drop table {name}"',
    ],
)
def test_sql_that_is_put_together_is_found(source: str) -> None:
    assert list(_composed(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        'f"create it, or correct {setting}"',
        'f"select a queue: {names}"',
        '"insert {} after {}".format(one, other)',
        'f"from {first} to {last}, where known"',
        "_LEVEL.format(table=sql.Identifier(table))",
    ],
)
def test_prose_and_quoted_names_are_not_taken_for_it(source: str) -> None:
    assert not list(_composed(ast.parse(source)))


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('_READ = text("select 1")', []),
        ("_READ = text(_PART)", [2]),
        ('def read():\n    return text("select 1")', [3]),
        ('def read():\n    connection.execute("select now()")', [3]),
        ("def read():\n    connection.execute(_READ)", []),
        ('def read():\n    return literal_column("listed")', []),
        ('_LISTEN = sql.SQL("listen {}")', []),
        ("_LISTEN = sql.SQL(words)", [2]),
    ],
)
def test_a_statement_without_a_name_is_found(source: str, lines: list[int]) -> None:
    imports = "from sqlalchemy import literal_column, text; from psycopg import sql\n"
    assert list(_unnamed(ast.parse(imports + source))) == lines
