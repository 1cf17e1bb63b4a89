"""Makes each mistake of ``harms`` in a copy of the tree, puts a lab of that copy under fire, and says what turned red.

    .venv/bin/python tests/mutants/harm.py [--only WORDS] [--page docs/proofs/harms.md]

A mistake takes one to four minutes of the machine. It ends with 1 if one of them lives or applies no longer.
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

from copies import GONE, LIVED, copied, mistaken, run_on
from harms import CARE, MISTAKES, Mistake
from places import NotOnce, changed

COPIED = ("service", "migrations", "tools", "tests/lab", "tests/proof", "tests/support")
SEED = 1
SETTLES_WITHIN_S = 40.0  # half of what the proof grants, and longer than a settling ever took
RUN_S_MAX = 400.0
WORDS_SHOWN = 160
UNTRIED = "not tried yet"
RED = re.compile(r"^(?:E\s+)?AssertionError: (.+)", re.MULTILINE)

SOAKED = f"""
import random, sys
from pathlib import Path
from lab.installation import installation
from lab.soak import Soak
rng = random.Random({SEED})
with installation(Path(sys.argv[1]), rng=rng) as lab:
    lab.settles_within_s = {SETTLES_WITHIN_S}
    soak = Soak(lab, rng, only=frozenset(sys.argv[3:]) or None)
    soak.begin()
    while soak.faults < int(sys.argv[2]):
        soak.round()
    soak.end()
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one mistake."""

    mistake: Mistake
    by: str
    took_s: float
    load: float


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORDS", nargs="+", help="mistakes whose description has any of these words")
    parser.add_argument("--page", metavar="FILE", type=Path, help="write the table there as well")
    options = parser.parse_args(argv)
    found = []
    with tempfile.TemporaryDirectory(prefix="headway-harms-") as name:
        copy = Path(name)
        copied(COPIED, copy)
        for mistake in MISTAKES:
            if not options.only or any(words in mistake.what for words in options.only):
                found.append(_tried(mistake, copy))
                sys.stdout.write(f"{_row(found[-1])}\n")
                sys.stdout.flush()
            if options.page:
                options.page.write_text(_page(found, options.page), encoding="utf-8")
    return 1 if any(each.by in {LIVED, GONE} for each in found) else 0


def _tried(mistake: Mistake, copy: Path) -> Found:
    began_s = time.monotonic()
    try:
        with mistaken(copy / "service/headway" / mistake.module, lambda source: changed(source, mistake)):
            by = _red(mistake, copy)
    except NotOnce:
        return Found(mistake, GONE, 0.0, 0.0)
    return Found(mistake, by, time.monotonic() - began_s, os.getloadavg()[0])


def _red(mistake: Mistake, copy: Path) -> str:
    """What the lab said, or that it said nothing."""
    care = [
        "-m",
        "pytest",
        "-q",
        "-x",
        "-m",
        "proof",
        "--timeout=0",
        "--proof-minutes=0",
        "tests/proof/test_host_care.py",
    ]
    with tempfile.TemporaryDirectory() as logs:
        words = care if mistake.proof == CARE else ["-c", SOAKED, logs, str(mistake.faults), *mistake.kinds]
        done = run_on(copy, words, within_s=RUN_S_MAX)
    if done is None:
        return f"it was not through within {RUN_S_MAX:.0f} s"
    if done.returncode == 0:
        return LIVED
    said = RED.findall(done.stdout + done.stderr)
    if not said:
        raise RuntimeError(f"it ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return str(said[-1])[:WORDS_SHOWN]


def _row(found: Found) -> str:
    mistake = found.mistake
    by = re.sub(r"\b[0-9a-f]{32}\b", "…", found.by).replace("|", "\\|")
    return f"| {mistake.what} | `{mistake.module}` | {mistake.proof} | {found.took_s:.0f} | {found.load:.0f} | {by} |"


def _untried(mistake: Mistake) -> str:
    return f"| {mistake.what} | `{mistake.module}` | {mistake.proof} | | | {UNTRIED} |"


def _page(found: Sequence[Found], page: Path) -> str:
    """The page anew; what was not tried this time stays as it was recorded."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    rows = {each.mistake.what: _row(each) for each in found}
    before = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    recorded = {line.split(" | ")[0].removeprefix("| "): line for line in before if line.startswith("| ")}
    table = [{**recorded, **rows}.get(mistake.what, _untried(mistake)) for mistake in MISTAKES]
    lines = "\n".join(table)
    red = [line for line in table if not line.endswith((f"| {LIVED} |", f"| {GONE} |", f"| {UNTRIED} |"))]
    return f"""# Injected faults that the proofs find

Written by `.venv/bin/python tests/mutants/harm.py --page docs/proofs/harms.md`. Each row is one mistake made in a copy
of the tree. A lab of that copy (four hosts, real workers under jobs) went through a few faults of the kinds that bring
the mistake to light, or through the proof of host care; the last column is what turned red.

Not among them: an agent that obeys older epochs, and a control plane that sends them. Each refuses them, so that one
mistake alone does nothing; `tests/agent/test_orders.py` and `tests/store/test_leadership.py` show each side.

{len(red)} of {len(table)} found ({machine}; load is that of the machine).

| mistake | where | proof | seconds | load | what turned red |
| --- | --- | --- | --- | --- | --- |
{lines}
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
