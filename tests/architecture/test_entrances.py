"""The pages by which a newcomer enters: each file and name on them exists, and the drawing is the tree.

A row that is stale is named.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp
import pytest

from support.tree import ROOT, SERVICE, SPARK
from vocabulary import PRIVATE

ARCHITECTURE = ROOT / "docs" / "architecture.md"
GLOSSARY = ROOT / "docs" / "glossary.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
OWN = {"headway", "headway_spark"}


def table(page: Path, first_heading: str) -> list[list[str]]:
    """The cells of each row of the page's table whose first column has this heading."""
    found = re.search(
        rf"^\| {re.escape(first_heading)} \|.*\n\|[ |-]+\|\n((?:\|.*\n)+)", page.read_text(), re.MULTILINE
    )
    assert found, f"{page.name} has no table that begins with '{first_heading}'"
    return [[cell.strip() for cell in line[1:].rstrip("|").split(" |")] for line in found[1].splitlines()]


def stale(page: Path, cell: str) -> Iterator[str]:
    """What a cell names that is not there: a linked file, or a name that its file does not define."""
    for target, names in re.findall(r"\]\(([^)#]+)\)((?: `[\w.]+`)*)", cell):
        path = page.parent / target
        if not path.exists():
            yield f"{target} does not exist"
            continue
        for name in re.findall(r"`([\w.]+)`", names):
            if name not in defined(path):
                yield f"{target} defines no '{name}'"


@cache
def defined(path: Path) -> frozenset[str]:
    """Every function, class, method and constant of a module."""
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    return frozenset(
        names | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    )


def rows(page: Path, heading: str) -> list:
    return [pytest.param(row, id=row[0][:40]) for row in table(page, heading)]


@pytest.mark.parametrize("row", rows(ARCHITECTURE, "hop"))
def test_a_hop_of_a_job_is_in_the_file_that_the_page_names(row: list[str]) -> None:
    hop, what, where = row
    assert list(stale(ARCHITECTURE, where)) == [], f"docs/architecture.md, hop {hop}: {what}"


@pytest.mark.parametrize("row", rows(GLOSSARY, "the field's word"))
def test_a_word_of_the_glossary_lives_in_the_file_that_it_names(row: list[str]) -> None:
    word, _, where = row
    assert list(stale(GLOSSARY, where)) == [], f"docs/glossary.md, row '{word}'"


def test_words_are_in_the_order_of_the_alphabet() -> None:
    words = [row[0].lower() for row in table(GLOSSARY, "the field's word")]
    assert words == sorted(words)


def test_private_words_that_are_counted_have_the_same_replacement_in_the_glossary() -> None:
    written = {row[0].split(", ")[0]: row[1] for row in table(GLOSSARY, "private")}
    assert {word: replacement for word, (_, replacement) in PRIVATE.items()}.items() <= written.items()


@pytest.mark.parametrize("row", rows(CONTRIBUTING, "I want to change"))
def test_what_to_open_for_a_change_exists(row: list[str]) -> None:
    change, where = row
    assert re.search(r"\]\(", where), f"CONTRIBUTING.md, '{change}' opens nothing"
    assert list(stale(CONTRIBUTING, where)) == [], f"CONTRIBUTING.md, row '{change}'"


@pytest.fixture(scope="module")
def arrows() -> dict[str, set[str]]:
    """Package -> the packages it imports from, by the source."""
    graph = grimp.build_graph(*OWN, cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules - OWN:
        used = {_package(each) for each in graph.find_modules_directly_imported_by(module)}
        found.setdefault(_package(module), set()).update(used - {_package(module), "headway"})
    return found


def _package(module: str) -> str:
    root, *parts = module.split(".")
    return parts[0] if root == "headway" and parts else root


@pytest.mark.parametrize("row", rows(ARCHITECTURE, "package"))
def test_the_arrows_of_a_package_are_those_of_the_source(arrows: dict[str, set[str]], row: list[str]) -> None:
    package, _, uses = row
    assert set(re.findall(r"`(\w+)`", uses)) == arrows.get(package.strip("`"), set()), (
        f"docs/architecture.md, row {package}"
    )


def test_every_package_has_its_row(arrows: dict[str, set[str]]) -> None:
    entries = [*SERVICE.iterdir(), SPARK]
    packages = {entry.stem for entry in entries if entry.suffix == ".py" or (entry / "__init__.py").exists()}
    assert {row[0].strip("`") for row in table(ARCHITECTURE, "package")} == packages - {"__init__"}


def test_the_layers_of_the_page_are_those_that_the_contracts_keep() -> None:
    drawn = re.search(r"```text layers\n(.*?)```", ARCHITECTURE.read_text(), flags=re.DOTALL)
    assert drawn is not None
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (kept,) = (contract["layers"] for contract in contracts if contract["id"] == "layers")
    assert [_layer(line) - {"headway_spark"} for line in drawn[1].splitlines()] == [_layer(line) for line in kept]


def _layer(line: str) -> set[str]:
    return {package.strip() for package in line.split("|")}


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("[a](../service/headway/nowhere.py)", "does not exist"),
        ("[a](../service/headway/errors.py) `Nothing`", "defines no 'Nothing'"),
    ],
)
def test_a_stale_row_is_named(cell: str, says: str) -> None:
    (found,) = stale(GLOSSARY, cell)
    assert says in found
