"""`headway plan`: how many workers a load needs when it is worst, and what they take, with every line of the sum."""

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from headway.cli.rehearse.sizing import Load, Sizing, late_fraction, sized
from headway.cli.terminal.printing import say_json
from headway.cli.terminal.screen import Text, output
from headway.cli.terminal.units import bytes_, count, fraction, seconds
from headway.cli.typer_app import main_of
from headway.scaling.explanations.phrases import counted, duration

app = typer.Typer(add_completion=False)
main = main_of(app)


@app.command("plan")
def plan(
    *,
    jobs_per_day: Annotated[str, typer.Option(metavar="COUNT", help="Jobs of a whole day, as in 250k or 1M.")],
    service: Annotated[str, typer.Option(metavar="DURATION", help="How long a worker needs for a job, as in 200ms.")],
    peak: Annotated[float, typer.Option(metavar="FACTOR", help="The busiest moment's rate over the day's mean.")] = 1.0,
    at_once: Annotated[str, typer.Option(metavar="COUNT", help="So many more come at the same moment.")] = "0",
    target: Annotated[str, typer.Option(metavar="DURATION", help="Jobs are to start within this.")] = "10s",
    percentile: Annotated[float, typer.Option(metavar="PERCENT", help="So many of them, in %.")] = 99.0,
    utilisation: Annotated[
        str, typer.Option(metavar="SHARE", help="At the peak no worker is busier than this.")
    ] = "95%",
    slots: Annotated[int, typer.Option(metavar="COUNT", help="Jobs that one worker runs at once.")] = 1,
    memory_per_worker: Annotated[str, typer.Option(metavar="BYTES", help="As in 256M.")] = "128M",
    connections_per_worker: Annotated[
        int, typer.Option(metavar="COUNT", help="To the broker, the database and so on.")
    ] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="The figures for a program.")] = False,
) -> None:
    """Work out how many workers a load needs at its peak, and their memory and connections."""
    sizing = sized(
        Load(
            jobs_per_day=count(jobs_per_day, option="--jobs-per-day"),
            peak_factor=peak,
            service_s=seconds(service, option="--service"),
            burst_jobs=count(at_once, option="--at-once"),
            target_s=seconds(target, option="--target"),
            percentile=percentile,
            busy_fraction_max=fraction(utilisation, option="--utilisation"),
            slots_per_worker=slots,
            memory_per_worker_bytes=bytes_(memory_per_worker, option="--memory-per-worker"),
            connections_per_worker=connections_per_worker,
        )
    )
    if as_json:
        say_json(figures(sizing))
        return
    console = output()
    console.print(sums(sizing))
    for sentence in ("", *sentences(sizing)):
        console.print(Text(sentence), soft_wrap=True)


def figures(sizing: Sizing) -> dict[str, object]:
    """The load and what it needs, by names that carry their units."""
    return {
        "load": asdict(sizing.load),
        "peak_rate_per_s": sizing.load.peak_rate_per_s,
        "peak_slots": sizing.load.peak_slots,
        "slots_for_headroom": sizing.slots_for_headroom,
        "slots_for_objective": sizing.slots_for_objective,
        "slots_for_burst": sizing.slots_for_burst,
        "workers": sizing.workers,
        "memory_bytes": sizing.memory_bytes,
        "connections": sizing.connections,
        "work_hours_per_day": sizing.work_hours_per_day,
        "standing_hours_per_day": sizing.standing_hours_per_day,
    }


def sums(sizing: Sizing) -> Table:
    """The sum, a line a step."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 3, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    for row in _steps(sizing):
        table.add_row(*row)
    return table


def _steps(sizing: Sizing) -> Iterable[tuple[str, str, str]]:
    load = sizing.load
    peak = f" × {load.peak_factor:g}" if load.peak_factor != 1 else ""
    yield "arriving at the peak", f"{load.jobs_per_day:,.0f} ÷ 86,400 s{peak}", f"{load.peak_rate_per_s:,.1f} a second"
    yield "busy at the peak", f"{load.peak_rate_per_s:,.1f} a second × {load.service_s:g} s", _slots(load.peak_slots)
    yield (
        "with headroom",
        f"{load.peak_slots:,.1f} ÷ {load.busy_fraction_max:g}: none is busier than {load.busy_fraction_max * 100:g} %",
        _slots(sizing.slots_for_headroom),
    )
    yield (
        "for the objective",
        f"{load.percentile:g} % within {duration(load.target_s)}, random arrivals (Erlang C)",
        _slots(sizing.slots_for_objective),
    )
    if load.burst_jobs:
        each = 1 + math.floor(load.target_s / load.service_s)
        yield (
            "for a burst",
            f"{load.burst_jobs:,.0f} at once ÷ {each:,} a slot within {duration(load.target_s)}, beside the peak's",
            _slots(sizing.slots_for_burst),
        )
    yield "workers", f"{sizing.slots:,} ÷ {counted(load.slots_per_worker, 'slot')} a worker", f"{sizing.workers:,}"
    yield "memory", f"{sizing.workers:,} × {_memory(load.memory_per_worker_bytes)}", _memory(sizing.memory_bytes)
    yield "connections", f"{sizing.workers:,} × {load.connections_per_worker}", f"{sizing.connections:,}"


def sentences(sizing: Sizing) -> Iterable[str]:
    """What the figures mean."""
    load = sizing.load
    late = late_fraction(load, slots=sizing.workers * load.slots_per_worker)
    yield (
        f"With {counted(sizing.workers, 'worker')} at the peak, {_share(late)} of the jobs wait longer than "
        f"{duration(load.target_s)}."
    )
    yield (
        f"Kept running all day, they cost {sizing.standing_hours_per_day:,.0f} worker-hours for "
        f"{sizing.work_hours_per_day:,.1f} of work; workers_max: {sizing.workers} in a profile lets Headway "
        "start and stop them."
    )


def _slots(slots: float) -> str:
    return f"{slots:,} slots" if isinstance(slots, int) else f"{slots:,.1f} slots"


def _share(fraction_: float) -> str:
    return "under 0.01 %" if fraction_ < 1e-4 else f"{fraction_ * 100:.2f} %"


def _memory(value: int) -> str:
    return f"{value / 2**30:,.1f} GiB" if value >= 2**30 else f"{value / 2**20:,.0f} MiB"
