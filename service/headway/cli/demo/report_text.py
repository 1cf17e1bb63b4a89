"""A demo's report in words: what terminal and page say alike."""

from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from headway.cli.demo.demo_report import Report
from headway.cli.terminal.screen import Text, lined
from headway.simulate.studies.alternatives import PEAK_HEADROOM
from headway.simulate.studies.keda_rule import EVALUATION_S, KedaSettings

Row = dict[str, Any]

USES_ITS_TIME = "Headway uses the time that an objective allows: for shorter waits, set a lower target_s."
ATTAINMENT = "Below each queue: attainment, the share of its jobs that start within the objective."
MISSED = "✗ "
"""Before a share of jobs that does not meet the objective."""
SHOWN_WAYS = ("headway", "peak", "keda", "best_fixed")


def report_text(report: Report) -> RenderableType:
    """``report`` for people at a terminal."""
    parts = headline(report)
    return Group(
        _facts(report),
        Text(),
        _comparison(report),
        Text(),
        *([Text(parts, "bold"), Text()] if parts else []),
        *(Text(note, "dim") for note in notes(report)),
    )


def report_shown(report: Report) -> dict[str, Any]:
    """``report`` for the dashboard, as texts: what ended, in a sentence, by name, and beside other ways."""
    return {
        "title": report["workload"]["title"],
        "headline": headline(report) or jobs_text(report),
        "facts": [*facts(report), *faults(report)],
        "heads": heads(report),
        "lines": lines(report),
    }


def facts(report: Report) -> list[tuple[str, str]]:
    """What is said of the run itself, by name."""
    workers = f"at most {report['workers_max_seen']} at once, {report['workers_started']} started"
    changes = "unknown" if report["scale_actions"] is None else str(report["scale_actions"])
    return [
        ("jobs", jobs_text(report)),
        *((f"{queue['queue']}: pickup time", _pickups(queue)) for queue in report["queues"]),
        ("workers", f"{workers}, {report['worker_seconds']:.0f} worker-seconds"),
        ("changes of the target", changes),
        ("ready after", _seconds(report["ready_s"])),
    ]


def jobs_text(report: Report) -> str:
    """What became of the jobs."""
    parts = [f"{report['jobs']} sent", f"{report['done_jobs']} done", f"{report['lost_jobs']} lost"]
    parts.append(f"{report['jobs_started_again']} begun more than once")
    if report["is_interrupted"]:
        parts += [f"{report['waiting_jobs']} still in the queue", f"{report['cut_jobs']} interrupted"]
    return ", ".join(parts)


def faults(report: Report) -> list[tuple[str, str]]:
    """What was killed on the way, and what became of it."""
    return [(f"killed {fault['what']}", f"at {fault['at_s']:.0f} s, {fault_text(fault)}") for fault in report["faults"]]


def heads(report: Report) -> list[str]:
    """What is above the columns of the comparison, the way's own first; a column's head may have two lines."""
    queues = [f"{queue['queue']}\nin {queue['objective_s']:g} s" for queue in report["queues"]]
    return ["", *queues, "worker-\nhours", "×\nHeadway", "starts"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the comparison."""

    text: str
    is_missed: bool = False
    """Whether it is the share of jobs in time of an objective that was missed."""

    def __str__(self) -> str:
        return f"{MISSED}{self.text}" if self.is_missed else self.text


def cells(report: Report) -> list[list[Cell]]:
    """The comparison's rows."""
    rows = [row for row in report["comparison"] if row["way"] in SHOWN_WAYS]
    return [[Cell(way(row)), *_in_time(report, row), *map(Cell, _costs(row))] for row in rows]


def lines(report: Report) -> list[list[str]]:
    """The comparison's rows as they are shown in a terminal."""
    return [list(map(str, row)) for row in cells(report)]


def way(row: Row) -> str:
    """A way named for what it is."""
    sizes = "" if row["workers"] is None else f" ({' + '.join(str(workers) for workers in row['workers'].values())})"
    return {
        "headway": "Headway, this run",
        "peak": f"pool sized for the peak, as teams run today{sizes}",
        "keda": f"{KedaSettings().jobs_per_worker:g} jobs a worker, as a KEDA rule",
        "best_fixed": f"best fixed pool{sizes}: the smallest that does as well, knows all jobs in advance",
    }[str(row["way"])]


def notes(report: Report) -> list[str]:
    """How the figures were made, a paragraph each."""
    workload = report["workload"]
    queues = "; ".join(f"{name}: {text}" for name, text in workload["queues"].items())
    played = f"Played: {workload['title']}. {queues}."
    if len(report["comparison"]) == 1:
        return [played]
    return [played, USES_ITS_TIME, _made(report), _tuned(report)]


def fault_text(fault: Report) -> str:
    """What became of a kill, and of the workers that ran then; of a part that goes on deciding, not of the workers."""
    back = "not back before the end" if fault["back_after_s"] is None else f"back after {fault['back_after_s']:.1f} s"
    if fault["workers"] is None:
        return back
    adopted = "" if fault["workers_adopted"] is None else f", {fault['workers_adopted']} adopted"
    return f"{back}; {fault['workers_kept']} of {fault['workers']} workers went on{adopted}"


def headline(report: Report) -> str | None:
    """The comparison in a sentence; None where there is nothing to compare."""
    ratios = {row["way"]: row.get("times_headway") for row in report["comparison"]}
    peak, best = ratios.get("peak"), ratios.get("best_fixed")
    if not peak or not best:
        return None
    queues = [str(queue["queue"]) for queue in report["queues"] if queue["objective_met"] is False]
    missed = f", but missed the objective of {' and '.join(queues)}" if queues else ""
    return (
        f"Headway took {100 / peak:.0f} % of the worker-hours of a pool sized for the peak, and {100 / best:.0f} % of "
        f"those of the best fixed pool{missed}."
    )


def _facts(report: Report) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    for name, value in [*facts(report), *faults(report)]:
        table.add_row(name, value)
    return table


def _comparison(report: Report) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    first, *rest = heads(report)
    table.add_column(first, min_width=12, max_width=44)
    for head in rest:
        table.add_column(lined(*head.split("\n")), justify="right", no_wrap=True, vertical="bottom")
    for index, line in enumerate(lines(report)):
        table.add_row(*line, style="bold" if index == 0 else "")
    return table


def _in_time(report: Report, row: Row) -> list[Cell]:
    parts = []
    for queue in report["queues"]:
        fraction = row["in_time"].get(queue["queue"])
        is_missed = fraction is not None and fraction < queue["objective_percentile"] / 100
        parts.append(Cell(_percent(fraction), is_missed=is_missed))
    return parts


def _costs(row: Row) -> list[str]:
    ratio = "–" if row["times_headway"] is None else f"{row['times_headway']:.2f}"
    return [f"{row['worker_seconds'] / 3600:.3f}", ratio, f"{row['starts']:g}"]


def _made(report: Report) -> str:
    terms, keda = report["terms"], KedaSettings()
    is_any_missed = any(cell.is_missed for row in cells(report) for cell in row)
    legend = f" {MISSED}objective missed." if is_any_missed else ""
    measured = "as measured" if terms["start_up_is_measured"] else "a guess"
    return (
        f"{ATTAINMENT}{legend} The other rows are arithmetic on this run's own jobs, with the arrivals and "
        "service times that were measured, "
        f"paid from the first moment to the last. Peak: the most jobs of one {terms['peak_name']} of the recording "
        f"({terms['peak_window_s']:g} s here) × mean service time × {PEAK_HEADROOM:g}, rounded up. KEDA rule: the jobs "
        f"that wait / {keda.jobs_per_worker:g}, KEDA's default for a Redis list, each {EVALUATION_S:g} s; fewer after "
        f"{keda.cooldown_s:g} s; at most {terms['workers_max']} workers a queue, as Headway; start-up "
        f"{terms['start_up_s']:.2f} s, {measured}. These times, as Headway's own, are not compressed. Fixed pools are "
        "there at the first moment, without a start-up."
    )


def _tuned(report: Report) -> str:
    row = next(row for row in report["comparison"] if row["way"] == "keda_tuned")
    if row["settings"] is None:
        return "Of the jobs-per-worker rules of this kind that were tried, none meets the objectives."
    settings = ", ".join(
        f"{name} {each['jobs_per_worker']:g} jobs a worker, fewer after {each['cooldown_s']:g} s"
        for name, each in row["settings"].items()
    )
    ratio = "" if row["times_headway"] is None else f", {row['times_headway']:.2f} × Headway"
    in_time = " and ".join(f"{_percent(fraction)} of {name}" for name, fraction in row["in_time"].items())
    return (
        f"The cheapest rule of that kind that meets the objectives, found with all jobs known ({settings}): {in_time} "
        f"in time, {row['worker_seconds'] / 3600:.3f} worker-hours{ratio}, {row['starts']:g} starts."
    )


def _pickups(queue: Report) -> str:
    waits = " · ".join(f"p{each} {_seconds(queue[f'pickup_p{each}_s'])}" for each in (50, 95, 99))
    met = {None: "", True: ", objective met", False: ", objective missed"}[queue["objective_met"]]
    return f"{waits} · attainment {_percent(queue['picked_up_in_time_fraction'])}{met}"


def _percent(fraction: float | None) -> str:
    """A share of jobs; it says 100 only of all of them."""
    if fraction is None:
        return "unknown"
    text = f"{100 * fraction:.1f}"
    return f"{'99.9' if text == '100.0' and fraction < 1 else text} %"


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} s"
