"""One agent: from a decision to a process, a hundred workers at once, and what the agent itself takes with them.

A real `headway agent` with a control plane of ours that only says how many; the workers are `sleep`.

    python benchmarks/agent.py --workers 100 --seconds 60
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import psutil
from options import positive_count

from headway.local import procfs
from headway.wire.v1 import agent_pb2, agent_pb2_grpc

SETTLES_S = 10.0  # after a hundred workers were started at once
WAIT_MAX_S = 60.0
CLUSTER = "cluster"
HOST_FILE = """
[templates.sleep]
argv = ["sleep", "3600"]
ready_after_s = 0.0
drain_timeout_s = 5
"""


class Control(agent_pb2_grpc.AgentServiceServicer):
    """Says how many workers there shall be, and notes what is reported."""

    def __init__(self) -> None:
        self.answer = agent_pb2.PollResponse(cluster_id=CLUSTER)
        self.polls = 0
        self.reports: list[agent_pb2.ReportRequest] = []
        self._changed = threading.Condition()

    def want(self, workers: int) -> float:
        """Want so many. Returns when that was said, in seconds since boot."""
        with self._changed:
            row = agent_pb2.Assignment(pool="mail", template="sleep", base_workers=workers)
            revision = self.answer.revision + 1
            self.answer = agent_pb2.PollResponse(cluster_id=CLUSTER, epoch=1, revision=revision, assignments=[row])
            said_at_s = procfs.since_boot_s()
            self._changed.notify_all()
        return said_at_s

    def Enrol(self, _request: Any, _context: Any) -> agent_pb2.EnrolResponse:  # noqa: N802
        return agent_pb2.EnrolResponse(cluster_id=CLUSTER, host_id="host")

    def Report(self, request: Any, _context: Any) -> agent_pb2.ReportResponse:  # noqa: N802
        self.reports.append(request)
        return agent_pb2.ReportResponse(cluster_id=CLUSTER, lease_s=45.0)

    def Poll(self, request: Any, context: Any) -> agent_pb2.PollResponse:  # noqa: N802
        until_s = time.monotonic() + request.max_wait_s
        with self._changed:
            self.polls += 1
            while (self.answer.epoch, self.answer.revision) <= (request.epoch, request.revision):
                left_s = until_s - time.monotonic()
                if left_s <= 0 or not context.is_active():
                    break
                self._changed.wait(min(left_s, 1.0))  # an agent that has gone wakes nobody
            return self.answer

    def workers(self) -> list[agent_pb2.Worker]:
        """Those of the last report that run or start."""
        there = {agent_pb2.WORKER_STATE_STARTING, agent_pb2.WORKER_STATE_RUNNING}
        return [each for each in self.reports[-1].workers if each.state in there] if self.reports else []


def until(holds: Callable[[], Any]) -> None:
    """Return once it is so."""
    until_s = time.monotonic() + WAIT_MAX_S
    while not holds():
        if time.monotonic() > until_s:
            raise SystemExit("it did not come true in time")
        time.sleep(0.002)


def children(agent: psutil.Process) -> list[int]:
    """The agent's workers. Asked of the kernel: a scan of all processes would take the time that is measured."""
    found: list[int] = []
    for listed in Path(f"/proc/{agent.pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has just ended
            found += map(int, listed.read_text().split())
    return found


def starts(agent: psutil.Process) -> list[float]:
    """When each of the agent's workers was started, in seconds since boot, to 10 ms."""
    found = (procfs.stat(pid) for pid in children(agent))
    return sorted(each.started_at_s for each in found if each is not None)


def decisions(control: Control, agent: psutil.Process, count: int) -> list[float]:
    """Milliseconds from each of many decisions to its process."""
    took_ms = []
    for workers in range(1, count + 1):
        time.sleep(0.05)
        polls = control.polls
        said_at_s = control.want(workers)
        until(lambda workers=workers: len(children(agent)) >= workers)
        took_ms.append(max(0.0, starts(agent)[-1] - said_at_s) * 1000)
        until(lambda polls=polls: control.polls > polls)
    return took_ms


def at_once(control: Control, agent: psutil.Process, workers: int) -> dict[str, float]:
    """Seconds from one decision to all of its processes."""
    control.want(0)
    until(lambda: not children(agent))
    said_at_s = control.want(workers)
    until(lambda: len(children(agent)) >= workers)
    seen_s = procfs.since_boot_s() - said_at_s
    started_s = [each - said_at_s for each in starts(agent)]
    until(lambda: len(control.workers()) >= workers)
    reported_s = procfs.since_boot_s() - said_at_s
    return {
        "first_started_s": round(started_s[0], 2),
        "last_started_s": round(started_s[-1], 2),
        "load": round(os.getloadavg()[0], 1),
        "all_seen_s": round(seen_s, 2),
        "all_reported_s": round(reported_s, 2),
    }


def idle(control: Control, agent: psutil.Process, seconds: float) -> dict[str, float]:
    """What the agent takes while its workers just run."""
    time.sleep(min(SETTLES_S, seconds))
    before, reports, at_s = sum(agent.cpu_times()[:2]), len(control.reports), time.monotonic()
    time.sleep(seconds)
    span_s = time.monotonic() - at_s
    return {
        "cores": round((sum(agent.cpu_times()[:2]) - before) / span_s, 4),
        "span_s": round(span_s, 1),
        "reports": len(control.reports) - reports,
        "rss_mb": round(agent.memory_info().rss / 1e6, 1),
        "threads": agent.num_threads(),
    }


def measured(folder: Path, port: int, control: Control, args: argparse.Namespace) -> dict[str, Any]:
    (folder / "host.toml").write_text(HOST_FILE)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")},
        "HEADWAY_CONTROL": f"127.0.0.1:{port}",
        "HEADWAY_HOST_FILE": str(folder / "host.toml"),
        "HEADWAY_STATE_DIR": str(folder / "state"),
    }
    with (folder / "agent.log").open("wb") as log:
        argv = [sys.executable, "-m", "headway", "agent", "--stop-workers"]
        process = subprocess.Popen(argv, env=environment, stdout=log, stderr=log)
    agent = psutil.Process(process.pid)
    try:
        until(lambda: control.polls)
        figures: dict[str, Any] = {
            "load_before": os.getloadavg(),
            "rss_without_workers_mb": agent.memory_info().rss / 1e6,
        }
        figures["decision_to_process_ms"] = percentiles(decisions(control, agent, args.decisions))
        figures["at_once"] = [at_once(control, agent, args.workers) for _ in range(3)]
        figures["with_workers"] = {"workers": len(children(agent)), **idle(control, agent, args.seconds)}
        figures["load_after"] = os.getloadavg()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    return figures


def percentiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    at = {"p50": statistics.median(ordered), "p99": ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]}
    return {name: round(value, 1) for name, value in {**at, "max": ordered[-1]}.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=positive_count, default=100)
    parser.add_argument("--decisions", type=positive_count, default=100, help="each for one worker more, one at a time")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long processor time is taken for")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    control = Control()
    with tempfile.TemporaryDirectory(prefix="headway-agent-") as folder, ThreadPoolExecutor(8) as threads:
        server = grpc.server(threads, options=[("grpc.so_reuseport", 0)])
        agent_pb2_grpc.add_AgentServiceServicer_to_server(control, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            figures = measured(Path(folder), port, control, args)
        finally:
            server.stop(0).wait(5)
    print(json.dumps(figures, indent=1))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
