"""What follows from the end of a worker's process: for its place, its kind, its jobs, and the next report."""

import logging
from dataclasses import dataclass, replace

from headway.agent.config.templates import Template
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.reporting.reporters import Reporters
from headway.agent.workers import lifecycle
from headway.agent.workers.ends.cut_watch import CutWatch
from headway.agent.workers.ends.exit_log import Ended, ExitLog
from headway.agent.workers.ends.orphans import OrphanProcesses
from headway.agent.workers.ends.worker_end import WorkerEnd
from headway.agent.workers.lifecycle import Life
from headway.agent.workers.managed_worker import ManagedWorker
from headway.agent.workers.starts.start_failures import OUTPUT_END_BYTES
from headway.agent.workers.starts.start_gate import StartGate
from headway.agent.workers.starts.suspended_starts import SuspendedStarts
from headway.agent.workers.worker_logs import WorkerLogs
from headway.agent.workers.worker_record import Record
from headway.agent.workers.worker_table import WorkerTable
from headway.errors import printable
from headway.scaling.model import WorkerState

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaper:
    """Takes note of the ends of workers."""

    table: WorkerTable
    gate: StartGate
    ends: ExitLog
    cuts: CutWatch
    remains: OrphanProcesses
    suspended_starts: SuspendedStarts
    reporters: Reporters
    output: WorkerLogs

    def reap_gone(
        self, worker: ManagedWorker, template: Template | None, *, were_all_killed: bool, now_s: float
    ) -> None:
        """Take note of a worker that was gone when this agent came, killed perhaps with all others."""
        self.cuts.note_gone(worker.record, were_all_killed=were_all_killed)
        said = self.remains.last_report(worker)
        self._conclude(worker, self._end_of(worker, template, exit_code=None, said=said), now_s=now_s)

    def reap(self, worker: ManagedWorker, template: Template | None, *, exit_code: int | None, now_s: float) -> None:
        """Take note that the worker's process has ended: the worker backs off, or its place is free.

        ``template`` is what it was started from, as ``host.toml`` has it now; ``exit_code`` is ``None`` where nobody
        could see it.
        """
        has_loaded = self.reporters.has_loaded(worker.record.worker_id)
        said = self.remains.last_report(worker)
        end = self._end_of(worker, template, exit_code=exit_code, said=said)
        self.cuts.note_end(end, said=said)
        is_unready_end = bool(exit_code) and said.source is None and _is_unready(worker.record, now_s=now_s)
        if is_unready_end and self.reporters.doubts.note_end(
            worker.record.template, has_loaded=has_loaded, why=self.output.last_words(worker.record.worker_id)
        ):
            # Its place is free: another start is made without the reporter, at once.
            self._let_go(worker)
            self.remains.note(end)
            self.table.remove(worker)
        else:
            self._conclude(worker, end, now_s=now_s)

    def _end_of(
        self, worker: ManagedWorker, template: Template | None, *, exit_code: int | None, said: Activity
    ) -> WorkerEnd:
        record = worker.record
        is_unchanged = template is not None and template.content_hash == record.template_hash
        return WorkerEnd(
            record=record,
            exit_code=exit_code,
            last=self.cuts.known_of(record, said=said),
            argv=template.argv if template is not None and is_unchanged else (),
        )

    def _conclude(self, worker: ManagedWorker, end: WorkerEnd, *, now_s: float) -> None:
        record, exit_code = end.record, end.exit_code
        if record.life.state is WorkerState.DRAINING and worker.was_idle and not record.life.is_forced:
            self.ends.note_exit(worker.exit(now_s=now_s))
        life = self._life_after(end, now_s=now_s)
        self._let_go(worker)
        worker.become(life)
        self.ends.note(Ended(worker=worker.worker(NOT_KNOWN), exit_code=exit_code), is_spent=life.is_spent)
        if exit_code != 0 or worker.may_leave(now_s=now_s):
            self.remains.note(end)
        summary = f"pid={record.pid} exit={'unknown' if exit_code is None else exit_code}"
        summary += f" after_s={now_s - life.started_at_s:.1f}"
        if life.state is WorkerState.BACKING_OFF:
            worker.record = replace(worker.record, pid=0, started_ticks=0)
            self._note_failure(record, f"{summary}{_at_job(end.last)}", now_s=now_s)
        else:
            log.info("ended pool=%s template=%s %s", *record.kind, summary)
        self.table.remove_if_gone(worker)

    def _life_after(self, end: WorkerEnd, *, now_s: float) -> Life:
        """The life after the end, which is no failure if it was due, or if somebody has suspended the library."""
        record = end.record
        if end.is_due:
            self.gate.note_due_end(record, now_s=now_s)
        if end.has_found_no_job:
            self.suspended_starts.note_idle_end(record, now_s=now_s)
        life = lifecycle.ended(record.life, exit_code=end.exit_code, now_s=now_s, is_due=end.is_due)
        if life.state is WorkerState.BACKING_OFF and self.suspended_starts.note(
            record.kind, last_words=self.output.last_words(record.worker_id), now_s=now_s
        ):
            life = lifecycle.over(life, now_s=now_s)
        return life

    def _note_failure(self, record: Record, summary: str, *, now_s: float) -> None:
        self.gate.failures.note(record, self.output.end(record.worker_id, OUTPUT_END_BYTES), now_s=now_s)
        why = f"{summary} said={self.output.last_words(record.worker_id)!r}"
        self.gate.note_failure(record.kind, why, started_at_s=record.life.started_at_s, now_s=now_s)

    def _let_go(self, worker: ManagedWorker) -> None:
        worker.let_go()
        self.output.release(worker.record.worker_id)


def _is_unready(record: Record, *, now_s: float) -> bool:
    """Whether the worker was not ready yet. What was taken for ready by its age alone may load its modules only now."""
    life = record.life
    return life.state is WorkerState.STARTING or (record.ready.pattern is None and life.is_on_trial(now_s=now_s))


def _at_job(said: Activity) -> str:
    """The job that a worker began last and had not ended, by its own report: its id and class, never its arguments."""
    if not said.running:
        return ""
    job = max(said.running, key=lambda each: each.started_at_s)
    return f" job={printable(job.job_id)} class={printable(job.job_class or 'unknown')}"
