"""One worker in the agent's hands: its record, its process, and what is watched of its output."""

import logging
from dataclasses import dataclass, replace

from headway.agent.config.templates import Template
from headway.agent.model import Activity
from headway.agent.workers import lifecycle
from headway.agent.workers.crash_backoff import CRASH_WITHIN_S
from headway.agent.workers.lifecycle import Life
from headway.agent.workers.main_process import main_processes
from headway.agent.workers.worker_logs import Tail, WorkerLogs
from headway.agent.workers.worker_process import Process
from headway.agent.workers.worker_record import Record
from headway.local import procfs
from headway.scaling.fields import taken_from
from headway.scaling.model import Exit, StartUp, Worker, WorkerState

PATTERN_POLL_S = 0.1
UNSEEN_READY_S = 5.0  # what most libraries take to start; of a worker whose words the disk did not take
LATER_S = 3600.0  # nothing to poll: the kernel signals its end

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ManagedWorker:
    """A worker. One that backs off has no process."""

    record: Record
    process: Process | None = None
    tail: Tail | None = None
    is_ours: bool = True
    """Whether this agent started it, and so knows how long that took."""
    asked_at_s: float = 0.0
    """When its process was sent the stop signal last, or when this agent took it over."""
    had_time_again: bool = False
    """Whether a repeated stop signal has given it all its drain time again."""
    forced_at_s: float = 0.0
    was_idle: bool = False
    """It had no job when it was asked to stop."""
    asked: procfs.Scheduled | None = None
    """What it had had of processors when it was asked to stop; ``None`` where that is not known."""
    had: procfs.Scheduled | None = None
    """And since then, as far as is known."""
    was_seen_ready: bool = True
    """Whether how long its start took is known."""

    @property
    def state(self) -> WorkerState:
        """Where it is in its life."""
        return self.record.life.state

    def may_leave(self, *, now_s: float) -> bool:
        """Whether something may have stayed that it started, though it ended well: it is a wrapper, or hardly began."""
        is_young = now_s - self.record.life.started_at_s < CRASH_WITHIN_S
        return is_young or any(each.pid != self.record.pid for each in self.record.mains) or not self.record.mains

    def worker(self, activity: Activity) -> Worker:
        """The worker as the core knows it."""
        return taken_from(
            Worker,
            self.record,
            self.record.life,
            activity,
            pid=self.record.known_pid,
            state_since_s=self.record.life.since_s,
            activity_source=activity.source,
            activity_known_at_s=activity.known_at_s,
        )

    @property
    def drain_bound_s(self) -> float:
        """Seconds in which it ends once it is asked to, by force if need be; infinite if it has no drain deadline."""
        timeout_s = self.record.stop.drain_timeout_s
        # A stop request that was perhaps lost is repeated, with all the time again.
        return float("inf") if timeout_s is None else timeout_s * (1 + self.record.life.is_being_told)

    def go_by(self, template: Template | None) -> bool:
        """Stop as the template says that is now in force. Returns whether it would be started otherwise now."""
        if template is None:
            if not self.record.template:  # nobody knows how it was started, and its job may be a long one
                self.record = replace(self.record, stop=replace(self.record.stop, drain_timeout_s=None))
            return False
        if template.content_hash != self.record.template_hash:
            return True
        self.record = replace(self.record, stop=template.stop)
        return False

    def become(self, life: Life) -> None:
        """Note a move."""
        self.record = replace(self.record, life=life)

    def runs_as(self, process: Process, output: WorkerLogs) -> None:
        """Note the process that it has now, whose file is in ``output``."""
        self.process = process
        record = self.record
        uid = record.uid if process.uid is None else process.uid
        self.record = replace(record, pid=process.pid, started_ticks=process.started_ticks, uid=uid)
        pattern = self.record.ready.pattern
        if self.state is WorkerState.STARTING and pattern is not None:
            self.tail = output.tail(record.worker_id, pattern)

    def is_ready(self, *, now_s: float) -> bool:
        """Whether it has shown that it is ready."""
        age_s = now_s - self.record.life.started_at_s
        if self.tail is None:
            return age_s >= self.record.ready.after_s
        if self.tail.sees():
            return True
        if not self.tail.may_have_missed or age_s < UNSEEN_READY_S:
            return False
        log.warning(
            "taken for ready pool=%s template=%s pid=%d: the disk was full, so its output could not show %r",
            *self.record.kind,
            self.record.pid,
            self.record.ready.pattern,
        )
        self.was_seen_ready = False
        return True

    def is_late(self, *, now_s: float) -> bool:
        """Whether it should have been ready by now."""
        return self.tail is not None and now_s - self.record.life.started_at_s >= self.record.ready.timeout_s

    def give_up(self, *, now_s: float) -> None:
        """Note that it is not ready, and should be."""
        record = self.record
        log.warning(
            "not ready pool=%s template=%s pid=%d: its output did not show %r within %g s; stopping it",
            *record.kind,
            record.pid,
            record.ready.pattern,
            record.ready.timeout_s,
        )
        self.become(lifecycle.late(record.life, now_s=now_s))

    def begin_to_drain(self, *, was_idle: bool, now_s: float) -> None:
        """Note that it is to end; ``was_idle`` if it is known to have no job. One that backs off is gone at once."""
        self.was_idle = was_idle
        self.become(lifecycle.stop_requested(self.record.life, now_s=now_s))

    def request_stop(self, *, now_s: float) -> None:
        """Ask its process to finish what it is doing and end."""
        self.tail = None
        self.asked_at_s = now_s
        if self.process is not None:
            log.info("draining pool=%s pid=%d", self.record.pool, self.record.pid)
            self.asked = procfs.scheduled(self.process.pid) if self.was_idle else None
            self.note_mains()
            asked = self.process.ask_to_end(self.record.stop.stop_signal)
            mains = tuple(replace(each, is_asked=each.is_asked or each.pid in asked) for each in self.record.mains)
            self.record = replace(self.record, mains=mains, life=lifecycle.signalled(self.record.life))

    def note_mains(self) -> None:
        """Note which of its processes take jobs, while the one that was started is there to find them by."""
        if self.process is None or self.process.has_ended():
            return
        asked = {(each.pid, each.started_ticks) for each in self.record.mains if each.is_asked}
        found = main_processes(self.process.pid)
        mains = tuple(replace(each, is_asked=(each.pid, each.started_ticks) in asked) for each in found)
        if mains and mains != self.record.mains:
            self.record = replace(self.record, mains=mains)

    def note_processors(self) -> None:
        """Note what it has had of processors, for when it has ended: the kernel forgets that with its exit code."""
        if self.asked is not None:
            self.had = procfs.scheduled(self.record.pid) or self.had

    def exit(self, *, now_s: float) -> Exit:
        """Its end, which took until now."""
        taken = Exit(template=self.record.template, exit_s=now_s - self.record.life.since_s)
        if self.asked is None or self.had is None:
            return taken
        waited_s = min(taken.exit_s, self.had.waited_s - self.asked.waited_s)
        return replace(taken, cpu_s=max(0.0, self.had.cpu_s - self.asked.cpu_s), waited_s=max(0.0, waited_s))

    def start_up(self, *, now_s: float) -> StartUp:
        """Its start, which took until now."""
        took_s, had = now_s - self.record.life.started_at_s, procfs.scheduled(self.record.pid)
        return StartUp(
            template=self.record.template,
            start_up_s=took_s,
            cpu_s=procfs.family_cpu_s(self.record.pid),
            waited_s=None if had is None else min(took_s, had.waited_s),
        )

    def force(self, *, now_s: float, why: str) -> None:
        """End its process and all of its family."""
        record = self.record
        if not record.life.is_forced:
            self.become(lifecycle.forced(record.life))
            log.warning("forcing pool=%s pid=%d: %s", record.pool, record.pid, why)
        self.forced_at_s = now_s
        if self.process is not None:
            self.process.send_to_all(record.stop.force_signal)

    def let_go(self) -> None:
        """Forget its process, which has ended or shall run on."""
        if self.process is not None:
            self.process.close()
            self.process = None

    def due_s(self, *, now_s: float) -> float:
        """When its process must be polled, at the latest."""
        record, life = self.record, self.record.life
        if life.state is WorkerState.STARTING:
            return now_s + PATTERN_POLL_S if self.tail else life.started_at_s + record.ready.after_s
        if life.state is WorkerState.DRAINING:
            if life.is_forced:
                return self.forced_at_s + lifecycle.FORCE_AGAIN_S
            return lifecycle.drain_ends_s(life, drain_timeout_s=record.stop.drain_timeout_s, now_s=now_s)
        return now_s + LATER_S
