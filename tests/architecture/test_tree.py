"""The tree explains itself: small folders, one name a thing, and nothing private of a neighbour."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from shape import MODULES_MAX, ROOTS, classes_of, folders_of
from support.tree import ON_PYTHONPATH, SERVICE, SPARK, modules
from vocabulary import is_generated

PACKAGES = [folder for root in (SERVICE, SPARK) for folder in sorted({path.parent for path in root.rglob("*.py")})]
OWN = tuple(f"{root}." for root in ROOTS)


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: str(folder.relative_to(SERVICE.parents[1])))
def test_a_folder_has_few_modules_and_says_who_lives_there(folder: Path) -> None:
    if not is_generated(folder):
        assert len(list(folder.glob("*.py"))) <= MODULES_MAX
        named = folder.glob("*.py") if folder in ON_PYTHONPATH else [folder / "__init__.py"]
        assert all(ast.get_docstring(ast.parse(path.read_text())) for path in named)


@pytest.mark.parametrize("package", folders_of(SERVICE.parents[1]), ids=str)
def test_a_package_has_no_class_and_no_file_name_twice(package: str) -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for name, where in classes_of(SERVICE.parents[1], package):
        found[name].append(where)
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


@pytest.mark.parametrize("root", [SERVICE, SPARK], ids=["headway", "headway_spark"])
def test_nobody_imports_what_is_private_to_a_neighbour(root: Path) -> None:
    assert [breach for path, tree in modules(root) for breach in breaches(tree, module_of(path))] == []


def module_of(path: Path) -> str:
    """The dotted name of a file."""
    base = SERVICE.parent if path.is_relative_to(SERVICE) else SPARK.parent
    return ".".join(path.relative_to(base).with_suffix("").parts)


def breaches(tree: ast.Module, module: str) -> Iterator[str]:
    """Imports of private names of another module, and of modules that are private to another folder."""
    folder = module.rpartition(".")[0]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None or not f"{node.module}.".startswith(OWN):
            continue
        for alias in node.names:
            if alias.name.startswith("_") and not alias.name.startswith("__"):
                yield f"{module}:{node.lineno}: {node.module}.{alias.name} is private"
        private = [part for part in node.module.split(".") if part.startswith("_") and not part.startswith("__")]
        if private and not node.module.startswith(f"{folder}."):
            yield f"{module}:{node.lineno}: {node.module} is private to its folder"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("from headway.store.hosts.hosts import _rows", "_rows is private"),
        ("from headway.store.hosts._sql import rows", "is private to its folder"),
        ("from headway.store._sql import rows", "is private to its folder"),
        ("def f():\n    from headway_spark.stream._plan import x", "is private to its folder"),
    ],
)
def test_a_breach_is_seen(source: str, says: str) -> None:
    (found,) = breaches(ast.parse(source), "headway.store.pools.profiles")
    assert says in found


@pytest.mark.parametrize("source", ["from headway import __version__", "from headway.store.pools._sql import rows"])
def test_what_is_public_or_of_the_own_folder_passes(source: str) -> None:
    assert list(breaches(ast.parse(source), "headway.store.pools.profiles")) == []
