"""What each term of ``hybrid`` is worth: every workload again without it.

    python benchmarks/ablation.py --traces DIR --page
    python benchmarks/ablation.py --traces DIR --brief --terms bands-by-use weekly-recall --eliminate

Each row leaves out one term and runs the recorded traces in all scenarios and the named loads. A workload in which the
term cannot act is not run again. Each result is a file of ``--cells``, so an interrupted run goes on where it ended. A
change of the strategy or the simulator makes kept results invalid; after a change of a patch, delete the folder of its
row.

The loads run first, then the shortest traces. ``--eliminate`` then leaves out terms together, backwards: that which
loses least goes first, while attainment falls by at most 0.05 points and cost rises by at most 1 % in all.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from closed_loop.ablated import (
    KeptOutcomes,
    Outcome,
    Without,
    Workload,
    acting_terms,
    is_slow,
    known_took_s,
    load_workloads,
    outcome,
    row_name,
    trace_workloads,
)
from closed_loop.ablation_page import Study, page
from closed_loop.cells import load
from closed_loop.elimination import Row, elimination_steps
from closed_loop.reference import BY_NAME, TRACES
from closed_loop.terms import CANDIDATES, TERMS
from loads import LOADS
from options import positive_count

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "ablation.md"
Task = tuple[Without, Workload, Path]


def main() -> None:
    """Run what is missing, then print or write the page."""
    options = _options()
    workloads = [
        *trace_workloads(scenarios=options.scenarios, traces=options.only, hours=options.hours),
        *load_workloads(options.loads),
    ]
    runs = _Runs(options, [each for each in workloads if not (options.brief and is_slow(each))])
    runs.run([frozenset(), *(frozenset({term}) for term in options.terms)])
    shown = Study(
        workloads=workloads,
        terms=[TERMS[name] for name in options.terms],
        row_of=runs.row,
        traces=options.traces,
    )
    if options.eliminate is not None:
        candidates = [term for term in options.eliminate if shown.acted_in(term)]
        shown = replace(shown, steps=[*elimination_steps(candidates, runs.run_row)])
    text = "\n".join(page(shown)) + "\n"
    if options.page:
        PAGE.write_text(text)
    else:
        print(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, required=True, help="folder of the traces, NAME.csv.gz each")
    parser.add_argument(
        "--cells", type=Path, default=ROOT / ".headway" / "ablation", help="where finished workloads are kept"
    )
    parser.add_argument("--terms", nargs="+", choices=TERMS, default=[*TERMS], help="default: all")
    parser.add_argument(
        "--eliminate",
        nargs="*",
        choices=TERMS,
        metavar="TERM",
        help=f"also leave these out together, backwards; default: {', '.join(CANDIDATES)}",
    )
    parser.add_argument("--brief", action="store_true", help="leave out what takes more than 4 min")
    parser.add_argument("--scenarios", nargs="+", choices=BY_NAME, default=[*BY_NAME], help="default: all")
    parser.add_argument("--only", nargs="*", choices=TRACES, default=[*TRACES], help="traces; default: all")
    parser.add_argument("--hours", type=float, help="of each trace, from its beginning; default: all")
    parser.add_argument("--loads", nargs="*", choices=LOADS, default=[*LOADS], help="default: all")
    parser.add_argument("--processes", type=positive_count, default=2)
    parser.add_argument("--no-run", action="store_true", help="only show what is kept")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.eliminate is not None:
        options.eliminate = options.eliminate or [*CANDIDATES]
    return options


class _Runs:
    """The rows that are asked for, each run as far as it is not kept."""

    def __init__(self, options: argparse.Namespace, workloads: Sequence[Workload]) -> None:
        self._kept = KeptOutcomes(options.cells)
        self._workloads = workloads
        self._traces: Path = options.traces
        self._processes: int = options.processes
        self._is_run: bool = not options.no_run

    def row(self, without: Without) -> Row:
        """What is kept of a row. Terms that cannot act in a workload do not count in it."""
        found = {workload: self._kept.of(self._acting(without, workload), workload) for workload in self._workloads}
        return {workload: each for workload, each in found.items() if each is not None}

    def run_row(self, without: Without) -> Row:
        """The row, run as far as it is not kept."""
        self.run([without])
        return self.row(without)

    def run(self, rows: Iterable[Without]) -> None:
        """Run what is missing of ``rows``, each workload in a process of its own: patches are for good there."""
        if not self._is_run:
            return
        tasks = self._missing(rows)
        if not tasks:
            return
        for workload in {workload for _, workload, _ in tasks if not workload.is_load}:
            load(self._traces, workload.name)  # once, before the processes are forked
        context = multiprocessing.get_context("fork")
        with context.Pool(min(self._processes, len(tasks)), maxtasksperchild=1) as pool:
            for done, (without, workload, found) in enumerate(pool.imap_unordered(_run, tasks, chunksize=1), start=1):
                self._kept.add(without, workload, found)
                print(
                    f"{done}/{len(tasks)} without {row_name(without)}: {workload.label}/{workload.name}: "
                    f"{found.percent:.3f} % / {found.worker_hours:.3f} h, {found.took_s:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )

    def _missing(self, rows: Iterable[Without]) -> list[Task]:
        """The loads first, then the traces, the shortest first: an interrupted run has most of what it can have."""
        wanted = {(self._acting(without, workload), workload): None for without in rows for workload in self._workloads}
        tasks = [
            (without, workload, self._traces)
            for without, workload in wanted
            if self._kept.of(without, workload) is None
        ]
        return sorted(tasks, key=lambda task: (not task[1].is_load, _known_s(task[1])))

    def _acting(self, without: Without, workload: Workload) -> Without:
        return acting_terms(without, workload, self._traces)


def _known_s(workload: Workload) -> float:
    return known_took_s().get(f"{workload.group}/{workload.name}", 0.0)


def _run(task: Task) -> tuple[Without, Workload, Outcome]:
    without, workload, traces = task
    return without, workload, outcome(without, workload, traces)


if __name__ == "__main__":
    main()
