"""The figures as a table: one row a goal, one column a number of agents."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Figures = Mapping[str, Any]


def _cores(phase: str, key: str = "control_cores") -> Callable[[Figures], str]:
    return lambda figures: f"{100 * figures[phase][key]:.1f} %"


def _memory(where: Callable[[Figures], Mapping[str, float]]) -> Callable[[Figures], str]:
    return lambda figures: "{resident:.0f} MB resident, {own:.0f} own".format(**where(figures))


def _ms(key: str) -> Callable[[Figures], str]:
    return lambda figures: "p50 {p50:.0f}, p99 {p99:.0f} ms".format(**figures[key])


def _to_all(figures: Figures) -> str:
    return "; ".join(f"p50 {each['p50']:.1f}, p99 {each['p99']:.1f} s" for each in figures["to_all_s"])


def _to_all_cpu(figures: Figures) -> str:
    return "; ".join(f"{each['control_cpu_s']:.1f} + {each['crowd_cpu_s']:.1f} s" for each in figures["to_all_s"])


def _storm(figures: Figures) -> str:
    return "p50 {p50:.1f}, all after {max:.1f} s".format(**figures["storm"]["from_open_door_s"])


ROWS: Sequence[tuple[str, Callable[[Figures], str]]] = (
    ("held polls alone: ≤ 2 % of a core", _cores("held_alone")),
    ("with reports: ≤ 25 % of a core", _cores("with_reports")),
    ("reports a second", lambda figures: f"{figures['with_reports']['reports_per_s']:.0f}"),
    ("Postgres, with reports", _cores("with_reports", "postgres_cores")),
    ("the crowd itself, with reports", _cores("with_reports", "crowd_cores")),
    ("memory without agents", _memory(lambda figures: figures["memory_alone_mb"])),
    ("memory with reports: ≤ 300 MB", _memory(lambda figures: figures["with_reports"]["memory_mb"])),
    ("memory after changes to all", _memory(lambda figures: figures["memory_before_the_storm_mb"])),
    ("a change to one, held alone: p99 ≤ 50 ms", _ms("to_one_ms_held_alone")),
    ("a change to one, with reports", _ms("to_one_ms")),
    ("a change to all: ≤ 1 s", _to_all),
    ("processor for that, control plane + crowd", _to_all_cpu),
    ("enrolled, each reported once", lambda figures: f"{figures['enrolled_and_reported_s']:.1f} s"),
    ("storm, from the open server: ≤ 10 s", _storm),
    (
        "storm: the control plane's processor, its start included",
        lambda each: f"{each['storm']['control_cpu_s']:.1f} s",
    ),
    ("failed for good", lambda figures: str(len(figures["failed_for_good"]))),
    ("with ticks of its own", _cores("with_its_own_ticks")),
    ("load before, after", lambda each: f"{each['load_before'][0]:.1f}, {each['load_after'][0]:.1f}"),
)


def table(found: Sequence[Figures]) -> str:
    """The rows of ``ROWS`` in Markdown."""
    head = ["", *(f"{figures['agents']:,} agents" for figures in found)]
    rows = [head, ["---"] * len(head), *([name, *(reported(figures) for figures in found)] for name, reported in ROWS)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
