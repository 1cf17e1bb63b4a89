"""What ``up`` and ``demo`` show in a terminal: stages with their times, then a picture that is drawn anew in place.

Where standard output is no terminal, the same as lines: nothing is drawn twice, and long work still says that it goes
on.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from headway.cli.terminal.cells import within
from headway.cli.terminal.labels import IN_FLIGHT, LONGEST_WAIT, WANTED, WITHIN
from headway.cli.terminal.screen import Screen, Text

FRAMES_PER_S = 4.0
LINE_EVERY_S = 10.0
STILL_AFTER_S = 3.0  # what is over sooner needs no word on the way
HISTORY = 240
DECISIONS_SHOWN = 5
NARROW_COLUMNS = 76
BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = "_.-=+*%#"


class Terminal:
    """Standard output, drawn on where it is a terminal, printed to line by line where it is not."""

    def __init__(self, *, is_plain: bool = False, console: Screen | None = None) -> None:
        self.console = console or Screen()
        self._is_plain = is_plain or not self.console.is_terminal
        self._stage: tuple[str, float] | None = None
        self._body: Callable[[], RenderableType] | None = None
        self._line: Callable[[], str] | None = None
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        if self._is_plain:
            self._beat = threading.Thread(target=self._repeat_line, name="terminal", daemon=True)
            self._beat.start()
        else:
            self._live = Live(
                get_renderable=self._picture,
                console=self.console,
                refresh_per_second=FRAMES_PER_S,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        if self._is_plain:
            self._beat.join()
        else:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self.console.print(Text(text), soft_wrap=True)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Show that ``name`` goes on for the block; when it ends well, print how long it took."""
        began_s = time.monotonic()
        self._stage = (name, began_s)
        try:
            yield
        finally:
            self._stage = None
        mark = "✓" if self._is_unicode else "+"
        self.say(f"{mark} {name}  {time.monotonic() - began_s:.1f} s")

    @contextmanager
    def showing(self, body: Callable[[], RenderableType], line: Callable[[], str]) -> Iterator[None]:
        """Show ``body`` for the block; as lines, print ``line`` from time to time."""
        self._body, self._line = body, line
        try:
            yield
        finally:
            self._body = self._line = None

    @property
    def bars(self) -> str:
        """Eight characters of rising height that this terminal can print."""
        return BARS if self._is_unicode else PLAIN_BARS

    @property
    def _is_unicode(self) -> bool:
        return (self.console.encoding or "").lower().startswith("utf")

    def _picture(self) -> RenderableType:
        stage, body = self._stage, self._body
        parts: list[RenderableType] = [body()] if body else []
        if stage:
            name, began_s = stage
            parts.append(Spinner("dots" if self._is_unicode else "line", f"{name}  {time.monotonic() - began_s:.0f} s"))
        return Group(*parts)

    def _repeat_line(self) -> None:
        while not self._closed.wait(LINE_EVERY_S):
            stage, line = self._stage, self._line
            if stage:
                if (so_far_s := time.monotonic() - stage[1]) >= STILL_AFTER_S:
                    self.say(f"  still: {stage[0]}, {so_far_s:.0f} s so far")
            elif line:
                self.say(f"  {line()}")


@dataclass(slots=True)
class Progress:
    """What the demo's picture is drawn from; the main loop fills it, the terminal's thread reads it."""

    url: str
    objective: str
    phase: str = ""
    left_s: float | None = None
    clock: str | None = None
    """The time of day in the recording; None where that means nothing."""
    jobs_sent: int = 0
    jobs_done: int = 0
    jobs_waiting: int = 0
    overview: dict[str, Any] | None = None
    """The newest answer of the control plane, None before the first."""
    backlog: list[int] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)

    def add(self, *, waiting: int, workers: int) -> None:
        """One more point of both lines."""
        self.backlog = [*self.backlog[1 - HISTORY :], waiting]
        self.workers = [*self.workers[1 - HISTORY :], workers]


def progress_line(progress: Progress) -> str:
    """``progress`` in one line."""
    left = "" if progress.left_s is None else f", {progress.left_s:.0f} s left"
    recorded = "" if progress.clock is None else f", {progress.clock} of the recorded day"
    workers = progress.workers[-1] if progress.workers else 0
    return (
        f"{progress.phase}{recorded}{left}: jobs {progress.jobs_sent} sent, {progress.jobs_done} done, "
        f"{progress.jobs_waiting} waiting; workers {workers}, {_or_dash(_wanted(progress))} wanted"
    )


def picture(progress: Progress, *, columns: int, bars: str) -> RenderableType:
    """``progress`` for a terminal of ``columns`` columns."""
    left = "" if progress.left_s is None else f" · {int(progress.left_s) // 60}:{int(progress.left_s) % 60:02d} left"
    clock = "" if progress.clock is None else f" of {progress.clock}"
    head = Text.assemble(
        (f"{progress.phase}{clock}", "bold"), f"{left}   {progress.url}", no_wrap=True, overflow="ellipsis"
    )
    jobs = Text(f"jobs {progress.jobs_sent} sent · {progress.jobs_done} done", "dim")
    return Group(
        head,
        jobs,
        Text(f"objective: {progress.objective}", "dim", no_wrap=True, overflow="ellipsis"),
        Text(),
        _queues(progress, columns),
        Text(),
        *_lines(progress, columns, bars),
        Text(),
        _decisions(progress),
    )


def sparkline(values: Sequence[int], *, columns: int, bars: str) -> str:
    """The last ``columns`` values as bars; the greatest of them is the full height, 0 is the lowest bar."""
    shown = values[-columns:]
    most = max(shown, default=0)
    return "".join(bars[-(-value * (len(bars) - 1) // most) if most else 0] for value in shown)


def _queues(progress: Progress, columns: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    wide = columns >= NARROW_COLUMNS
    table.add_column("queue", overflow="ellipsis", no_wrap=True)
    for name in ("waiting", LONGEST_WAIT, *((IN_FLIGHT, WITHIN) if wide else ()), "workers", WANTED):
        table.add_column(name, justify="right", no_wrap=True)
    pools = {pool["pool"]: pool for pool in (progress.overview or {}).get("pools", [])}
    for queue in (progress.overview or {}).get("queues", []):
        metrics, pool = queue["metrics"], pools.get(queue["pool"], {})
        # As the queue's objective has it.
        pickup = "–" if metrics["pickup_objective_s"] is None else within(metrics, queue["objective"])
        more = (_or_dash(metrics["in_flight_jobs"]), pickup) if wide else ()
        running = (pool.get("running_workers") or 0) + pool.get("starting_workers", 0)
        table.add_row(
            queue["queue"],
            _or_dash(metrics["waiting_jobs"]),
            "–" if metrics["oldest_age_s"] is None else f"{metrics['oldest_age_s']:.1f} s",
            *more,
            str(running),
            _or_dash(pool.get("target_workers")),
        )
    return table


def _lines(progress: Progress, columns: int, bars: str) -> list[RenderableType]:
    room = max(columns - 20, 10)
    return [
        Text.assemble((f"{name:<9}", "dim"), (sparkline(values, columns=room, bars=bars), style), f" {values[-1]}")
        for name, values, style in (("backlog", progress.backlog, "yellow"), ("workers", progress.workers, "green"))
        if values
    ]


def _decisions(progress: Progress) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_header=False)
    # The reason is what gives way where there is little room.
    table.add_column(style="dim", no_wrap=True, justify="right", min_width=len("999 s ago"))
    table.add_column(no_wrap=True, min_width=len("24 → 24"))
    table.add_column(no_wrap=True, overflow="ellipsis")
    now_s = (progress.overview or {}).get("at_s", 0.0)
    is_one_of_many = len((progress.overview or {}).get("pools", [])) > 1
    for stored in (progress.overview or {}).get("decisions", [])[:DECISIONS_SHOWN]:
        decision = stored["decision"]
        table.add_row(
            f"{max(now_s - stored['decided_at_s'], 0):.0f} s ago",
            f"{_or_dash(stored['previous_workers'])} → {decision['target_workers']}",
            f"{decision['pool']}: {reason(stored)}" if is_one_of_many else reason(stored),
        )
    return table


def reason(stored: dict[str, Any]) -> str:
    """Why, in a few words: what had the last word, and the demand behind it where that is another."""
    decision, explanation = stored["decision"], stored["explanation"]
    causes = [explanation["binding_label"]]
    for greatest in explanation["demands"][:1]:
        demand = f"{greatest['label']} {greatest['slots']:.1f}"
        causes = [demand] if greatest["name"] == decision["binding"] else [*causes, demand]
    return "; ".join([*causes, *decision["notes"][:1]])


def _wanted(progress: Progress) -> int | None:
    """The targets of all pools together; None before the first."""
    targets = [pool.get("target_workers") for pool in (progress.overview or {}).get("pools", [])]
    known = [target for target in targets if target is not None]
    return sum(known) if known else None


def _or_dash(value: object) -> str:
    return "–" if value is None else str(value)
