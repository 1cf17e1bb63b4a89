"""A cause is made, and each view is polled until it names the cause; the ledger, and the page made of it."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lab.programs import sees
from shown.cause import Cause
from shown.causes import CAUSES
from shown.site import WELL_WITHIN_S, Site
from shown.views import VIEWS, Seen, Views

SLACK_S = 1.5  # of the look itself: `top` is a process to start
POLL_S = 0.1
HEAD = ("what goes wrong", *VIEWS)
INTRO = """\
# What goes wrong, and what people see of it

Seconds from the cause until each view shows that something is wrong, and until it names the cause; then its words.
Each cause is made by `pytest -m proof tests/proof/test_shown.py -k CAUSE`, in an installation of real parts whose
roles nobody starts again: a control plane, collectors of two brokers, two hosts with an agent and RQ workers each,
Postgres and the pipeline. `top` is the command's own output, `health` the answer of `GET /v1/health`, the dashboard
what its page is sent. Alerts are those of [alerts.yml](../reference/alerts.yml), from when on they are pending; each
says after which time it fires.

Nothing is green after 15 s, and each view names the cause within 15 s: an unreachable host within its lease and 5 s,
what keeps more workers from starting or helping within 30 s, the share of failures and crash loops within 60 s.
"""


def judged(cause: Cause, site: Site, *, slack_s: float = SLACK_S, pauses: float = 1.0) -> dict[str, Any]:
    """Make ``cause`` in a site that is well, and mend it. Returns the row of the ledger.

    Args:
        cause: What is made.
        site: Where.
        slack_s: How much later than the cause allows a view may be.
        pauses: How much longer than usual views wait between polls, as a factor.

    Raises:
        AssertionError: a view is green for too long, or does not name the cause in time; the row is its note.
    """
    cause.prepare(site)
    with Views(site, pauses=pauses).polling() as views:
        well = cause.begins_away or sees(lambda: not views.wrong(), within_s=WELL_WITHIN_S)
        assert well, f"not well before {cause.name}: {views.wrong()}\n{site.words()}"
        views.news()
        seen = Seen(cause.names, began_s=time.monotonic())
        try:
            cause.begin(site)
            if cause.is_awaited:
                seen.began_s = time.monotonic()
            bound_s = max(cause.red_within_s, cause.named_within_s) + slack_s
            while not seen.is_complete and time.monotonic() < seen.began_s + bound_s:
                for view, poll in views.news():
                    seen.take(view, poll)
                time.sleep(POLL_S)
        finally:
            cause.end(site)
    row = {"cause": cause.name, "about": cause.about, "red_s": seen.red_s, "named_s": seen.named_s, "says": seen.says}
    late = [
        *(f"{view} is green" for view in VIEWS if seen.red_s.get(view, 1e9) > cause.red_within_s + slack_s),
        *(f"{view} does not name it" for view in VIEWS if seen.named_s.get(view, 1e9) > cause.named_within_s + slack_s),
    ]
    assert not late, f"{cause.name}: {'; '.join(late)}\n{json.dumps(row, indent=1)}"
    return row


def settle(site: Site, *, pauses: float = 1.0) -> None:
    """Return once every view is green again."""
    with Views(site, pauses=pauses).polling() as views:
        assert sees(lambda: not views.wrong(), within_s=WELL_WITHIN_S), f"{views.wrong()}\n{site.words()}"


def machine() -> dict[str, Any]:
    """What a row was measured on."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": len(os.sched_getaffinity(0)),
        "load_1m": round(os.getloadavg()[0], 1),
    }


def write_page(ledger: Path, page: Path) -> None:
    """The table of the newest row of each cause."""
    rows = {row["cause"]: row for row in map(json.loads, ledger.read_text().splitlines())}
    known = [rows[cause.name] for cause in CAUSES if cause.name in rows]
    lines = [_line(HEAD), _line(["---"] * len(HEAD)), *(_line(_cells(row)) for row in known)]
    loads = sorted(row["load_1m"] for row in known)
    commits = Counter(row["commit"][:7] for row in known)
    measured = ", ".join(f"{count} on {commit}" for commit, count in commits.most_common())
    figures = (
        f"{len(known)} causes of {len(CAUSES)}, by commit {measured}; on {known[0]['cores']} cores at a load "
        f"of {loads[0]} to {loads[-1]}. "
        "Rows of [shown.jsonl](../../tests/proof/results/shown.jsonl); `stand-in` there is a pipeline of the same rows "
        "without Spark."
    )
    page.write_text(f"{INTRO}\n{figures}\n\n" + "\n".join(lines) + "\n")


def _cells(row: Mapping[str, Any]) -> list[str]:
    cells = [row["about"]]
    for view in VIEWS:
        red_s, named_s = row["red_s"][view], row["named_s"][view]
        times = f"{named_s:.0f} s" if round(named_s) == round(red_s) else f"{red_s:.0f} s, named {named_s:.0f} s"
        cells.append(f"{times}: {row['says'][view]}")
    return cells


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"
