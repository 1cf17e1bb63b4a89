"""One run of the demo: jobs are sent, done and counted while workers come and go."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from headway.cli.demo_jobs import DemoJobs
from headway.cli.feed import OverviewFeed
from headway.cli.machine import Machine
from headway.cli.report import JobRecord, Report, Run, report_of
from headway.cli.stopping import Stopping
from headway.cli.view import Progress, Terminal, picture, progress_line
from headway.cli.worker_watch import WorkerWatch
from headway.scaling.profile import Profile
from headway.simulate.replay import RecordedJob, replay

LOOK_S = 0.2
SHOW_EVERY_S = 1.0
REST_S = 120.0  # the longest job of the recording's first half hour lasts 48 s
LEAVE_S = 120.0  # rates look back a minute, a lower count is held for 15 s: some 80 s after the last job all are gone
DECISIONS_A_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What is to happen."""

    profile: Profile
    connection: str
    jobs: Sequence[RecordedJob]
    for_s: float
    write_host_file: Callable[[str], object]
    """Given the broker's URL, writes the templates that the agent reads."""
    settings: Mapping[str, object]
    """Carried into the report as they are."""


class Demo:
    """What was started for a run, and what is known of it so far."""

    def __init__(self, script: Script, machine: Machine, *, stopping: Stopping, terminal: Terminal) -> None:
        self._script = script
        self._machine = machine
        self._stopping = stopping
        self._terminal = terminal
        self._ending = threading.Event()
        self._jobs: DemoJobs | None = None
        self._watch = WorkerWatch(lambda: machine.supervisor.pid("agent"))
        self._feed = OverviewFeed(machine.plan.url, token=machine.plan.token)
        self._shown_at_s = 0.0
        objective = script.profile.objective
        self._progress = Progress(
            url=machine.plan.url, objective=f"{objective.percentile:g} % start within {objective.target_s:g} s"
        )
        self._ready_s: float | None = None
        self._sending_since_s: float | None = None
        self._done_at_s: float | None = None
        self._records: list[JobRecord] = []
        self._scale_actions: int | None = None
        self._is_whole = False

    def start(self, *, began_s: float, apply_profiles: Callable[[], object]) -> None:
        """Start everything, and return once the pipeline is ready for the first job."""
        url = self._machine.start_valkey()
        self._jobs = DemoJobs(url, wait=self._ending.wait)
        self._jobs.clear()
        self._script.write_host_file(url)
        self._machine.start(brokers={self._script.connection: url}, apply_profiles=apply_profiles)
        self._watch.start()
        self._feed.start()
        self._ready_s = time.monotonic() - began_s

    def run(self) -> None:
        """Send the jobs, wait for the rest of them, then for the workers to leave; every wait has a bound."""
        jobs = self._started_jobs
        self._sending_since_s = time.time()
        sender = threading.Thread(target=self._send, args=(jobs,), name="replay", daemon=True)
        sender.start()
        with self._terminal.showing(self._picture, lambda: progress_line(self._progress)):
            ends_at_s = time.monotonic() + self._script.for_s
            self._until(
                lambda: time.monotonic() >= ends_at_s and not sender.is_alive(),
                phase="sending jobs",
                within_s=self._script.for_s + REST_S,
                counting_to_s=ends_at_s,
            )
            self._until(lambda: (jobs.ended() or 0) >= jobs.sent, phase="waiting for the rest", within_s=REST_S)
            self._done_at_s = time.time()
            self._until(lambda: not self._watch.present, phase="waiting for the workers to leave", within_s=LEAVE_S)
        self._is_whole = True

    def stop(self) -> None:
        """End everything. What is still needed of it for the report is taken on the way."""
        self._ending.set()
        self._feed.close()
        if self._sending_since_s is not None:
            self._scale_actions = self._target_changes(self._sending_since_s)
        with self._terminal.stage("stopping"):
            self._machine.supervisor.stop_children()
            self._watch.close()
            if self._jobs:
                self._records = self._jobs.records()
                self._jobs.close()
            self._machine.supervisor.stop_servers()

    def report(self) -> Report:
        """What the run achieved, as far as it came."""
        now_s = time.time()
        profile = self._script.profile
        return report_of(
            Run(
                jobs=self._records,
                lives=self._watch.lives(until_s=now_s),
                objective_s=profile.objective.target_s,
                objective_percentile=profile.objective.percentile,
                began_at_s=self._sending_since_s or now_s,
                ended_at_s=self._done_at_s or now_s,
                scale_actions=self._scale_actions,
                ready_s=self._ready_s,
                is_interrupted=not self._is_whole,
                settings={**self._script.settings, "workers_left": self._watch.present},
            )
        )

    @property
    def _started_jobs(self) -> DemoJobs:
        assert self._jobs is not None, "start() comes first"
        return self._jobs

    def _send(self, jobs: DemoJobs) -> None:
        replay(self._script.jobs, send=jobs.send, clock=time.monotonic, wait=self._ending.wait)

    def _until(
        self, holds: Callable[[], bool], *, phase: str, within_s: float, counting_to_s: float | None = None
    ) -> None:
        """Look after everything until ``holds``, or until ``within_s`` have passed."""
        until_s = time.monotonic() + within_s
        self._progress.phase = phase
        while time.monotonic() < until_s:
            self._machine.supervisor.tend()
            now_s = time.monotonic()
            self._progress.left_s = None if counting_to_s is None else max(counting_to_s - now_s, 0.0)
            if now_s - self._shown_at_s >= SHOW_EVERY_S:
                self._shown_at_s = now_s
                self._show()
            if holds():
                return
            self._stopping.wait(LOOK_S)
            self._stopping.check()
        self._terminal.say(f"{phase}: not through after {within_s:.0f} s")

    def _show(self) -> None:
        jobs, progress = self._started_jobs, self._progress
        waiting, ended = jobs.waiting(), jobs.ended()
        progress.overview = self._feed.newest
        progress.jobs_sent = jobs.sent
        progress.jobs_done = progress.jobs_done if ended is None else ended
        progress.jobs_waiting = progress.jobs_waiting if waiting is None else waiting
        progress.add(waiting=progress.jobs_waiting, workers=self._watch.present)

    def _picture(self) -> RenderableType:
        return picture(self._progress, columns=self._terminal.console.width, bars=self._terminal.bars)

    def _target_changes(self, since_s: float) -> int | None:
        """How many decisions since then set another number than the one before; None where they cannot be read."""
        changes = 0
        query: dict[str, str | int] = {"pool": self._script.profile.pool, "limit": DECISIONS_A_PAGE}
        while page := self._machine.ask("/v1/decisions", **query):
            found = page["decisions"]
            new = [each for each in found if each["decided_at_s"] >= since_s]
            changes += sum(_is_change(each) for each in new)
            if not page["next"] or len(new) < len(found):
                return changes
            query["before"] = page["next"]
        return None


def _is_change(stored: Mapping[str, Any]) -> bool:
    return bool((stored["previous_workers"] or 0) != stored["decision"]["target_workers"])
