"""The commands of a page: its blocks of shell and Python, each with what the page says of running it.

A comment above a block, which no reader sees, says what ``make docs-run`` does with it:

    <!-- docs-run: with nothing -->                      run it as it is printed, in an empty folder
    <!-- docs-run: with hosts -->                        the same, where there is what ``scenes.py`` calls so
    <!-- docs-run: by tests/install/test_wheel.py -->    that test runs it
    <!-- docs-run: no, it restarts the machine -->       it cannot run, for this reason

The blocks of a page that want the same run one after the other in one shell. A comment above the page's first heading
is for all of its blocks that have none. A block without either is refused: nobody has said that it is safe to run.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LANGUAGES = ("bash", "sh", "python")
# Commands on a page that indents its code instead of fencing it.
_INDENTED = re.compile(r"(?:^    (?:make|headway|pip|git|docker|\.venv/bin/\S+) .*\n)+", flags=re.MULTILINE)
_FENCED = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^ *```", flags=re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<!-- docs-run: (.*?) -->\s*\Z", flags=re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of commands: where it is, what it says, and how it is run."""

    page: str
    line: int
    language: str
    text: str
    mark: str

    @property
    def where(self) -> str:
        """The page and the line of the block's first command."""
        return f"{self.page}:{self.line}"

    @property
    def scene(self) -> str | None:
        """What it runs in; ``None`` where nobody said that it runs from here."""
        kind, _, rest = self.mark.partition(" ")
        return rest if kind == "with" else None

    @property
    def test(self) -> str | None:
        """The test that runs it in place of this one."""
        kind, _, rest = self.mark.partition(" ")
        return rest if kind == "by" else None

    @property
    def reason(self) -> str | None:
        """Why nothing can run it."""
        kind, _, rest = self.mark.partition(", ")
        return rest if kind == "no" else None


def blocks_of(text: str, page: str) -> Iterator[Block]:
    """The blocks of a page that hold commands, in their order."""
    before, _, _ = text.partition("\n# ") if not text.startswith("# ") else ("", "", "")
    of_page = _mark(before)
    fenced = [*_FENCED.finditer(text)]
    spans = [(found.start(), found.end()) for found in fenced]
    indented = [
        found for found in _INDENTED.finditer(text) if not any(start <= found.start() < end for start, end in spans)
    ]
    for found in sorted([*fenced, *indented], key=lambda each: each.start()):
        is_fenced = found.re is _FENCED
        if is_fenced and found[2] not in LANGUAGES:
            continue
        language = "python" if is_fenced and found[2] == "python" else "bash"
        body, first = (found[3], found.start(3)) if is_fenced else (found[0], found.start())
        yield Block(
            page=page,
            line=text.count("\n", 0, first) + 1,
            language=language,
            text="".join(line.strip() + "\n" for line in body.splitlines()) if language == "bash" else body,
            mark=_mark(text[: found.start()]) or of_page,
        )


def _mark(before: str) -> str:
    found = _MARK.search(before[before.rfind("<!--") :] if "<!--" in before else "")
    return " ".join(found[1].split()) if found else ""


def pages(root: Path) -> list[Path]:
    """Every page that may hold commands. The changelog's are of their time, and records hold those of their runs."""
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    return sorted(page for page in found if page.name != "CHANGELOG.md" and "proofs" not in page.parts)
