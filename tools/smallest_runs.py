"""`make scripts`: every script of `benchmarks/` and `tools/` at its smallest size, so that none rots.

    .venv/bin/python tools/smallest_runs.py [SCRIPT ...] [--lanes 2] [--within 600]

A script is a module that can be run: each needs a line in ``SMALLEST``. Figures of such runs mean nothing, as several
run at a time. A script that fails prints its last lines, the others go on, and the exit status is 1. One that needs
what this machine lacks is left out; with CI=true it has failed.
"""

import argparse
import ast
import os
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from in_time import NOT_ALL_RAN
from release import REFUSED

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "tools")
BOUNDED_RUN = Path(__file__).with_name("bounded_run.py")
# Not imported: with that folder on the path, the tests' folders of the same names could not be.
_STATUSES = runpy.run_path(str(ROOT / "benchmarks" / "exit_statuses.py"))
GOAL_MISSED, NOT_HERE = int(_STATUSES["GOAL_MISSED"]), int(_STATUSES["NOT_HERE"])
WITHIN_S = 600.0  # of one script, also beside a load of ten times the cores; a calm machine takes minutes for all
LAST_LINES = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallestRun:
    """How a script is called to do the least that is still all of what it does."""

    arguments: str = ""
    """Words as of a shell. ``{root}`` is this tree, ``{folder}`` an empty folder, where it also runs."""
    statuses: Sequence[int] = (0,)
    """Those of a run to the end."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """With ``{root}`` and ``{folder}``, too."""


TRACES = "{root}/service/headway/simulate/traces --only bursty_llm_code"
API = "{root}/docs/reference/openapi.json"
# Those that take longest come first: begun last, one would run on alone.
SMALLEST: Mapping[str, SmallestRun] = {
    "benchmarks/fidelity.py": SmallestRun(
        arguments="--only short --jobs 3 --runs 1 --ledger {folder}/ledger.jsonl --folder {folder}"
    ),
    "benchmarks/agents.py": SmallestRun(arguments="--agents 101 --seconds 1 --changes 2"),
    "benchmarks/demo.py": SmallestRun(arguments="--runs 1 --words '--for 5s' --ledger {folder}/ledger.jsonl"),
    "benchmarks/layouts.py": SmallestRun(
        arguments="--only frappe --seconds 5 --ledger {folder}/ledger.jsonl", statuses=(0, GOAL_MISSED)
    ),
    "benchmarks/wake.py": SmallestRun(arguments="--runs 1 --quiet 1 --idle 1"),
    "benchmarks/collect.py": SmallestRun(arguments="--seconds 3 --polls 2 --waiting-jobs 1000 --eta-jobs 1000"),
    "benchmarks/bulk.py": SmallestRun(arguments="--millions 0.1 --queues 10 --rounds 1 --kinds sketches stream"),
    "benchmarks/backtest.py": SmallestRun(arguments="--pools 1 --candidates 1"),
    "benchmarks/stream.py": SmallestRun(arguments="--cells 100x2 --warm 1 --seconds 3"),
    "benchmarks/hostile.py": SmallestRun(arguments="--seconds 1 --only half_calls --connections 20 --calls 10"),
    "benchmarks/dashboard.py": SmallestRun(arguments="--pools 2 --seconds 3", statuses=(0, GOAL_MISSED)),
    "tools/quick.py": SmallestRun(arguments="--within 20", statuses=(0, NOT_ALL_RAN)),
    "benchmarks/ablation.py": SmallestRun(
        arguments=f"--cells {{folder}} --terms bands-by-use weekly-recall --eliminate bands-by-use --loads metronome "
        f"--traces {TRACES}"
    ),
    "benchmarks/storage.py": SmallestRun(arguments="1 --kinds '1 job a minute'"),
    "benchmarks/sink.py": SmallestRun(arguments="10"),
    "benchmarks/answers.py": SmallestRun(
        arguments="--pools 2 --queues-with-history 1 --decision-days 1 --runs 1", statuses=(0, GOAL_MISSED)
    ),
    "benchmarks/queue_order.py": SmallestRun(
        arguments="--only celery-redis/round_robin dramatiq/default --workers 1 --urgent 2 --bulk 4"
    ),
    "benchmarks/command.py": SmallestRun(arguments="--queues 1 --runs 1"),
    "tools/shape.py": SmallestRun(),
    "tools/alert_files.py": SmallestRun(arguments="{folder}"),
    "tools/calls_of_view.py": SmallestRun(),
    "tools/vocabulary.py": SmallestRun(),
    "benchmarks/targets.py": SmallestRun(
        arguments=f"--cells {{folder}} --scenarios sla10 --strategies hybrid --traces {TRACES}"
    ),
    "benchmarks/loads.py": SmallestRun(
        arguments="--only square_wave --strategies hybrid --start-ups 2", statuses=(0, GOAL_MISSED)
    ),
    "benchmarks/simulate.py": SmallestRun(arguments="--jobs 1000 --strategies hybrid"),
    "benchmarks/agent.py": SmallestRun(arguments="--workers 2 --decisions 2 --seconds 1"),
    "benchmarks/emit.py": SmallestRun(arguments="--seconds 0.5"),
    "benchmarks/event_files.py": SmallestRun(arguments="{folder}/events --seconds 1 --rate 100"),
    "benchmarks/decide.py": SmallestRun(arguments="--runs 1 --pools 10"),
    # Where nobody listens: its jobs are made up.
    "benchmarks/reported_tasks_program.py": SmallestRun(
        arguments="0.5 20",
        # A pipe that is gone.
        environment={
            "HEADWAY_REPORTER_PIPE": "{folder}/pipe",
            "PYTHONPATH": "{root}/service/headway/workers/celery_reporter",
        },
    ),
    "benchmarks/reporting_program.py": SmallestRun(
        arguments="0.5 20", environment={"HEADWAY_URL": "http://127.0.0.1:1"}
    ),
    "tools/readability.py": SmallestRun(arguments="1"),
    "tools/release.py": SmallestRun(arguments="999.0.0 --check --root {root}", statuses=(0, REFUSED)),
    "tools/api_breaks.py": SmallestRun(arguments=f"{API} {API}"),
    "tools/in_time.py": SmallestRun(arguments="--cache {root}/tools/durations.json --table {folder}/durations.json"),
    "tools/bounded_run.py": SmallestRun(arguments="10 true"),
    "tools/smallest_runs.py": SmallestRun(arguments="--list"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one script."""

    script: str
    is_good: bool
    text: str
    """For a person, with the last lines of one that failed."""


def main() -> int:
    """Run the scripts. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", help="as benchmarks/wake.py; default: all")
    parser.add_argument("--lanes", type=int, default=2, help="how many run at a time (2)")
    parser.add_argument("--within", type=float, default=WITHIN_S, help="seconds that each may take (600)")
    parser.add_argument("--list", action="store_true", help="only print how each is called")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # not without ending what it began
    found = scripts_of(ROOT)
    if unknown := sorted(set(given.scripts) - set(found)):
        parser.error(f"{', '.join(unknown)}: not a script of {' or '.join(FOLDERS)}")
    if given.list:
        print("\n".join(f"{script} {run.arguments}".rstrip() for script, run in SMALLEST.items()))
        return 0
    return run_all(Recipe(within_s=given.within), given.scripts or found, lanes=given.lanes)


def scripts_of(root: Path) -> list[str]:
    """The modules below the folders that can be run, by their paths."""
    files = sorted(file for folder in FOLDERS for file in (root / folder).rglob("*.py"))
    return [file.relative_to(root).as_posix() for file in files if _can_be_run(file)]


def _can_be_run(file: Path) -> bool:
    tests = (node.test for node in ast.parse(file.read_text()).body if isinstance(node, ast.If))
    return any(isinstance(node, ast.Name) and node.id == "__name__" for test in tests for node in ast.walk(test))


def run_all(recipe: "Recipe", scripts: Sequence[str], *, lanes: int) -> int:
    """Run ``scripts``, print how each ended, and return the exit status: 1 if one has failed."""
    began_s, failed = time.monotonic(), []
    print(f"scripts: {len(scripts)} scripts, {lanes} at a time; load {os.getloadavg()[0]:.1f}", flush=True)
    for outcome in recipe.outcomes(scripts, lanes=lanes):
        print(f"scripts: {outcome.text}", flush=True)
        failed += [] if outcome.is_good else [outcome.script]
    ended = f"{len(scripts) - len(failed)} of {len(scripts)} good in {time.monotonic() - began_s:.0f} s"
    print(f"scripts: {ended}{'; failed: ' if failed else ''}{', '.join(sorted(failed))}", flush=True)
    return 1 if failed else 0


class Recipe:
    """How scripts are run: each in an empty folder, for a bounded time, and without a setting of Headway's."""

    def __init__(self, *, within_s: float, runs: Mapping[str, SmallestRun] = SMALLEST, root: Path = ROOT) -> None:
        self._within_s = within_s
        self._runs = runs
        self._root = root
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._is_stopped = False

    def outcomes(self, scripts: Sequence[str], *, lanes: int) -> Iterator[Outcome]:
        """What became of each, as they end."""
        order = list(self._runs)
        ordered = sorted(scripts, key=lambda script: order.index(script) if script in order else -1)
        with ThreadPoolExecutor(lanes) as pool:
            try:
                for future in as_completed([pool.submit(self._outcome, script) for script in ordered]):
                    yield future.result()
            finally:
                self._stop()

    def _stop(self) -> None:
        """End what runs, and begin no more."""
        with self._lock:
            self._is_stopped = True
            for process in self._running:
                process.terminate()  # it ends what it has begun

    def _outcome(self, script: str) -> Outcome:
        run = self._runs.get(script)
        if run is None:
            text = f"{script} FAILED: it has no line in {Path(__file__).name}"
            return Outcome(script=script, is_good=False, text=text)
        with tempfile.TemporaryDirectory(prefix="headway-script-") as folder:
            Path(folder).chmod(0o711)  # for root, whose Postgres runs as nobody
            began_s = time.monotonic()
            status, lines = self._ended(script, run, Path(folder))
            took = f"{time.monotonic() - began_s:.0f} s"
        last = [line for line in lines if line.strip()][-LAST_LINES:]
        if status in run.statuses:
            left = [f"; {line}" for line in last[-1:] if line.startswith("bounded_run:")]
            return Outcome(script=script, is_good=True, text=f"{script}, {took}{''.join(left)}")
        if status == NOT_HERE and os.environ.get("CI") != "true":
            return Outcome(script=script, is_good=True, text=f"{script} left out: {''.join(last[-1:])}")
        said = "".join(f"\n    {line}" for line in last)
        return Outcome(script=script, is_good=False, text=f"{script} FAILED with {status} after {took}:{said}")

    def _ended(self, script: str, run: SmallestRun, folder: Path) -> tuple[int, list[str]]:
        """The exit status, and what it printed."""
        arguments = [word.format(root=self._root, folder=folder) for word in shlex.split(run.arguments)]
        words = [str(BOUNDED_RUN), f"{self._within_s:g}", sys.executable, str(self._root / script), *arguments]
        own = {name: text.format(root=self._root, folder=folder) for name, text in run.environment.items()}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}
        with tempfile.TemporaryFile() as output:
            with self._lock:
                if self._is_stopped:
                    return 1, []
                process = subprocess.Popen(
                    [sys.executable, *words],
                    cwd=folder,
                    env={**inherited, **own},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,  # an interrupt is for this process, which passes it on
                )
                self._running.add(process)
            status = process.wait()
            with self._lock:
                self._running.discard(process)
            output.seek(0)
            return status, output.read().decode(errors="replace").splitlines()


if __name__ == "__main__":
    sys.exit(main())
