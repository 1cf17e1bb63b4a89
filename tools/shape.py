"""The shape of a tree in figures: how large folders, files and functions are, and which names occur twice.

    .venv/bin/python tools/shape.py [ROOT ...]      # a column a checkout; without one, this tree

Generated code is left out. To compare with an older version: `git worktree add /tmp/before COMMIT`.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import quantiles

from vocabulary import PRIVATE, files_of, uses_in

ROOTS = {"headway": "service/headway", "headway_spark": "sparkjobs/headway_spark"}
MODULES_MAX = 16


def folders_of(root: Path) -> list[str]:
    """The packages directly below the roots, as ``service/headway/agent``; Spark's root is one."""
    below = sorted(path.parent for path in (root / ROOTS["headway"]).glob("*/__init__.py"))
    return [*(str(path.relative_to(root)) for path in below), ROOTS["headway_spark"]]


def classes_of(root: Path, package: str) -> Iterator[tuple[str, str]]:
    """Each class at the top of a module of a package, and each module, with where it is."""
    for path in files_of(root, package):
        where = str(path.relative_to(root))
        if path.stem != "__init__":
            yield path.name, where
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                yield node.name, where


def shape(root: Path) -> Iterator[tuple[str, str]]:
    """Each figure of one checkout, with its name."""
    files = [path for folder in ROOTS.values() for path in files_of(root, folder)]
    trees = {path: ast.parse(path.read_text()) for path in files}
    per_folder = Counter(path.parent for path in files)
    largest = ", ".join(f"{folder.name} {count}" for folder, count in per_folder.most_common(4))
    yield "modules", str(len(files))
    yield "folders", str(len(per_folder))
    yield "files a folder, most", largest
    yield f"folders above {MODULES_MAX}", str(sum(count > MODULES_MAX for count in per_folder.values()))
    yield "file names more than once", _repeated(path.name for path in files if path.name != "__init__.py")
    yield "class names more than once", _repeated(_classes(trees.values()))
    twice = [
        n for package in folders_of(root) for n, k in Counter(x for x, _ in classes_of(root, package)).items() if k > 1
    ]
    yield "names twice within a package", str(len(twice))
    yield "lines a function: median, p90, most", _spread(_functions(trees.values()))
    yield "lines a file: median, p90, most", _spread(_lines(path) for path in files)
    yield "own imports a file: median, p90, most", _spread(len(_imported(tree)) for tree in trees.values())
    yield "lines of source", f"{sum(map(_lines, files)):,}"
    yield "lines of tests", f"{sum(map(_lines, files_of(root, 'tests'))):,}"
    yield "words of docs", f"{sum(len(page.read_text().split()) for page in (root / 'docs').rglob('*.md')):,}"
    found = Counter(use.word for path in files for use in uses_in(path.read_text(), path.name))
    yield "private words in source", ", ".join(f"{word} {found[word]}" for word in PRIVATE)


def _repeated(names: Iterable[str]) -> str:
    return str(sum(count > 1 for count in Counter(names).values()))


def _classes(trees: Iterable[ast.Module]) -> Iterator[str]:
    return (node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))


def _functions(trees: Iterable[ast.Module]) -> Iterator[int]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = (node for tree in trees for node in ast.walk(tree) if isinstance(node, kinds))
    return ((node.end_lineno or node.lineno) - node.lineno + 1 for node in found)


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def _imported(tree: ast.Module) -> set[str]:
    """The modules of Headway that a module imports."""
    own = re.compile(rf"(?:{'|'.join(ROOTS)})\b")
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    return {name for name in names if own.match(name)}


def _spread(values: Iterable[int]) -> str:
    figures = sorted(values)
    cuts = quantiles(figures, n=10)
    return f"{cuts[4]:.0f}, {cuts[8]:.0f}, {figures[-1]}"


def main(roots: Sequence[str]) -> None:
    """Print a row a figure and a column a checkout."""
    columns = [dict(shape(Path(root).resolve())) for root in roots or [str(Path(__file__).parents[1])]]
    for name in columns[0]:
        print("|", " | ".join([name, *(column[name] for column in columns)]), "|")


if __name__ == "__main__":
    main(sys.argv[1:])
