"""`headway logs`: what a pool's workers have printed, read on the host that keeps it (docs/decisions/0030)."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from headway.cli.api_client import connected, path_of
from headway.cli.operator.completion import names
from headway.cli.terminal.cells import duration
from headway.cli.terminal.printing import say
from headway.cli.typer_app import main_of
from headway.errors import Misconfigured, Unavailable
from headway.scaling.explanations.phrases import counted

LOGS_READ_BYTES = 1024 * 1024  # of the end of each file
LOGS_LINES_MAX = 10_000
LOGS_WORKERS = 5
STATE_DIR = Path(".headway/agent")  # of `headway up`, and of an agent that nothing else is said to

app = typer.Typer(add_completion=False, help="Show what a pool's workers have printed.")
main = main_of(app)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """The file of one worker on this host."""

    worker_id: str
    pid: int
    path: Path
    printed_at_s: float


@app.command()
def logs(
    pool: Annotated[str, typer.Argument(metavar="POOL", help="The pool.", autocompletion=names.pools)],
    *,
    lines: Annotated[int, typer.Option("-n", "--lines", min=1, max=LOGS_LINES_MAX, help="So many of each.")] = 20,
    workers: Annotated[int, typer.Option(min=1, max=1_000, help="The workers that printed last.")] = LOGS_WORKERS,
    state_dir: Annotated[
        Path, typer.Option(envvar="HEADWAY_STATE_DIR", help="Where the agent of this host keeps its state.")
    ] = STATE_DIR,
) -> None:
    """Show the last lines of this host's workers of a pool, ended ones included, and which other hosts have workers.

    What workers print never leaves their host: the control plane has none of it.
    """
    found = sorted(_printed(state_dir, pool), key=lambda each: each.printed_at_s)
    running, why_unknown = _running(pool, is_needed=not found)
    for each in found[-workers:]:
        _show(each, running.get(each.worker_id), lines)
    if len(found) > workers:
        say(f"{len(found) - workers} more of this host printed earlier: --workers {len(found)} shows them")
    here = {each.worker_id for each in found}
    elsewhere = Counter(row["host"] for row in running.values() if row["worker_id"] not in here)
    for host, count in sorted(elsewhere.items()):
        say(f"{counted(count, 'worker')} on host {host}: run `headway logs {pool}` there, as its agent's user")
    if why_unknown:
        say(f"workers of other hosts are not known: {why_unknown}", is_error=True)
    elif not found and not elsewhere:
        say(f"pool {pool!r} has no workers, and {state_dir} keeps nothing that one of them has printed")


def _running(pool: str, *, is_needed: bool) -> tuple[Mapping[str, Mapping[str, Any]], str]:
    """The pool's workers by their ids, or why they are not known. What is here is shown without them, too."""
    try:
        with connected() as api:
            rows = api.get_all("/v1/workers", "workers", pool=pool, limit=2_000)["workers"]
            if not rows:
                api.get(path_of("profiles", pool))  # says so where there is no such pool
            return {row["worker_id"]: row for row in rows}, ""
    except Unavailable as error:
        if is_needed:
            raise
        return {}, str(error)


def _printed(state_dir: Path, pool: str) -> Iterator[Printed]:
    """The files of this host's workers of the pool, by the agent's own record of what it started."""
    try:
        records = (state_dir / "starts.jsonl").read_text().splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        raise Misconfigured(
            f"{state_dir} cannot be read: {error.strerror}; only the agent's user may, for workers may print secrets"
        ) from error
    for record in records:
        with suppress(ValueError, KeyError, TypeError, FileNotFoundError):  # a line cut short; a file that has gone
            worker = json.loads(record)["worker"]
            if worker["pool"] == pool:
                path = state_dir / "workers" / f"{worker['worker_id']}.log"
                at_s = path.lstat().st_mtime
                yield Printed(worker_id=worker["worker_id"], pid=worker["pid"], path=path, printed_at_s=at_s)


def _show(printed: Printed, row: Mapping[str, Any] | None, lines: int) -> None:
    state = row["state"].replace("_", " ") if row else "not running, or not known to the control plane"
    ago = duration(max(0.0, time.time() - printed.printed_at_s))
    say(f"worker {printed.worker_id[:12]} pid {printed.pid}, {state}; printed {ago} ago: {printed.path}")
    for line in _last(printed.path, lines):
        say(f"  {line}")


def _last(path: Path, lines: int) -> list[str]:
    try:
        # Through no link: whoever writes in the folder shows no other file by it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOGS_READ_BYTES))
            text = file.read(LOGS_READ_BYTES).decode(errors="replace")
    except OSError as error:
        return [f"(cannot be read: {error.strerror})"]
    return text.splitlines()[-lines:] or ["(nothing yet)"]
