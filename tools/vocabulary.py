"""How often the code says *tell*, *hear*, *door*, *harm* and *look* where the field has a plainer word.

    .venv/bin/python tools/vocabulary.py [WORD]      # counts a folder and word; with WORD, each place

Words of identifiers (definitions, arguments, assigned names, attributes) and of docstrings count, in all their forms.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("service", "sparkjobs", "tests", "benchmarks")

# The word -> its forms, and what to write in their place (docs/glossary.md).
PRIVATE = {
    "tell": ({"tell", "tells", "telling", "told", "untold"}, "report, send, log, notify"),
    "hear": ({"hear", "hears", "hearing", "heard", "unheard"}, "receive, received"),
    "door": ({"door", "doors"}, "endpoint, server, API, listener"),
    "harm": ({"harm", "harms", "harmed", "harming"}, "inject a fault, fault, chaos test"),
    "look": ({"look", "looks", "looked", "looking", "lookout"}, "poll, scan, evaluate, reconcile"),
}
_WORD_OF = {form: word for word, (forms, _) in PRIVATE.items() for form in forms}

# Where the word has its ordinary meaning.
ALLOWED = re.compile(
    r"look(?:s|ed|ing)?[ _]up|looks? like|harmless"
    r"|is_being_told"  # a key of the agent's state folder, which older versions wrote and read
    r"|harm\.py|harms\.md|``harms``",  # names of files
    flags=re.IGNORECASE,
)
GENERATED = ("wire/v1", "client/v1")

_PIECES = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of a private word: which, where, and the identifier or the line of the docstring that has it."""

    word: str
    where: str
    text: str


def is_generated(path: Path) -> bool:
    """Whether a generator wrote a file or the files of a folder."""
    return any(folder in path.as_posix() for folder in GENERATED)


def files_of(root: Path, folder: str) -> list[Path]:
    """The Python files below a folder of a checkout that people write."""
    return [path for path in sorted((root / folder).rglob("*.py")) if not is_generated(path)]


def uses() -> Iterator[Use]:
    """Every use in the code of this repository."""
    for path in (path for folder in FOLDERS for path in files_of(ROOT, folder)):
        yield from uses_in(path.read_text(), str(path.relative_to(ROOT)))


def uses_in(source: str, name: str) -> Iterator[Use]:
    """Every use in one module."""
    for text, line in _texts(ast.parse(source)):
        for found in _words(text):
            yield Use(word=found, where=f"{name}:{line}", text=text.strip())


def counted(found: Iterator[Use]) -> dict[str, Counter[str]]:
    """Folder -> word -> how often."""
    counts: dict[str, Counter[str]] = {folder: Counter() for folder in FOLDERS}
    for use in found:
        counts[use.where.split("/", 1)[0]][use.word] += 1
    return counts


def _words(text: str) -> Iterator[str]:
    for piece in _PIECES.findall(ALLOWED.sub(" ", text)):
        if word := _WORD_OF.get(piece.lower()):
            yield word


def _texts(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Each name where it is made, and each line of each docstring."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield from ((line, node.lineno + number) for number, line in enumerate(text.splitlines()))


def main() -> None:
    """Print the counts, or every place of one word."""
    if sys.argv[1:]:
        for use in uses():
            if use.word == sys.argv[1]:
                print(f"{use.where}  {use.text}")
        return
    for folder, counts in counted(uses()).items():
        print(f"{folder:<11}", "  ".join(f"{word} {counts[word]}" for word in PRIVATE))


if __name__ == "__main__":
    main()
