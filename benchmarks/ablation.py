"""What each term of ``hybrid`` is worth: the traces again without it.

    python benchmarks/ablation.py --traces DIR --page

Every row leaves out one term and runs all traces in a scenario that the term is for. Finished rows are kept in
``--cells`` and not run again, so an interrupted run goes on where it ended; delete the folder after a change of code.
``--only`` takes some of the traces: the shortest is quick to run without every term.

    python benchmarks/ablation.py --traces service/headway/simulate/traces --only bursty_llm_code --cells DIR
"""

import argparse
import json
import math
import multiprocessing
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from closed_loop.cells import Cell, Figures, load, run
from closed_loop.patches import Patch
from closed_loop.reference import TRACES, oracle_worker_hours
from options import positive_count

from headway.scaling import decide
from headway.scaling.demands import deadlines, safety_stock
from headway.scaling.demands.deadlines import Due, cycle_s, start_up_s, waiting
from headway.scaling.demands.needs import Need, Supply, greatest, need
from headway.scaling.model import QueueMetrics
from headway.scaling.policy import stabilization
from headway.scaling.strategies import hybrid
from headway.scaling.view import PoolView

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "ablation.md"
REACTIVE, EXPOSED = "sla10", "sla10-boot8"


def no_deferral(due: Iterable[Due], given: Supply, view: PoolView, *, slots_max: int) -> Need:  # noqa: ARG001
    """The backlog drained as if there were no next evaluation."""
    found, ahead_jobs = Need(), 0.0
    for each in due:
        ahead_jobs += each.jobs
        found = greatest((found, need(ahead_jobs, each.within_s, given, start_up_s=start_up_s(view))))
    return found


def no_cohorts(queue: QueueMetrics, view: PoolView, *, target_s: float) -> tuple[Due, ...]:
    """All waiting jobs as old as the oldest."""
    return waiting(replace(queue, arrivals=()), view, target_s=target_s)


def mean_completions(queue: QueueMetrics, view: PoolView, busy_slots: int) -> float:
    """Completions by the mean service time."""
    return busy_slots / cycle_s(queue, view)


@dataclass(frozen=True, slots=True)
class Ablation:
    """A term, the scenario it is for, and the patches that take it out."""

    term: str
    scenario: str
    patches: tuple[Patch, ...] = ()


ABLATIONS = (
    Ablation("nothing", REACTIVE),
    Ablation("waiting for the next look", REACTIVE, (Patch(hybrid, "backlog_drain", no_deferral),)),
    Ablation("the age of each cohort", REACTIVE, (Patch(hybrid, "waiting", no_cohorts),)),
    Ablation("caution about completions", REACTIVE, (Patch(hybrid, "CAUTION", 0.0),)),
    Ablation(
        "completions as seen of late",
        REACTIVE,
        (Patch(hybrid, "completions_per_s", mean_completions), Patch(deadlines, "completions_per_s", mean_completions)),
    ),
    Ablation("the margin for a slow start", REACTIVE, (Patch(deadlines, "START_UP_SPREAD", 0.0),)),
    Ablation("waking at once", REACTIVE, (Patch(hybrid, "_is_asleep", lambda _queue, _view: False),)),
    Ablation(
        "the cheapest hold: none instead", REACTIVE, (Patch(decide, "kept_workers", lambda costs: costs.levels[0]),)
    ),
    Ablation(
        "the cheapest hold: 15 s instead", REACTIVE, (Patch(decide, "kept_workers", lambda costs: costs.levels[3]),)
    ),
    Ablation("nothing", EXPOSED),
    Ablation("standing workers", EXPOSED, (Patch(hybrid, "exposed_s", lambda _view: 0.0),)),
    Ablation("the spare", EXPOSED, (Patch(hybrid, "spare_jobs", lambda *_, **__: 0.0),)),
    Ablation("earlier days", EXPOSED, (Patch(safety_stock, "_is_recall_known", lambda _view: False),)),
    Ablation("earlier days only where they help", EXPOSED, (Patch(safety_stock, "_pays", lambda *_: True),)),
    Ablation("learning from late jobs", EXPOSED, (Patch(safety_stock, "STOCK_LEARNING_STEP", 0.0),)),
    Ablation(
        "what standing is worth",
        EXPOSED,
        (Patch(safety_stock, "LATE_JOB_WORKER_S", math.inf), Patch(safety_stock, "STOCK_FIRST_DAY_WORKER_S", math.inf)),
    ),
    Ablation(
        "the price of the first day",
        EXPOSED,
        (Patch(safety_stock, "STOCK_FIRST_DAY_WORKER_S", safety_stock.LATE_JOB_WORKER_S),),
    ),
    Ablation("the start-up in a start's price", EXPOSED, (Patch(stabilization, "HOLD_START_UP_SHARE", 0.0),)),
)


def main() -> None:
    """Run what is missing, then print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, required=True, help="folder of the traces, NAME.csv.gz each")
    parser.add_argument(
        "--cells", type=Path, default=ROOT / ".headway" / "ablation", help="where finished rows are kept"
    )
    parser.add_argument("--only", nargs="+", choices=TRACES, default=list(TRACES), help="traces; default: all")
    parser.add_argument("--processes", type=positive_count, default=2)
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.page and set(options.only) < set(TRACES):
        parser.error("--page is of all traces: leave --only out")
    options.cells.mkdir(parents=True, exist_ok=True)
    tasks = [(number, options.only, options.traces, options.cells) for number in range(len(ABLATIONS))]
    with multiprocessing.Pool(options.processes, maxtasksperchild=1) as pool:
        rows = list(pool.imap(_row, tasks, chunksize=1))
    text = "\n".join(_page(rows, options.only)) + "\n"
    if options.page:
        PAGE.write_text(text)
    else:
        print(text)


def _row(task: tuple[int, Sequence[str], Path, Path]) -> list[Figures]:
    """One ablation on ``traces``, in a process of its own: what is taken out stays out there."""
    number, traces, folder, cells = task
    ablation = ABLATIONS[number]
    names = (ablation.scenario, ablation.term.replace(" ", "-").replace(":", ""), *_named(traces))
    kept = cells / f"{'-'.join(names)}.json"
    if kept.exists():
        return [Figures(**figures) for figures in json.loads(kept.read_text())]
    for patch in ablation.patches:
        patch.apply()
    found = []
    for trace in traces:
        load(folder, trace)
        found.append(run(Cell(scenario=ablation.scenario, trace=trace, strategy="hybrid"), folder))
    kept.write_text(json.dumps([{name: getattr(each, name) for name in Figures.__slots__} for each in found]))
    print(f"done: {ablation.scenario} without {ablation.term}", file=sys.stderr, flush=True)
    return found


def _named(traces: Sequence[str]) -> Sequence[str]:
    return () if set(traces) == set(TRACES) else traces


def _page(rows: list[list[Figures]], traces: Sequence[str]) -> Iterator[str]:
    yield "# What each term of hybrid is worth"
    yield ""
    yield (
        "Written by `python benchmarks/ablation.py --traces DIR --page`; do not edit. Each row leaves out one term "
        f"of `hybrid` and runs {', '.join(_named(traces)) or 'all traces'}; "
        "cost is the geometric mean of worker-hours as a multiple of the oracle's. Of `cron_flights` "
        "the days from the second on count as a trace where the start-up is 8 s."
    )
    for scenario in (REACTIVE, EXPOSED):
        yield from (
            "",
            f"## {scenario}",
            "",
            "| without | mean | worst trace | cost | dearest trace | spawns | bad 5 min |",
        )
        yield "|---|--:|--:|--:|--:|--:|--:|"
        for ablation, figures in zip(ABLATIONS, rows, strict=True):
            if ablation.scenario == scenario:
                yield _line(ablation, figures, traces)


def _line(ablation: Ablation, figures: list[Figures], traces: Sequence[str]) -> str:
    costs = [
        each.worker_hours / oracle_worker_hours(trace, ablation.scenario)
        for trace, each in zip(traces, figures, strict=True)
    ]
    counted = [
        each.later_percent if trace == "cron_flights" and ablation.scenario == EXPOSED else each.percent
        for trace, each in zip(traces, figures, strict=True)
    ]
    mean = sum(each.percent for each in figures) / len(figures)
    geometric = math.exp(sum(map(math.log, costs)) / len(costs))
    return (
        f"| {ablation.term} | {mean:.2f} % | {min(counted):.2f} % | {geometric:.3f} | {max(costs):.2f} | "
        f"{sum(each.spawns for each in figures):,} | {sum(each.bad_windows for each in figures):,} |"
    )


if __name__ == "__main__":
    main()
