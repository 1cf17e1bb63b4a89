"""Makes each mistake of ``by_hand``, or of ``guards``, in a copy of the tree and says which test finds it.

    .venv/bin/python tests/mutants/run.py [--only limits.py] [--page docs/proofs/mutants.md]
    .venv/bin/python tests/mutants/run.py --guards [--only manager.py] [--page docs/proofs/guards.md]

The core takes a quarter of an hour on two cores, the guards half an hour. The page is written after each mistake:
``--untried`` goes on where a run was ended. It ends with 1 if a mistake lives or no longer applies to the code.
"""

import argparse
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from by_hand import MUTANTS, Mutant
from copies import CORE_FOLDERS, CORE_TESTS, GONE, GUARD_FOLDERS, LIVED, OF_CORE, copied, mistaken, run_on, tested_on
from guards import GUARDS, Guard
from places import NotOnce, changed

UNTRIED = "not tried yet"
RUN_S_MAX = 1_800.0


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one mistake."""

    mutant: Mutant | Guard
    by: str


def main(argv: Sequence[str]) -> int:
    options = _options(argv)
    known = GUARDS if options.guards else MUTANTS
    mutants = [mutant for mutant in known if options.only is None or options.only in f"{mutant.root}/{mutant.module}"]
    page = _Page(options.page, GUARDS_HEAD if options.guards else HEAD, known)
    if options.untried:
        mutants = [mutant for mutant in mutants if page.is_untried(mutant)]
    found = []
    for each in _all_tried(mutants, GUARD_FOLDERS if options.guards else CORE_FOLDERS, at_once=options.at_once):
        found.append(each)
        page.write(each)
        sys.stdout.write(f"{_row(each)}\n")
        sys.stdout.flush()
    lived = [each for each in found if each.by in {LIVED, GONE}]
    sys.stdout.write(f"{len(found) - len(lived)} of {len(found)} found\n")
    return 1 if lived else 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guards", action="store_true", help="those of guards, in place of those of the core")
    parser.add_argument("--only", metavar="MODULE", help="the mistakes of one module")
    parser.add_argument("--untried", action="store_true", help="those that the page says are not tried yet")
    parser.add_argument("--at-once", metavar="COUNT", type=int, default=2, help="how many are tried at a time (2)")
    parser.add_argument("--page", metavar="FILE", type=Path, help="write the table there; what is not tried now stays")
    return parser.parse_args(argv)


def _all_tried(mutants: Sequence[Mutant | Guard], folders: Sequence[str], *, at_once: int) -> Iterator[Found]:
    """What became of each, in their order. Each one at a time has a copy of the tree to itself."""
    free: SimpleQueue[Path] = SimpleQueue()

    def tried(mutant: Mutant | Guard) -> Found:
        copy = free.get()
        try:
            return _tried(mutant, copy)
        finally:
            free.put(copy)

    with ExitStack() as stack:
        for _ in range(at_once):
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headway-mutants-")))
            copied(folders, copy)
            free.put(copy)
        with ThreadPoolExecutor(at_once) as pool:
            yield from pool.map(tried, mutants)


def _tried(mutant: Mutant | Guard, copy: Path) -> Found:
    tests = [f"{mutant.tests_in}/{name}" for name in mutant.tests]
    is_of_core = mutant.tests_in == CORE_TESTS
    try:
        with mistaken(copy / mutant.root / mutant.module, lambda source: changed(source, mutant)):
            by = _finder(tests, copy, is_of_core=is_of_core) or (
                is_of_core and _finder([CORE_TESTS], copy, is_of_core=True)
            )
    except NotOnce:
        return Found(mutant, GONE)
    return Found(mutant, by or LIVED)


WORDS = ("-q", "-x", "--tb=no", "-p", "no:cacheprovider")


def _finder(tests: Sequence[str], copy: Path, *, is_of_core: bool) -> str | None:
    """The first test that fails."""
    if is_of_core:
        done = tested_on(copy, [*WORDS, *OF_CORE, *tests], within_s=RUN_S_MAX)
    else:
        done = run_on(copy, ["-m", "pytest", *WORDS, *tests], within_s=RUN_S_MAX)
    if done is None:
        return f"any: it runs for more than {RUN_S_MAX:.0f} s"
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) tests/(?:scaling/)?(\S+)(.* Timeout )?", done.stdout, re.MULTILINE)
    if failed is None:
        raise RuntimeError(f"pytest ended with {done.returncode} and names no test:\n{done.stdout}{done.stderr}")
    return f"{failed[1]}, which does not end" if failed[2] else failed[1]


def _row(found: Found) -> str:
    right, wrong = (" ".join(text.split()).replace("|", "\\|") for text in (found.mutant.right, found.mutant.wrong))
    by = found.by.replace("|", "\\|")
    within = f"`{found.mutant.within}`" if found.mutant.within else ""
    return f"| `{found.mutant.name}` | {within} | `{right}` | {f'`{wrong}`' if wrong else 'left out'} | {by} |"


def _key(row: str) -> str:
    return row.rpartition(" | ")[0]


class _Page:
    """The table of all mistakes that are known; what is not tried this time stays as the page says."""

    def __init__(self, file: Path | None, head: str, known: Sequence[Mutant | Guard]) -> None:
        self._file, self._head = file, head
        before = file.read_text(encoding="utf-8") if file is not None and file.exists() else ""
        rows = {_key(line): line for line in before.splitlines() if line.startswith("| `")}
        untried = [_row(Found(mutant, UNTRIED)) for mutant in known]
        self._rows = {_key(row): rows.get(_key(row), row) for row in untried}

    def is_untried(self, mutant: Mutant | Guard) -> bool:
        return self._rows[_key(_row(Found(mutant, UNTRIED)))].endswith(f"{UNTRIED} |")

    def write(self, found: Found) -> None:
        """Have ``found`` in its row, and the page on the disk."""
        row = _row(found)
        self._rows[_key(row)] = row
        if self._file is None:
            return
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        missed = sum(line.endswith((f"| {LIVED} |", f"| {GONE} |", f"{UNTRIED} |")) for line in self._rows.values())
        lines = "\n".join(self._rows.values())
        self._file.write_text(
            f"""{self._head}
{len(self._rows) - missed} of {len(self._rows)} found ({machine}).

| module | function | right | wrong | found by |
| --- | --- | --- | --- | --- |
{lines}
""",
            encoding="utf-8",
        )


HEAD = """# Mistakes that the tests find

Written by `.venv/bin/python tests/mutants/run.py --page docs/proofs/mutants.md`. Each row is one mistake made in a copy
of the core, a wrong sign, a wrong bound, one too many, the lesser for the greater, and the first test that failed.
`...` is any expression, or any number of arguments, operands or statements.
"""
GUARDS_HEAD = """# Guards that the tests miss when they are gone

Written by `.venv/bin/python tests/mutants/run.py --guards --page docs/proofs/guards.md`. Each row is something that is
done first so that a crash in between is harmless, left out or moved in a copy of the tree, and the first test that
failed. `...` is any expression, or any number of arguments, operands or statements.
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
