"""No code reads a sentence that was written for people: what code asks is a field, a state, or the class of an error.

A sentence is what `str`, or another of `TEXT_OF`, makes of an error, what is called by one of `SENTENCES`, and a name,
or a parameter of the module, to which either of them is given. To read one is to search it for words, to match it, or
to cut it at words.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.tree import ROOT, SERVICE, SPARK, modules

SENTENCES = frozenset(
    {"note", "sentence", "reason", "message", "detail", "details", "why", "summary", "cause", "breach", "problem"}
    | {"warning", "explanation", "bottleneck", "cure", "awaited", "overdue", "unable", "reply_text"}
)
TEXT_OF = frozenset({"str", "repr", "first_line", "why_failed"})
ERRORS = frozenset({"error", "exception", "exc", "err", "failure", "stderr", "reply_text", "java_exception"})
READING = frozenset(
    {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "rsplit"}
    | {"find", "rfind", "index", "rindex", "count"}
)
MATCHING = frozenset({"search", "match", "fullmatch", "findall", "finditer", "sub", "subn"})
CHANGING = frozenset({"lower", "casefold", "strip", "rstrip", "lstrip", "splitlines", "replace"})
OF_OTHERS = {
    "headway/agent/reporting/loading.py": "the last words of somebody's worker name the module that it could not load",
    "headway/cli/argparse_base.py": "argparse reports an unknown option in its message only",
    "headway/cli/typer_app.py": "so does click, with the choices that it knows",
    "headway/collect/rabbitmq/passive_declare.py": "the broker has one code for no queue and no exchange",
    "headway/collect/redis_client.py": "Redis has no codes: the first word of an answer is its error",
    "headway/emit/client.py": "gRPC has one code for a server that is away and one that hung up",
    "headway/store/engine.py": "before a session exists psycopg passes no SQLSTATE on",
    "headway/wire/channel.py": "gRPC reports a failed TLS handshake in its details only",
    "headway_spark/stream/kafka.py": "Spark has no class of error for a data source that is not installed",
    "headway_spark/stream/pipeline.py": "what a row raises comes out of the JVM as text, and so does a query's status",
}
"""Files that read words of other software, which gives nothing else; and which."""


def readings(tree: ast.Module) -> Iterator[int]:
    """The lines of a module in which a sentence is read."""
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    given = _parameters_given(tree, functions)
    for scope in (tree, *functions):
        known = given.get(getattr(scope, "name", ""), frozenset()) | _assigned(scope)
        yield from (node.lineno for node in _of_scope(scope) if isinstance(node, ast.expr) and _reads(node, known))


def _reads(node: ast.expr, known: frozenset[str]) -> bool:
    if isinstance(node, ast.Compare):
        return any(_compares(node, at, known) for at in range(len(node.ops)))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in MATCHING:
        return any(_is_sentence(each, known) for each in node.args)
    # Without a separator it is cut into words or lines, whatever these are.
    is_reading = node.func.attr in READING and bool(node.args)
    return is_reading and _is_sentence(node.func.value, known)


def _compares(node: ast.Compare, at: int, known: frozenset[str]) -> bool:
    left, right = [node.left, *node.comparators][at : at + 2]
    if isinstance(node.ops[at], ast.In | ast.NotIn):
        return _is_words(left) and _is_sentence(right, known)
    if isinstance(node.ops[at], ast.Eq | ast.NotEq):
        return any(_is_words(one, " ") and _is_sentence(other, known) for one, other in ((left, right), (right, left)))
    return False


def _is_words(node: ast.expr, having: str = "") -> bool:
    """Whether it is a text with ``having``, or a constant, which may be one."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and having in node.value
    return isinstance(node, ast.Name) and (node.id.isupper() or not having)


def _is_sentence(node: ast.AST, known: frozenset[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in SENTENCES or name in known
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name in SENTENCES
        case ast.Subscript(value=value):
            return _is_sentence(value, known)
        case ast.Call(func=ast.Name(id=made_by), args=[made, *_]) if made_by in TEXT_OF:
            return _last_name(made) in ERRORS
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), *_]):
            return name in SENTENCES
        case ast.Call(func=ast.Attribute(value=value, attr=name)):
            return name in SENTENCES or (name in READING | CHANGING and _is_sentence(value, known))
    return False


def _last_name(node: ast.AST) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _of_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or a module, without those of functions within, which are scopes of their own."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from _of_scope(child)


def _assigned(scope: ast.AST) -> frozenset[str]:
    """The names to which a function gives a sentence, in the order in which it does."""
    found: set[str] = set()
    for node in _of_scope(scope):
        if isinstance(node, ast.Assign | ast.NamedExpr | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            pairs = [(target, node.value) for target in targets]
            if isinstance(node.value, ast.Tuple) and isinstance(targets[0], ast.Tuple):
                pairs = list(zip(targets[0].elts, node.value.elts, strict=False))
            found |= {_last_name(target) for target, value in pairs if _is_sentence(value, frozenset(found))}
    return frozenset(found)


def _parameters_given(
    tree: ast.Module, functions: list[ast.FunctionDef | ast.AsyncFunctionDef]
) -> dict[str, frozenset[str]]:
    """Function of the module -> its parameters that the module itself gives a sentence."""
    by_name = {each.name: each for each in functions}
    found: dict[str, frozenset[str]] = {}
    for scope in (tree, *functions):
        known = _assigned(scope)
        for node in _of_scope(scope):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in by_name:
                names = [each.arg for each in by_name[node.func.id].args.args]
                given = {name for name, each in zip(names, node.args, strict=False) if _is_sentence(each, known)}
                given |= {each.arg for each in node.keywords if each.arg and _is_sentence(each.value, known)}
                found[node.func.id] = found.get(node.func.id, frozenset()) | given
    return found


def _name_of(path: Path) -> str:
    return str(path.relative_to(SERVICE.parent if path.is_relative_to(SERVICE) else SPARK.parent))


FOUND = {_name_of(path): sorted(set(readings(tree))) for root in (SERVICE, SPARK) for path, tree in modules(root)}


def test_no_file_reads_a_sentence_but_words_of_other_software() -> None:
    found = [f"{name}:{line}" for name, lines in FOUND.items() for line in lines if name not in OF_OTHERS]
    assert not found, "give what is asked for a field, a state or a class of error: " + ", ".join(found)


@pytest.mark.parametrize("name", OF_OTHERS)
def test_a_file_that_is_excepted_reads_a_sentence_still(name: str) -> None:
    assert FOUND[name], f"{name} is none of them any more"


@pytest.mark.parametrize(
    "source",
    [
        'def f(error):\n    return "certificate" in str(error)',
        'def f(error):\n    text = str(error)\n    return "Postgres" in text',
        'def f(error):\n    where, said = here(), str(error)[:9]\n    return said.startswith("WRONG")',
        'def cure(text):\n    return 1 if "login" in text else 2\ndef f(error):\n    return cure(str(error))',
        "def f(error):\n    return LATE in str(error).lower()",
        'def f(decision):\n    return any(note.startswith("no host") for note in decision.notes)',
        'def f(pool):\n    return pool["awaited"].partition(", draining for")[0]',
        'def f(error):\n    return [breach.removeprefix("faults: ") for breach in error.breaches]',
        'def f(row):\n    return re.search("[0-9]+ s", row.reason)',
        'def f(row):\n    return PATTERN.sub("#", row.get("message"))',
        'def f(row):\n    return row.detail == "no host has enrolled"',
        'def f(call):\n    return call.details().startswith("failed to connect")',
    ],
)
def test_a_reading_is_seen(source: str) -> None:
    assert list(readings(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "def f(error):\n    return isinstance(error, LoginRefused)",
        "def f(error):\n    return str(error) == last",  # printed once
        "def f(error):\n    return str(error).splitlines()[0]",  # printed in one line
        "def f(pool):\n    return 'stale' in pool.kinds",
        "def f(notes, note):\n    return note in notes",
        "def f(text):\n    return text.split(',')",  # what a person or a file gave
        "def f(row):\n    return row.reason is None",
        "def f(error):\n    return printed(str(error))\ndef printed(text):\n    return text + '.'",
    ],
)
def test_what_is_none_passes(source: str) -> None:
    assert list(readings(ast.parse(source))) == []


def test_the_sources_are_there() -> None:
    assert ROOT / "service/headway/errors.py" in {path for path, _ in modules(SERVICE)}
