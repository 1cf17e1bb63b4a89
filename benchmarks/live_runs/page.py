"""The comparison as a table and as a document."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, median

from headway.scaling.metrics.behaviour import Spread
from live_runs.compared import FIGURES, TOLERANCES, Comparison
from live_runs.workloads import GOES_ON_S

ROWS = (
    ("start-up", "start_up"),
    ("start-up with a core of its own", "start_up_alone"),
    ("processor time of a start", "start_up_cpu_s"),
    ("exit of an idle worker", "exit"),
    ("exit with a core of its own", "exit_alone"),
    ("processor time of an exit", "exit_cpu_s"),
    ("dispatch overhead", "dispatch_overhead_s"),
    ("age of the queue's figures", "sample_lag"),
    ("age of workers' states", "worker_lag"),
    ("evaluation late by", "evaluation_delay"),
    ("decision to spawn", "apply_delay"),
    ("job to wake", "wake_delay"),
)
EARLIER = Path(__file__).with_name("earlier.md")
"""Series that were run before and are worth keeping, each with the commit that it was run at."""
NAMES = {"attainment_percent": "in time", "worker_s": "worker-seconds", "starts": "starts"}


def table(found: Sequence[Comparison]) -> Iterator[str]:
    """A row a workload and figure: medians, the least and the most, and whether they agree."""
    yield "| workload | figure | live | rehearsed | plain model | live is | within |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for each in found:
        for figure in FIGURES:
            yield (
                f"| {each.workload.name} | {NAMES[figure]} | {_spread(each.live[figure], figure)} "
                f"| {_spread(each.rehearsed[figure], figure)} | {_spread(each.plain[figure], figure)} "
                f"| {_difference(each, figure)} | {'yes' if each.holds(figure) else 'no'} |"
            )


def _spread(values: Sequence[float], figure: str) -> str:
    digits = 2 if figure == "attainment_percent" else 0
    return f"{median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def _difference(each: Comparison, figure: str) -> str:
    value = each.difference(figure)
    return f"{value:+.2f} points" if figure == "attainment_percent" else f"{value:+.0%}"


def behaviours(found: Sequence[Comparison]) -> Iterator[str]:
    """What was measured of each workload's calibration."""
    yield "| measured | " + " | ".join(each.workload.name for each in found) + " |"
    yield "|---|" + "--:|" * len(found)
    for name, field in ROWS:
        yield f"| {name} | " + " | ".join(_text(getattr(each.behaviour, field)) for each in found) + " |"
    yield "| cores that others wanted | " + " | ".join(f"{each.busy_cores:.2f}" for each in found) + " |"


def costs(found: Sequence[Comparison]) -> Iterator[str]:
    """What each part of the behaviour costs: the rehearsal beside one in which it takes no time."""
    yield "| what takes time | " + " | ".join(each.workload.name for each in found) + " |"
    yield "|---|" + "--:|" * len(found)
    for name, part in ROWS:
        if any(part in each.without for each in found):
            yield f"| {name} | " + " | ".join(_cost(each, part) for each in found) + " |"


def _cost(each: Comparison, part: str) -> str:
    if part not in each.without:
        return "–"
    worker_s, starts = (
        median(each.rehearsed[figure]) - median(each.without[part][figure]) for figure in ("worker_s", "starts")
    )
    return f"{worker_s:+,.0f} s, {starts:+.0f} starts"


def _text(value: Spread | float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, Spread):
        return f"{value.p50_s:.2f} s, p95 {value.p95_s:.2f} s ({value.count})"
    return f"{value:.3f} s"


def document(found: Sequence[Comparison], *, machine: str, beside: str) -> Iterator[str]:
    """The page. ``beside`` says what else ran on the machine."""
    runs = min((len(each.loads) for each in found), default=0)
    yield "# Live beside rehearsed"
    yield ""
    yield (
        "Written by `python benchmarks/fidelity.py --page`; do not edit. A whole `headway up` runs each workload with "
        "real RQ workers, and `headway simulate` rehearses the same jobs under the same profile. How workers and "
        "control plane behave is measured on a run with other jobs, and given to the rehearsal as `--behaviour`. "
        f"Figures are medians, with the least and the most: live of {runs} runs, each with its first tick at another "
        "moment of the workload; rehearsed at the same ticks, eight seeds each. Workers are paid from spawn to exit, "
        f"until {GOES_ON_S:g} s after the end of the last job."
    )
    yield ""
    yield f"Machine: {machine}; load before the runs {_loads(found)}. Beside them ran {beside}."
    yield ""
    for each in found:
        yield f"- `{each.workload.name}`: {each.workload.what} (run at commit {', '.join(each.commits)})"
    yield ""
    yield from table(found)
    yield ""
    limits = (
        f"{TOLERANCES['attainment_percent']:g} points in time, {TOLERANCES['worker_s']:.0%} of the worker-seconds, "
        f"{TOLERANCES['starts']:.0%} of the starts"
    )
    yield f"*Within* is {limits}. The *plain model* is the rehearsal without a behaviour."
    yield ""
    yield from left(found)
    yield ""
    yield "## What was measured"
    yield ""
    yield from behaviours(found)
    yield ""
    yield "## What makes live dearer than the plain model"
    yield ""
    yield (
        "The rehearsal less one in which this alone takes no time, in worker-seconds and starts of the whole workload. "
        "What remains between the plain model and the rehearsal is what the live loop sees otherwise: the queue by "
        "buckets of 5 s of the clock, jobs of leaving workers, start-ups that spread."
    )
    yield ""
    yield from costs(found)
    yield ""
    yield from demo(found)
    yield EARLIER.read_text().rstrip("\n")


def left(found: Sequence[Comparison]) -> Iterator[str]:
    """Why live and rehearsed differ by what they do."""
    yield "## What is left, and why"
    yield ""
    yield "| jobs take, at the mean | " + " | ".join(each.workload.name for each in found) + " |"
    yield "|---|" + "--:|" * len(found)
    asked = (f"{mean(job.service_s for job in each.workload.jobs()):.2f} s" for each in found)
    yield "| as the workload asks | " + " | ".join(asked) + " |"
    took = (f"{median(each.live_service_s):.2f} s ({_from_to(each.live_service_s)})" for each in found)
    yield "| live, of the runs | " + " | ".join(took) + " |"
    yield ""
    yield (
        "- Starts and exits share cores. What each takes with a core of its own is measured apart from what it "
        "waits for one. The rehearsal lets them wait for each other and for other programs: as many of these as make "
        "the median start of the calibration take what it took (*cores that others wanted*). Linux shares cores "
        "between sessions first, and each worker leads a session of its own: programs of low priority in sessions of "
        "their own take as much of a core as a worker does. They come and go: what they wanted in the calibration is "
        "not what they want in each run."
    )
    yield (
        "- Jobs do not share cores in a rehearsal: each takes what it takes on a core of its own. Where the "
        "second row is far above the first, jobs waited for a core, and live pays for it. Rehearse what a host can "
        "carry; what could be done about the rest is [proposed](../decisions/0023-no-rise-without-throughput.md)."
    )
    yield from _few_starts(found)
    yield (
        "- Workers that start beside each other take longer than one alone. Decisions count on the mean of starts, in "
        "which the newest count most, and on the 95th percentile where that is far from it "
        "([why](demand.md#draining-a-backlog))."
    )
    yield (
        "- Live, a job counts as at work when the newest sample has it, and also when a worker has begun it since. A "
        "rehearsal counts the same."
    )
    yield (
        "- What dispatch takes is learned while jobs wait throughout a bucket. Where that did not happen in the "
        "calibration, it is measured there from outside: from the end of a job to the start of the next that "
        "waited, of the same worker."
    )


def _few_starts(found: Sequence[Comparison]) -> Iterator[str]:
    """Where the tolerance is less than one start, no medians but equal ones are within it."""
    for each in found:
        allowed = TOLERANCES["starts"] * median(each.rehearsed["starts"])
        if allowed < 1:
            yield (
                f"- {TOLERANCES['starts']:.0%} of the starts of `{each.workload.name}` is {allowed:.2g}, less than "
                "one: where the median is a whole number, only the same number is within."
            )


def _from_to(values: Sequence[float]) -> str:
    return f"{min(values):.2f}–{max(values):.2f}"


def _loads(found: Sequence[Comparison]) -> str:
    loads = [load for each in found for load in each.loads]
    return f"{min(loads):.1f} to {max(loads):.1f}" if loads else "unknown"


DEMO, DEMO_REHEARSED_S, DEMO_MORE_MAX = "bursts", 870.0, 1.10


def demo(found: Sequence[Comparison]) -> Iterator[str]:
    """The workload that was the demo's, against what its rehearsal came to at the time."""
    for each in found:
        if each.workload.name == DEMO:
            live_s = median(each.live_until_done_s)
            yield (
                f"`{DEMO}` was `headway demo` until it played a day. Its rehearsal said {DEMO_REHEARSED_S:g} "
                f"worker-seconds with a start-up of 2 s, to the end of the last job, and live came to 1,004. Live is "
                f"{live_s:,.0f} now: {live_s / DEMO_REHEARSED_S:.2f} times, of at most {DEMO_MORE_MAX:.2f}."
            )
            yield ""
