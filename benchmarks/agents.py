"""Many agents on one control plane: held polls, reports every 15 s, changes to one and to all, a storm after a crash.

The agents speak with the real agent's messages, codec, waits and back-off, from a process of their own. A hundred share
a connection, or as many as the server's limit of concurrent streams makes necessary. What is measured is a real
`headway control`, a process beside its embedded Postgres. This program leads in its place and writes assignments as a
tick does, so that the control plane under test answers agents and decides nothing; what its own ticks cost with so many
hosts is measured last.

    python benchmarks/agents.py --agents 1000 10000 --seconds 60
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import uvloop
from many_agents.crowd import WORKERS_A_HOST, CrowdProcess, run
from many_agents.leader import Leader
from many_agents.page import table
from many_agents.served import Control, Used
from options import positive_count

from headway.control.agents.agent_service import AGENT_HINTED_WAIT_S
from headway.store.embedded import ensure_postgres
from headway.store.engine import create_engine
from headway.store.migrate import upgrade

CHANGES_TO_ALL = 3
WAIT_MAX_S = 120.0
WARM_UP_S = 16.0  # until every agent has reported


class Bench:
    """One crowd, one control plane and its leader."""

    def __init__(self, crowd: CrowdProcess, control: Control, leader: Leader, *, seconds: float, changes: int) -> None:
        self._crowd = crowd
        self._control = control
        self._leader = leader
        self._seconds = seconds
        self._changes = changes
        self._everybody: list[str] = []
        self.figures: dict[str, Any] = {}

    async def enrol(self) -> None:
        """Every agent enrols, reports, and polls for its first orders."""
        self.figures["memory_alone_mb"] = self._control.memory_mb()
        began_s = time.monotonic()
        self._everybody = await self._crowd.enrol()
        self.figures["enrolled_and_reported_s"] = round(time.monotonic() - began_s, 2)
        say(f"{len(self._everybody)} hosts enrolled in {self.figures['enrolled_and_reported_s']} s")
        _, revisions = await self._leader.change(self._everybody)
        began_s = time.monotonic()
        await self._crowd.poll()
        await self._received(revisions)
        self.figures["polls_answered_s"] = round(time.monotonic() - began_s, 2)

    async def held(self) -> None:
        """Nothing happens but that polls are held; then one host's orders change, again and again."""
        await self._settled()
        say("polls held")
        self.figures["held_alone"] = await self._over(self._seconds / 3)
        self.figures["to_one_ms_held_alone"] = await self._changes_to_one()

    async def reporting(self) -> None:
        """Every host reports each 15 s."""
        await self._crowd.report()
        await asyncio.sleep(WARM_UP_S)
        say(f"reports: control plane is pid {self._control.process.pid}")
        self.figures["with_reports"] = await self._over(self._seconds)
        self.figures["to_one_ms"] = await self._changes_to_one()
        say("changes to all")
        self.figures["to_all_s"] = [await self._change_to_all() for _ in range(CHANGES_TO_ALL)]

    async def storm(self) -> None:
        """The control plane is killed and started again; every agent is served anew."""
        self.figures["memory_before_the_storm_mb"] = self._control.memory_mb()
        before = (await self._crowd.seen())["failures"]
        self._control.end(signal.SIGKILL)
        say("storm")
        _, revisions = await self._leader.change(self._everybody)
        began_s = time.monotonic()
        await self._control.start()
        open_s = time.monotonic()
        received_at_s = await self._received(revisions)
        after = await self._crowd.seen()
        self.figures["failures_before_the_storm"] = before
        self.figures["storm"] = {
            "started_s": round(open_s - began_s, 2),
            "from_open_door_s": percentiles([max(0.0, each - open_s) for each in received_at_s]),
            "tries_that_failed": dict(Counter(after["failures"]) - Counter(before)),
            "control_cpu_s": round(self._control.cpu_s, 2),
        }

    async def ticking(self) -> None:
        """The control plane leads and ticks itself."""
        self.figures["with_its_own_ticks"] = await self._over(self._seconds / 4)
        self.figures["failed_for_good"] = (await self._crowd.seen())["failed_for_good"]

    async def _received(self, revisions: dict[str, int]) -> list[float]:
        received_at_s: list[float] = await self._crowd.until_all_have(revisions, WAIT_MAX_S)
        if len(received_at_s) < len(revisions):
            seen = await self._crowd.seen()
            raise SystemExit(f"{len(revisions) - len(received_at_s)} agents never received it: {seen['failures']}")
        return received_at_s

    async def _settled(self) -> None:
        """Return once nobody has anything left to do that came of what went before."""
        await asyncio.sleep(AGENT_HINTED_WAIT_S + 1.0)  # the first wait after a change is short
        for _ in range(10):
            before_s = self._control.cpu_s
            await asyncio.sleep(2)
            if self._control.cpu_s - before_s < 0.1:
                return

    async def _over(self, seconds: float) -> dict[str, Any]:
        before, seen = Used.until_now(self._control), await self._crowd.seen()
        await asyncio.sleep(seconds)
        used, now = Used.until_now(self._control).cores_since(before), await self._crowd.seen()
        span_s = used["span_s"]
        return {
            **used,
            "crowd_cores": round((now["cpu_s"] - seen["cpu_s"]) / span_s, 3),
            "polls_per_s": round((now["polls"] - seen["polls"]) / span_s, 1),
            "reports_per_s": round((now["reports"] - seen["reports"]) / span_s, 1),
            "report_ms": percentiles([each * 1000 for each in now["report_s"]]),
            "memory_mb": self._control.memory_mb(),
            "load": round(os.getloadavg()[0], 1),
        }

    async def _changes_to_one(self) -> dict[str, float]:
        took_ms = []
        for _ in range(self._changes):
            committed_s, revisions = await self._leader.change([random.choice(self._everybody)])
            (received_at_s,) = await self._received(revisions)
            took_ms.append(max(0.0, received_at_s - committed_s) * 1000)
            await asyncio.sleep(0.02)
        return percentiles(took_ms)

    async def _change_to_all(self) -> dict[str, Any]:
        began_s = time.monotonic()
        committed_s, revisions = await self._leader.change(self._everybody)
        before, seen = Used.until_now(self._control), await self._crowd.seen()
        received_at_s = await self._received(revisions)
        await asyncio.sleep(5)
        used, now = Used.until_now(self._control), await self._crowd.seen()
        return {
            "written_s": round(committed_s - began_s, 2),
            **percentiles([max(0.0, each - committed_s) for each in received_at_s]),
            "control_cpu_s": round(used.control_s - before.control_s, 2),
            "crowd_cpu_s": round(now["cpu_s"] - seen["cpu_s"], 2),
            "load": round(os.getloadavg()[0], 1),
        }


async def measured(count: int, *, seconds: float, changes: int, folder: Path) -> dict[str, Any]:
    """The figures for ``count`` agents."""
    server = ensure_postgres(folder / "postgres")
    engine = create_engine(server.url)
    control = Control(folder, server.url)
    leader = Leader(engine, server.url)
    figures: dict[str, Any] = {"agents": count, "workers_a_host": WORKERS_A_HOST, "load_before": os.getloadavg()}
    try:
        await asyncio.to_thread(upgrade, server.url)
        with crowded(control.address, count) as crowd:
            bench = Bench(crowd, control, leader, seconds=seconds, changes=changes)
            bench.figures = figures
            async with leader.leading():
                await control.start()
                await bench.enrol()
                await bench.held()
                await bench.reporting()
                await bench.storm()
            await bench.ticking()
    finally:
        control.end()
        await engine.dispose()
        server.wait_stopped(30.0)
        figures["errors_logged"] = Counter(
            line.split(" ", 3)[-1][:80] for line in control.log_lines() if " ERROR " in line or "Traceback" in line
        ).most_common(5)
    figures["load_after"] = os.getloadavg()
    return figures


@contextlib.contextmanager
def crowded(address: str, count: int) -> Iterator[CrowdProcess]:
    """A crowd in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=run, args=(theirs, address, count), daemon=True)
    process.start()
    theirs.close()  # so that the end of that process is noticed
    try:
        yield CrowdProcess(ours)
    finally:
        with contextlib.suppress(OSError):
            ours.send(None)
        process.join(10)
        process.kill()


def say(what: str) -> None:
    """Print how far it has come."""
    print(f"-- {time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile and greatest; nothing where there are no values."""
    if not values:
        return {}
    ordered = sorted(values)
    at = {"p50": statistics.median(ordered), "p99": ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]}
    return {name: round(value, 3) for name, value in {**at, "max": ordered[-1]}.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=positive_count, nargs="+", default=[1_000, 10_000])
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="how long reports are measured; held polls a third of it",
    )
    parser.add_argument("--changes", type=positive_count, default=200, help="of one host's orders, one after the other")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    found = []
    for count in args.agents:
        say(f"{count} agents")
        with _folder() as folder:
            found.append(uvloop.run(measured(count, seconds=args.seconds, changes=args.changes, folder=folder)))
        print(json.dumps(found[-1], indent=1), flush=True)
    print(table(found))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="headway-agents-") as folder:
        Path(folder).chmod(0o711)  # for root, whose Postgres runs as nobody
        yield Path(folder)


if __name__ == "__main__":
    sys.exit(main())
