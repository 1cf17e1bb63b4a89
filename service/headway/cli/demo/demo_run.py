"""One run of the demo: jobs are sent, done and counted while workers come and go."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.console import RenderableType

from headway.cli.demo.comparison import START_UP_GUESS_S, Terms, comparison, fixed_pool
from headway.cli.demo.demo_chaos import Chaos
from headway.cli.demo.demo_jobs import DemoJobs
from headway.cli.demo.demo_libraries import DemoLibrary
from headway.cli.demo.demo_report import JobRecord, QueueGoal, Report, Run, report_of
from headway.cli.demo.demo_workloads import CONNECTION, DemoWorkload, Lane
from headway.cli.demo.process_watch import WorkerWatch
from headway.cli.demo.report_page import report_page
from headway.cli.local.live_view import DECISIONS_SHOWN, Progress, Terminal, picture, progress_line
from headway.cli.local.stack import Stack
from headway.cli.process.shutdown import Stopping
from headway.connections import Connection
from headway.simulate.replay import replay
from headway.simulate.report.svg import Tick

POLL_S = 0.2
SHOW_EVERY_S = 1.0
RUN_REST_S = 120.0  # the longest job of the bursts' first half hour lasts 48 s
RUN_LEAVE_S = 90.0  # rates cover a minute, a lower count is held for up to 30 s
RUN_TOTAL_S = 225.0  # a default run, stopping and report included, is over within four minutes of its first job
LEAVE_LEAST_S = 5.0
DECISIONS_A_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What is to happen."""

    workload: DemoWorkload
    library: DemoLibrary
    speed: float
    for_s: float
    is_chaotic: bool
    """Whether parts are ended by ``SIGKILL`` on the way."""
    control: Mapping[str, str]
    """The settings with which programs that report their jobs reach the control plane."""
    write_host_file: Callable[[str], object]
    """Given the broker's URL, writes the templates that the agent reads."""
    settings: Mapping[str, object]
    """Carried into the report as they are."""

    def leave_within_s(self, *, sent_for_s: float) -> float:
        """How long workers have to leave by themselves when all is done, ``sent_for_s`` after the first job."""
        return max(min(RUN_LEAVE_S, RUN_TOTAL_S - sent_for_s), LEAVE_LEAST_S)


class Demo:
    """What was started for a run, and what is known of it so far."""

    def __init__(self, script: Script, machine: Stack, *, stopping: Stopping, terminal: Terminal) -> None:
        self._script = script
        self._machine = machine
        self._stopping = stopping
        self._terminal = terminal
        self._ending = threading.Event()
        self._jobs: DemoJobs | None = None
        self._watch = WorkerWatch(lambda: machine.supervisor.pid("agent"))
        self._shown_at_s = 0.0
        self._progress = Progress(url=machine.plan.url, objective=objectives(script.workload))
        self._chaos = Chaos(
            machine, for_s=script.for_s, workers=self._watch.processes, say=terminal.say, clock=time.monotonic
        )
        self._start_up_s: float | None = None
        self._ready_s: float | None = None
        self._sending_since_s: float | None = None
        self._done_at_s: float | None = None
        self._records: list[JobRecord] = []
        self._scale_actions: int | None = None
        self._is_whole = False

    def start(self, *, began_s: float, apply_profiles: Callable[[], object]) -> None:
        """Start everything, and return once the pipeline is ready for the first job."""
        url = self._machine.start_valkey()
        queues = [lane.queue for lane in self._script.workload.lanes]
        self._jobs = self._script.library.open_jobs(url, queues, self._ending.wait, self._script.control)
        self._jobs.clear()
        self._script.write_host_file(url)
        connection = Connection(name=CONNECTION, url=url, library=self._script.library.name)
        self._machine.start(brokers=[connection], apply_profiles=apply_profiles)
        self._watch.start()
        self._ready_s = time.monotonic() - began_s

    def run(self) -> None:
        """Send the jobs, wait for the rest of them, then for the workers to leave; every wait has a bound."""
        jobs = self._started_jobs
        self._sending_since_s = time.time()
        senders = [
            threading.Thread(target=self._send, args=(jobs, lane), name=f"replay {lane.queue}", daemon=True)
            for lane in self._script.workload.lanes
        ]
        for sender in senders:
            sender.start()
        if self._script.is_chaotic:
            self._chaos.begin()
        with self._terminal.showing(self._picture, lambda: progress_line(self._progress)):
            ends_at_s = time.monotonic() + self._script.for_s
            self._until(
                lambda: time.monotonic() >= ends_at_s and not any(sender.is_alive() for sender in senders),
                phase="sending jobs",
                within_s=self._script.for_s + RUN_REST_S,
                counting_to_s=ends_at_s,
            )
            self._until(lambda: (jobs.ended() or 0) >= jobs.sent, phase="waiting for the rest", within_s=RUN_REST_S)
            self._done_at_s = time.time()
            self._until(
                lambda: not self._watch.present,
                phase="waiting for the workers to leave",
                within_s=self._script.leave_within_s(sent_for_s=self._done_at_s - self._sending_since_s),
                is_over_anyway=True,
            )
        self._is_whole = True

    def stop(self, *, show: Callable[[Report], object]) -> None:
        """End everything. What is still needed of it for the report is taken on the way.

        A run that had begun to send jobs is shown as a report to who watches, before the control plane ends.
        """
        self._ending.set()
        if self._sending_since_s is not None:
            self._scale_actions = self._target_changes(self._sending_since_s)
            self._start_up_s = self._longest_start_up_s()
        with self._terminal.stage("stopping"):
            self._machine.stop_children(but="control")
            self._watch.close()
            try:
                if self._jobs:
                    self._records = self._jobs.records()
                    self._jobs.close()
                if self._sending_since_s is not None:
                    show(self.report[0])
            finally:
                self._machine.stop_children()
                self._machine.supervisor.stop_servers()

    @cached_property
    def report(self) -> tuple[Report, str]:
        """What the run achieved, as far as it came: its figures, and a page of them."""
        script, workload = self._script, self._script.workload
        terms = Terms(
            peak_window_s=workload.peak_recorded_s / workload.times_faster / script.speed,
            start_up_s=START_UP_GUESS_S if self._start_up_s is None else self._start_up_s,
        )
        run = self._run()
        rows = comparison(run, terms)
        report = {
            **report_of(run),
            "workload": {
                "name": workload.name,
                "title": workload.summary(speed=script.speed, for_s=script.for_s),
                "queues": {lane.queue: lane.source for lane in workload.lanes},
                "traces": {lane.queue: lane.trace for lane in workload.lanes},
                "times_faster": workload.times_faster * script.speed,
                "clock": [workload.clock(at_s, speed=script.speed) for at_s in (0.0, script.for_s)],
            },
            "terms": {
                "peak_name": workload.peak_name,
                "peak_window_s": terms.peak_window_s,
                "start_up_s": terms.start_up_s,
                "start_up_is_measured": self._start_up_s is not None,
                "workers_max": workload.lanes[0].profile.workers_max,
            },
            "comparison": rows,
            "fixed_pool": fixed_pool(rows),
            "faults": self._chaos.faults(),
            "trace": " + ".join(lane.trace for lane in workload.lanes),
        }
        return report, report_page(report, run, moments=self._moments())

    def _moments(self) -> list[Tick]:
        """Every third hour of the recorded day."""
        script, workload = self._script, self._script.workload
        if workload.clock_begins_s is None:
            return []
        step_s = 3 * 3600 / workload.times_faster / script.speed
        moments = [step * step_s for step in range(int(script.for_s / step_s) + 1)]
        return [Tick(value=at_s, label=workload.clock(at_s, speed=script.speed) or "") for at_s in moments]

    def _run(self) -> Run:
        now_s = time.time()
        return Run(
            goals=tuple(
                QueueGoal(
                    queue=lane.queue,
                    objective_s=lane.profile.objective.target_s,
                    percentile=lane.profile.objective.percentile,
                    workers_max=lane.profile.workers_max,
                )
                for lane in self._script.workload.lanes
            ),
            jobs=self._records,
            lives=self._watch.lives(until_s=now_s),
            began_at_s=self._sending_since_s or now_s,
            ended_at_s=self._done_at_s or now_s,
            scale_actions=self._scale_actions,
            ready_s=self._ready_s,
            is_interrupted=not self._is_whole,
            settings={**self._script.settings, "workers_left": self._watch.present},
        )

    @property
    def _started_jobs(self) -> DemoJobs:
        assert self._jobs is not None, "start() comes first"
        return self._jobs

    def _send(self, jobs: DemoJobs, lane: Lane) -> None:
        script = self._script
        replay(
            script.workload.jobs(lane, speed=script.speed, for_s=script.for_s),
            send=lambda index, job: jobs.send(lane.queue, index, job),
            clock=time.monotonic,
            wait=self._ending.wait,
        )

    def _until(
        self,
        holds: Callable[[], bool],
        *,
        phase: str,
        within_s: float,
        counting_to_s: float | None = None,
        is_over_anyway: bool = False,
    ) -> None:
        """Supervise everything until ``holds``, or until ``within_s`` have passed."""
        until_s = time.monotonic() + within_s
        self._progress.phase = phase
        while time.monotonic() < until_s:
            self._machine.supervisor.tend()
            self._chaos.tend()
            now_s = time.monotonic()
            self._progress.left_s = None if counting_to_s is None else max(counting_to_s - now_s, 0.0)
            if now_s - self._shown_at_s >= SHOW_EVERY_S:
                self._shown_at_s = now_s
                self._show()
            if holds():
                return
            self._stopping.wait(POLL_S)
            self._stopping.check()
        if not is_over_anyway:
            self._terminal.say(f"{phase}: not through after {within_s:.0f} s")

    def _show(self) -> None:
        jobs, progress = self._started_jobs, self._progress
        waiting, ended = jobs.waiting(), jobs.ended()
        progress.overview = self._overview() or progress.overview
        progress.clock = None
        if progress.left_s:  # while jobs are sent
            since_s = time.time() - (self._sending_since_s or time.time())
            progress.clock = self._script.workload.clock(since_s, speed=self._script.speed)
        progress.jobs_sent = jobs.sent
        progress.jobs_done = progress.jobs_done if ended is None else ended
        progress.jobs_waiting = progress.jobs_waiting if waiting is None else waiting
        progress.add(waiting=progress.jobs_waiting, workers=self._watch.present)

    def _overview(self) -> dict[str, Any] | None:
        """Pools, queues and the newest decisions; ``None`` where the control plane does not answer, killed perhaps."""
        pools, queues = self._machine.ask("/v1/pools"), self._machine.ask("/v1/queues")
        decisions = self._machine.ask("/v1/decisions", limit=DECISIONS_SHOWN)
        return {**queues, **decisions, **pools} if pools and queues and decisions else None

    def _picture(self) -> RenderableType:
        return picture(self._progress, columns=self._terminal.console.width, bars=self._terminal.bars)

    def _longest_start_up_s(self) -> float | None:
        """How long the slowest template's workers take to start, as the agent measured it."""
        hosts = self._machine.ask("/v1/hosts").get("hosts", [])
        known = [template["start_up_s"] for host in hosts for template in host["templates"]]
        return max((each for each in known if each is not None), default=None)

    def _target_changes(self, since_s: float) -> int | None:
        """How many decisions since then set another number than the one before; None where they cannot be read."""
        changes = [self._changes_of(lane.profile.pool, since_s) for lane in self._script.workload.lanes]
        known = [each for each in changes if each is not None]
        return sum(known) if len(known) == len(changes) else None

    def _changes_of(self, pool: str, since_s: float) -> int | None:
        changes = 0
        query: dict[str, str | int] = {"pool": pool, "limit": DECISIONS_A_PAGE}
        while page := self._machine.ask("/v1/decisions", **query):
            found = page["decisions"]
            new = [each for each in found if each["decided_at_s"] >= since_s]
            changes += sum(bool((each["previous_workers"] or 0) != each["decision"]["target_workers"]) for each in new)
            if not page["next"] or len(new) < len(found):
                return changes
            query["before"] = page["next"]
        return None


def objectives(workload: DemoWorkload) -> str:
    """What is wanted of each queue, in a line."""
    return " · ".join(
        f"{lane.queue}: {lane.profile.objective.percentile:g} % within {lane.profile.objective.target_s:g} s"
        for lane in workload.lanes
    )
