"""Runs of `headway demo`: what it took beside other ways to size the pools, run after run and their medians.

Each run is a line of the ledger beside this file. A call makes as many as are missing for this commit and these words:
it can be ended at any moment, and the next goes on from there. Figures count only from a machine that has nothing else
to do.

    python benchmarks/demo.py --runs 5
    python benchmarks/demo.py --runs 5 --words "--workload bursts"
    python benchmarks/demo.py --runs 1 --words "--chaos"
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench import machine
from code_revision import code_revision
from options import positive_count

LEDGER = Path(__file__).parent / "results" / "demo.jsonl"
RUN_WITHIN_S = 1200.0
WAYS = ("headway", "peak", "keda", "best_fixed")

Line = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--runs", type=positive_count, default=5, help="how many of this commit the ledger shall have (5)"
    )
    parser.add_argument("--words", default="", help="more words for `headway demo`, as in '--workload bursts'")
    parser.add_argument("--ledger", type=Path, default=LEDGER, help=f"where runs are kept ({LEDGER.name})")
    options = parser.parse_args()
    commit = code_revision()
    print(f"{machine()}, commit {commit}")
    while len(runs := _kept(options.ledger, commit, options.words)) < options.runs:
        line = {"commit": commit, "words": options.words, **_run(options.words)}
        with options.ledger.open("a") as ledger:
            ledger.write(json.dumps(line) + "\n")
        print(_text(line), flush=True)
    _summary(runs)
    return 0


def _kept(ledger: Path, commit: str, words: str) -> list[Line]:
    if not ledger.exists():
        return []
    lines = [json.loads(text) for text in ledger.read_text().splitlines()]
    return [line for line in lines if line["commit"] == commit and line["words"] == words]


def _run(words: str) -> Line:
    """One demo, from an empty data folder."""
    with tempfile.TemporaryDirectory(prefix="headway-bench-demo-") as folder:
        out = Path(folder) / "report.json"
        argv = [sys.executable, "-m", "headway", "demo", "--plain", "--no-browser", *shlex.split(words)]
        argv += ["--data-dir", f"{folder}/data", "--report", str(out)]
        began_s, load_1m = time.time(), os.getloadavg()[0]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_WITHIN_S, check=False)
        if done.returncode != 0 or not out.exists():
            raise SystemExit(f"the demo ended with {done.returncode}:\n{done.stdout.decode()[-4000:]}")
        report = json.loads(out.read_text())
    return {
        "began_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began_s)),
        "took_s": round(time.time() - began_s - report["ready_s"], 1),
        "load_1m_before": round(load_1m, 2),
        "load_1m_after": round(os.getloadavg()[0], 2),
        **{name: report[name] for name in ("jobs", "lost_jobs", "jobs_started_again", "ready_s", "worker_seconds")},
        "workers_started": report["workers_started"],
        "workload": report["workload"]["name"],
        "queues": report["queues"],
        "comparison": report["comparison"],
        "faults": report["faults"],
    }


def _text(line: Line) -> str:
    rows = {row["way"]: row for row in line["comparison"]}
    costs = ", ".join(f"{way} {_cost(rows[way])}" for way in WAYS if way in rows)
    in_time = " and ".join(f"{100 * (queue['picked_up_in_time_fraction'] or 0):.1f} %" for queue in line["queues"])
    starts = rows["headway"]["starts"]
    return (
        f"{line['began_at']}: {in_time} in time, worker-seconds {costs}; {starts} starts; load {line['load_1m_before']}"
    )


def _cost(row: Line) -> str:
    return f"{row['worker_seconds']:.0f} (× {row['times_headway']})"


def _summary(runs: list[Line]) -> None:
    for way in WAYS:
        found = [row for line in runs for row in line["comparison"] if row["way"] == way]
        ratios = sorted(row["times_headway"] for row in found)
        seconds = median(row["worker_seconds"] for row in found)
        in_time = median(row["picked_up_in_time_fraction"] for row in found)
        starts = median(row["starts"] for row in found)
        print(
            f"{way}: median of {len(found)} runs: {100 * in_time:.2f} % in time, {seconds:.0f} worker-seconds, "
            f"{starts:g} starts; × Headway {median(ratios):.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
