"""Every strategy on every trace in every scenario, against the targets and the figures of others.

    python benchmarks/targets.py --traces DIR --strategies hybrid,fixed --scenarios sla10

Finished cells are kept in ``--cells`` and run again only when the code they ran has changed, so an interrupted run goes
on where it ended. Without ``--page`` the tables are only printed; with it they are written as a document.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from closed_loop import page
from closed_loop.cells import STRATEGIES, Cell, Figures, Kept, code_version, load, run
from closed_loop.reference import SCENARIOS, TRACES, oracle_worker_hours
from options import positive_count

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "targets.md"
CELLS = Path(__file__).parent / "closed_loop" / "finished"
LOADS = Path(__file__).parent / "closed_loop" / "loads.md"  # python benchmarks/loads.py --page
NOTES = Path(__file__).parent / "closed_loop" / "notes.md"
RISKS = (0.5, 1.0, 2.0)


def main() -> None:
    """Run what is missing, then print or write the page."""
    options = _options()
    strategies = [name for name in STRATEGIES if not options.strategies or name in options.strategies]
    kept = Kept(options.cells)
    cells = [
        cell
        for cell in _cells(strategies, risks=RISKS if options.frontier else ())
        if cell.scenario in options.scenarios and cell.trace in options.traces_only
    ]
    missing = [cell for cell in cells if kept.of(cell, any_code=options.any_code) is None]
    print(f"{len(cells)} cells, {len(missing)} to run, {kept.outdated(cells)} kept from other code", file=sys.stderr)
    if not options.no_run:
        _run(missing, kept, folder=options.traces, processes=options.processes)
    lines = list(_page(kept, [*STRATEGIES], any_code=options.any_code or options.no_run))
    if options.page:
        PAGE.write_text("\n".join(lines) + "\n")
    else:
        print("\n".join(lines))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, required=True, help="folder of the traces, NAME.csv.gz each")
    parser.add_argument(
        "--cells", type=Path, default=CELLS, help="where finished cells are kept; those of the page are in the tree"
    )
    parser.add_argument("--strategies", type=_listed, default=[], help="default: all")
    parser.add_argument("--scenarios", type=_listed, default=[scenario.name for scenario in SCENARIOS])
    parser.add_argument("--only", dest="traces_only", type=_listed, default=[*TRACES], help="traces; default: all")
    parser.add_argument("--processes", type=positive_count, default=2)
    parser.add_argument("--frontier", action="store_true", help="also sweep the risk knob")
    parser.add_argument("--any-code", action="store_true", help="take kept cells of other code as they are")
    parser.add_argument("--no-run", action="store_true", help="only show what is kept, of whatever code")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    return parser.parse_args()


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _cells(strategies: Sequence[str], *, risks: Sequence[float]) -> Iterator[Cell]:
    for scenario in SCENARIOS:
        for trace in TRACES:
            yield from (page.calibration_cell(scenario, trace, name) for name in page.CALIBRATED if name in strategies)
            for name in strategies:
                cell = Cell(scenario=scenario.name, trace=trace, strategy=name)
                if cell != page.calibration_cell(scenario, trace, name) or name not in page.CALIBRATED:
                    yield cell
            if page.OURS in strategies:
                yield from (page.risk_cell(scenario, trace, risk) for risk in risks if risk != page.PLAIN_RISK)


def _run(cells: Sequence[Cell], kept: Kept, *, folder: Path, processes: int) -> None:
    """Run ``cells`` and keep each as it ends. Those of a trace follow each other: its jobs are read once a process."""
    codes = {cell.strategy: code_version(cell.strategy) for cell in cells}
    tasks = [(cell, folder) for cell in sorted(cells, key=lambda cell: TRACES.index(cell.trace))]
    if not tasks:
        return
    with multiprocessing.Pool(min(processes, len(tasks))) as pool:
        for done, (cell, figures) in enumerate(pool.imap_unordered(_one, tasks), start=1):
            kept.add(cell, figures, codes[cell.strategy])
            cost = figures.worker_hours / oracle_worker_hours(cell.trace, cell.scenario)
            print(
                f"{done}/{len(tasks)} {cell.name}: {figures.percent:.2f} % / {cost:.2f}, {figures.spawns} spawns, "
                f"{figures.took_s:.1f} s",
                file=sys.stderr,
                flush=True,
            )


def _one(task: tuple[Cell, Path]) -> tuple[Cell, Figures]:
    cell, folder = task
    load(folder, cell.trace)
    return cell, run(cell, folder)


def _page(kept: Kept, strategies: Sequence[str], *, any_code: bool) -> Iterator[str]:
    def figures_of(cell: Cell) -> Figures | None:
        return kept.of(cell, any_code=any_code)

    yield "# What the strategies reach"
    yield ""
    yield (
        "Written by `python benchmarks/targets.py --traces DIR --frontier --page`; do not edit. "
        "Cells are the share of jobs that started within the objective in %, and the worker-hours as "
        "a multiple of the oracle's: the cheapest clairvoyant plan that starts every job in time. "
        "Below 1 means that jobs were not served in time. "
        "*Slanted* rows are policies published for the same traces, from another simulator."
    )
    parts: list[tuple[str, Iterator[str]]] = [
        ("Calibration", page.calibration(figures_of)),
        ("Targets", page.targets(figures_of)),
        *((scenario.name, page.scenario_tables(figures_of, scenario, strategies)) for scenario in SCENARIOS),
        ("Who is never beaten", page.dominance(figures_of, strategies)),
        ("The risk knob", page.frontier(figures_of, RISKS)),
    ]
    for heading, lines in parts:
        yield from ("", f"## {heading}", "")
        yield from lines
    if LOADS.exists():
        yield from ("", "## Loads that no trace holds", "", LOADS.read_text().rstrip())
    if NOTES.exists():
        yield from ("", NOTES.read_text().rstrip())


if __name__ == "__main__":
    main()
