"""The page of the proof: the newest finding of every case, a row per kind of worker."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from field.cases import Case, whole_matrix

HEAD = ("workers", "broker", "reporter", "heartbeat", "behind", "cases", "jobs", "workers seen", "asked", "down in s")
INTRO = """\
# Long jobs of real workers

Real workers run jobs of more than a minute, while their pool is made smaller, its agent and the leader are killed, and
short jobs come in. Each round is one `headway up` with a pool per kind of worker. A pool has three workers at first;
two of them have a long job. The files are those that `headway init` writes. A round is judged by the application's own
log, the list of processes, and the workers that the API shows once a second.

A round is recorded if, in all of its pools,

- each job was begun once, and came to its end;
- no busy worker was asked to stop while an idle one was there, by what could be known 3 s after a start and 5 s after
  an end;
- as many workers stayed as the jobs that ran needed, where a reporter or the broker says how many these are;
- no worker was shown as idle that had a job for 3 s;
- no more workers lived than the pool's floor, 30 s after its last job, or 15 s per worker where they do not report.

If nobody knows whether a worker is idle, the worker may be asked while it has a job, and finishes the job: `asked`
counts these. `down in s` is from the pool's last job to its floor. Written by `make proof-field`.
"""


def write_page(ledger: Path, page: Path) -> None:
    """The table of the newest row of each case in the ledger."""
    page.write_text(page_text(rounds_of(ledger)))


def rounds_of(ledger: Path) -> list[dict[str, Any]]:
    """The rounds of the ledger; none where it is not there yet."""
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return [json.loads(line) for line in lines if line]


def page_text(rounds: Sequence[Mapping[str, Any]]) -> str:
    """The page that these rounds make."""
    found = {row["case"]: (row, each) for each in rounds for row in each["cases"]}
    known = [(case, *found[case.name]) for case in whole_matrix() if case.name in found]
    if not known:
        return f"{INTRO}\nNo round has ended well yet.\n"
    loads = sorted(each["load_1m"] for _, _, each in known)
    commits = sorted({each["commit"] for _, _, each in known})
    figures = (
        f"{len(known)} cases of {len(whole_matrix())}, on {known[0][2]['cores']} cores at a load of {loads[0]:g} to "
        f"{loads[-1]:g}, by commit {', '.join(commits)}. "
        "[field.jsonl](../../tests/proof/results/field.jsonl) has the figures of each case."
    )
    kinds: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for case, row, _ in known:
        kinds.setdefault(_kind(case), []).append(row)
    lines = [_line(HEAD), _line(["---"] * len(HEAD)), *(_line((*kind, *_cells(rows))) for kind, rows in kinds.items())]
    return f"{INTRO}\n{figures}\n\n" + "\n".join(lines) + "\n"


def _kind(case: Case) -> tuple[str, ...]:
    reporter = ("yes" if case.has_reporter else "no") if case.is_celery else "–"
    heartbeat = ("yes" if case.has_heartbeat else "no") if case.is_celery else "–"
    return case.workers, case.broker, reporter, heartbeat, case.wrapper


def _cells(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    sums = [sum(row[name] for row in rows) for name in ("jobs", "workers", "asked_with_a_job")]
    falls_s = sorted(row["fell_in_s"] for row in rows)
    return f"{len(rows)}", *map(str, sums), f"{falls_s[0]:.0f}–{falls_s[-1]:.0f}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
