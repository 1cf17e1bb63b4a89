"""How long the sentences are that a person reads: the pages, and what `--help` prints.

    .venv/bin/python tools/readability.py [HOW-MANY]     # the figures, and the longest sentences (20)

A sentence ends with a full stop, an exclamation or a question mark. Code, tables and headings are left out, and so are
list items that are no sentences: their fragments would flatter the figures. A code span counts as one word.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).parents[1]
CLI = ROOT / "service" / "headway" / "cli"
ENTRY = ROOT / "service" / "headway" / "__main__.py"

# Records of runs, written by programs; and the changelog, whose released sections stay as they were.
LEFT_OUT = ("docs/proofs/", "CHANGELOG.md")

_ENDS = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+(?=[\"'(\[*_`]*[A-Z0-9`])")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|cf|vs|approx)\.", flags=re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence, and the file and line in which its paragraph begins."""

    text: str
    where: str

    @property
    def words(self) -> int:
        """How many it has; a code span is one."""
        return len(re.sub(r"`[^`]*`", "code", self.text).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Words a sentence: the median and the 90th percentile, and how many sentences there are."""

    median_words: float
    p90_words: float
    sentences: int


def pages() -> list[Path]:
    """Every page that a person reads: those of the root and of docs/."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(page for page in found if not str(page.relative_to(ROOT)).startswith(LEFT_OUT))


def of_pages() -> list[Sentence]:
    """The sentences of every page."""
    return [sentence for page in pages() for sentence in of_markdown(page.read_text(), str(page.relative_to(ROOT)))]


def of_help() -> list[Sentence]:
    """The sentences that `--help` prints: of commands, of their options and of their arguments."""
    texts = [text for path in [ENTRY, *sorted(CLI.rglob("*.py"))] for text in _help_texts(path)]
    return [Sentence(text=text, where=where) for where, paragraph in texts for text in _sentences(paragraph)]


def of_markdown(text: str, name: str) -> Iterator[Sentence]:
    """The sentences of a page, with the line in which their paragraph begins."""
    text = re.sub(r"^ *```.*?^ *```", _blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", _blank, text, flags=re.DOTALL)
    for line, paragraph in _paragraphs(text):
        plain = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", paragraph)
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
        for sentence in _sentences(plain):
            yield Sentence(text=sentence, where=f"{name}:{line}")


def figures(sentences: Iterable[Sentence]) -> Figures:
    """Median and 90th percentile of ``sentences``, of which there are two at least."""
    lengths = [sentence.words for sentence in sentences]
    return Figures(median_words=median(lengths), p90_words=quantiles(lengths, n=10)[-1], sentences=len(lengths))


def longest(sentences: Iterable[Sentence], number: int) -> str:
    """The ``number`` longest sentences, one a line, with their words and where they stand."""
    ordered = sorted(sentences, key=lambda sentence: -sentence.words)[:number]
    return "\n".join(f"{sentence.words:4} words  {sentence.where}  {sentence.text}" for sentence in ordered)


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Each paragraph or list item on one line, after the number of its first line."""
    began, held = 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        stripped = line.strip()
        ends = not stripped or stripped.startswith(("#", "|")) or line.startswith("    ")
        begins = re.match(r"([-*]|\d+\.) ", stripped)
        if held and (ends or begins):
            yield began, " ".join(held)
            held = []
        if not ends:
            began = began if held else number
            held.append(re.sub(r"^([-*>]|\d+\.) ", "", stripped))


def _sentences(paragraph: str) -> Iterator[str]:
    """Those with an end; one word that ends with a stop is none."""
    text = _ABBREVIATIONS.sub(lambda found: found[0].replace(".", ""), " ".join(paragraph.split()))
    for piece in _ENDS.split(text):
        sentence = piece.strip(" *_")
        if re.search(r"[.!?:][\"')\]*_]*$", sentence) and len(sentence.split()) > 1:
            yield sentence


def _help_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Where and what: each ``help=``, each command's docstring, and the module's where it is a parser's description."""
    tree = ast.parse(path.read_text())
    name = str(path.relative_to(ROOT))
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "help":
            yield f"{name}:{node.value.lineno}", _constant(node.value)
        if isinstance(node, ast.keyword) and node.arg == "description" and isinstance(node.value, ast.Name):
            yield f"{name}:1", ast.get_docstring(tree) or ""
        if isinstance(node, ast.FunctionDef) and any(".command(" in ast.unparse(each) for each in node.decorator_list):
            yield f"{name}:{node.lineno}", (ast.get_docstring(node) or "").split("\n\n")[0]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Command":
            yield f"{name}:{node.lineno}", f"{_constant(node.args[-1])}."


def _constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def main() -> None:
    """Print the figures and the longest sentences."""
    number = int(sys.argv[1]) if sys.argv[1:] else 20
    for name, sentences in (("pages", of_pages()), ("--help", of_help())):
        found = figures(sentences)
        print(f"{name}: median {found.median_words:g}, p90 {found.p90_words:g} words in {found.sentences} sentences")
        print(longest(sentences, number), end="\n\n")


if __name__ == "__main__":
    main()
