"""Live `headway up` against `headway simulate`: the same jobs, the same profile, side by side.

    python benchmarks/fidelity.py --runs 5 --page

Each workload has a calibration run with other jobs, from which behaviour is learned, and ``--runs`` runs that are
compared, each with its first tick at another moment of the workload. Every run is a line of ``--ledger``: interrupted,
it goes on where it ended. Let the machine do nothing else meanwhile. ``--only NAME`` takes one workload, ``--jobs N``
the first jobs of each, and ``--no-run`` shows what is in the ledger, rehearsed by the code as it is now.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Any

from live_runs.compared import Comparison, compared
from live_runs.jobs import overhead_s
from live_runs.live import TICK_S, LiveRun, live_run
from live_runs.page import document, table
from live_runs.system import System, installation
from live_runs.workloads import CALIBRATION, WORKLOADS, Workload
from options import positive_count

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "why" / "fidelity.md"
FOLDER = ROOT / ".headway" / "fidelity"
WARM_UP = "warm-up"
LEARNED_WITHIN_S = 65.0  # the leader writes down what it has learned once a minute


def main() -> None:
    """Run what is missing, then print or write what all of it came to."""
    options = _options()
    ledger = Ledger(options.ledger)
    workloads = {name: each.beginning(options.jobs) if options.jobs else each for name, each in WORKLOADS.items()}
    if not options.no_run:
        for name in options.only:
            _run(workloads[name], ledger, runs=options.runs, folder=options.folder)
    found = [each for workload in workloads.values() if (each := _compared(workload, ledger)) is not None]
    print("\n".join(table(found)))
    if options.page:
        PAGE.write_text("\n".join(document(found, machine=_machine(), beside=options.beside)) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=positive_count, default=5, help="that are compared, of each workload (5)")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=[*WORKLOADS], help=f"of {', '.join(WORKLOADS)}"
    )
    parser.add_argument("--jobs", type=positive_count, help="take only the first so many jobs of each workload")
    parser.add_argument("--ledger", type=Path, default=FOLDER / "ledger.jsonl", help="a line for each run")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where installations keep their data")
    parser.add_argument("--no-run", action="store_true", help="only show what is in the ledger")
    parser.add_argument("--beside", default="nothing else", help="what else the machine does, for the page")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.page and options.jobs:
        parser.error("--page is of whole workloads: leave --jobs out")
    return options


class Ledger:
    """What was run, a JSON line each."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self._rows = {(row["workload"], row["run"]): row for row in map(json.loads, lines)}

    def of(self, workload: str, run: int) -> dict[str, Any] | None:
        """The row of one run, if it was made."""
        return self._rows.get((workload, run))

    def runs(self, workload: str) -> list[dict[str, Any]]:
        """Those that are compared, in their order."""
        return [row for (name, run), row in sorted(self._rows.items()) if name == workload and run != CALIBRATION]

    def add(self, row: dict[str, Any]) -> None:
        """Keep one run."""
        self._rows[row["workload"], row["run"]] = row
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def _run(workload: Workload, ledger: Ledger, *, runs: int, folder: Path) -> None:
    missing = [number for number in (CALIBRATION, *range(runs)) if ledger.of(workload.name, number) is None]
    if not missing:
        return
    names = {
        number: f"{workload.name}-{'c' if number == CALIBRATION else number}" for number in (CALIBRATION, *range(runs))
    }
    with installation(
        folder / f"{workload.name}-{time.strftime('%H%M%S')}",
        template=workload.name,
        worker_class=workload.worker_class,
        queues=[WARM_UP, *names.values()],
    ) as system:
        before = _warm_up(system, workload)  # a new installation knows no start-ups, and its first evaluations are slow
        for number in missing:
            row = _one(system, workload, number, names[number], runs=runs)
            if number == CALIBRATION:  # what was learned of starts was learned of all of these
                row["spawned_at_s"] = [*before, *row["spawned_at_s"]]
            ledger.add(row)
            print(
                json.dumps({key: row[key] for key in ("workload", "run", "live", "load")}), file=sys.stderr, flush=True
            )


def _warm_up(system: System, workload: Workload) -> Sequence[float]:
    run = live_run(system, workload, workload.other_jobs()[:20], name=WARM_UP, queue=WARM_UP, phase_s=1.0)
    return [life.began_at_s for life in run.lives]


def _one(system: System, workload: Workload, number: int, name: str, *, runs: int) -> dict[str, Any]:
    is_calibration = number == CALIBRATION
    phase_s = 1.0 if is_calibration else (number + 0.5) * TICK_S / runs
    before = os.getloadavg()
    jobs = workload.other_jobs() if is_calibration else workload.jobs()
    run = live_run(system, workload, jobs, name=name, queue=name, phase_s=phase_s)
    (system.folder / f"{name}.json").write_text(json.dumps(run.details()))
    row = {
        "workload": workload.name,
        "run": number,
        "began_at_s": run.began_at_s,
        "phase_s": phase_s,
        "live": run.figures(objective_s=workload.objective.target_s),
        "load": [round(before[0], 2), round(os.getloadavg()[0], 2)],
        "spawned_at_s": [life.began_at_s for life in run.lives],
        "commit": _commit(),
    }
    return row | {"behaviour": _learned(system, name, run)} if is_calibration else row


def _learned(system: System, name: str, run: LiveRun) -> dict[str, Any]:
    """What the control plane has learned, and what dispatch takes where it could not: jobs must wait for that."""
    time.sleep(LEARNED_WITHIN_S)
    found = system.behaviour(name)
    if found["dispatch_overhead_s"] is None:
        found["dispatch_overhead_s"] = overhead_s(run.jobs)
    return found


def _compared(workload: Workload, ledger: Ledger) -> Comparison | None:
    calibration, rows = ledger.of(workload.name, CALIBRATION), ledger.runs(workload.name)
    return compared(workload, calibration, rows) if calibration and rows else None


def _commit() -> str:
    git = which("git")
    found = git and subprocess.run([git, "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() if found else ""


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
