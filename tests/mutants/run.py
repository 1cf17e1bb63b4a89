"""Makes each mistake of ``by_hand``, or of ``guards``, in a copy of the tree and says which test finds it.

    .venv/bin/python tests/mutants/run.py [--only limits.py] [--page docs/proofs/mutants.md]
    .venv/bin/python tests/mutants/run.py --guards [--only fleet.py] [--page docs/proofs/guards.md]

The core takes a few minutes on one core, the guards half an hour. It ends with 1 if a mistake lives or no longer
applies to the code.
"""

import argparse
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from by_hand import MUTANTS, Mutant
from copies import GONE, LIVED, copied, mistaken, run_on
from guards import GUARDS, Guard

CORE_TESTS = Path("tests/scaling")
UNTRIED = "not tried yet"
RUN_S_MAX = 300.0  # a mutant that never comes to an end is found, too


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one mistake."""

    mutant: Mutant | Guard
    by: str
    took_s: float


def main(argv: Sequence[str]) -> int:
    options = _options(argv)
    known = GUARDS if options.guards else MUTANTS
    mutants = [mutant for mutant in known if options.only is None or options.only in f"{mutant.root}/{mutant.module}"]
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headway-mutants-") as name:
        copy = Path(name)
        copied(
            ("service", "sparkjobs", "migrations", "tests") if options.guards else ("service", str(CORE_TESTS)), copy
        )
        found = []
        for mutant in mutants:
            found.append(_tried(mutant, copy))
            sys.stdout.write(f"{_row(found[-1])}\n")
            sys.stdout.flush()
    lived = [each for each in found if each.by in {LIVED, GONE}]
    total = f"{len(found) - len(lived)} of {len(found)} found, in {time.monotonic() - began_s:.0f} s"
    sys.stdout.write(f"{total}\n")
    if options.page:
        page = _guards_page(found, options.page) if options.guards else _page(found, total)
        options.page.write_text(page, encoding="utf-8")
    return 1 if lived else 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guards", action="store_true", help="those of guards, in place of those of the core")
    parser.add_argument("--only", metavar="MODULE", help="the mistakes of one module")
    parser.add_argument("--page", metavar="FILE", type=Path, help="write the table there as well")
    return parser.parse_args(argv)


def _tried(mutant: Mutant | Guard, copy: Path) -> Found:
    began_s = time.monotonic()
    file = copy / mutant.root / mutant.module
    if mutant.right not in file.read_text(encoding="utf-8"):
        return Found(mutant, GONE, 0.0)
    with mistaken(file, mutant.right, mutant.wrong):
        tests = [f"{mutant.tests_in}/{name}" for name in mutant.tests]
        by = _finder(tests, copy) or (mutant.tests_in == str(CORE_TESTS) and _finder([str(CORE_TESTS)], copy)) or LIVED
    return Found(mutant, by, time.monotonic() - began_s)


def _finder(tests: Sequence[str], copy: Path) -> str | None:
    """The first test that fails."""
    words = ["-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", *tests]
    done = run_on(copy, words, within_s=RUN_S_MAX)
    if done is None:
        return f"any: it runs for more than {RUN_S_MAX:.0f} s"
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) tests/(?:scaling/)?(\S+)", done.stdout, re.MULTILINE)
    if failed is None:
        raise RuntimeError(f"pytest ended with {done.returncode} and names no test:\n{done.stdout}{done.stderr}")
    return failed[1]


def _row(found: Found) -> str:
    right, wrong = (" ".join(text.split()).replace("|", "\\|") for text in (found.mutant.right, found.mutant.wrong))
    by = found.by.replace("|", "\\|")
    return f"| `{found.mutant.name}` | `{right}` | {f'`{wrong}`' if wrong else 'left out'} | {by} |"


def _page(found: Sequence[Found], total: str) -> str:
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    rows = "\n".join(map(_row, found))
    return f"""# Mistakes that the tests find

Written by `.venv/bin/python tests/mutants/run.py --page docs/proofs/mutants.md`. Each row is one mistake made in a copy
of the core, a wrong sign, a wrong bound, one too many, the lesser for the greater, and the first test that failed.

{total} ({machine}).

| module | right | wrong | found by |
| --- | --- | --- | --- |
{rows}
"""


def _guards_page(found: Sequence[Found], page: Path) -> str:
    """The page anew; what was not tried this time stays as it was told."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    before = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    told = {line.rpartition(" | ")[0]: line for line in before if line.startswith("| `")}
    told |= {row.rpartition(" | ")[0]: row for row in map(_row, found)}
    keys = [_row(Found(guard, UNTRIED, 0.0)).rpartition(" | ")[0] for guard in GUARDS]
    table = [told.get(key, f"{key} | {UNTRIED} |") for key in keys]
    lines = "\n".join(table)
    missed = sum(not line.endswith((f"| {LIVED} |", f"| {GONE} |", f"| {UNTRIED} |")) for line in table)
    return f"""# Guards that the tests miss when they are gone

Written by `.venv/bin/python tests/mutants/run.py --guards --page docs/proofs/guards.md`. Each row is something that is
done first so that a crash in between is harmless, left out or moved in a copy of the tree, and the first test that
failed.

{missed} of {len(table)} found ({machine}).

| module | right | wrong | found by |
| --- | --- | --- | --- |
{lines}
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
