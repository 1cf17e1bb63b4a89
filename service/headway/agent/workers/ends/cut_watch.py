"""Which ends of workers have cut a job: judged by how each ended, and by the last that was known of it.

killed by its agent         at a drain deadline, or because a person asked: what it had is cut
ended by another's signal   as where memory is short; but by the signal to stop it dies as it was asked to
ended with a job            by the worker's own last report, however it ended; what nobody reported was finished
failed with a job           unasked, with an exit code other than 0, while its broker or a job's process showed one
ended, and none saw how     as under an agent that has taken it over: cut, unless it was known idle, or had a reason to
gone while nobody watched   the same; asked to stop, it had the time to

A job that runs on in a process of its own is not cut yet: ``left_jobs`` says when it is.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.reporting.reporters import JobReports
from headway.agent.state.rows_file import RowsFile, read_row
from headway.agent.state.state_dir import StateFolder
from headway.agent.workers.ends.cut_jobs import CutLog, cut_of, cuts_of
from headway.agent.workers.ends.left_jobs import LeftJobs, find_job_processes, left_jobs_file
from headway.agent.workers.ends.worker_end import WorkerEnd
from headway.agent.workers.worker_record import OrphanRecord, Record
from headway.local import procfs
from headway.scaling.fields import taken_from
from headway.scaling.model import RUNNING_JOBS_NAMED_MAX, ActivitySource, CutCause, RunningJob, WorkerState

FILE = "activity.json"
SHELL_SIGNAL = 128  # a shell ends with this and the number of the signal that ended its child
_AT_WORK = frozenset({WorkerState.RUNNING, WorkerState.DRAINING})
_SHOW_JOBS = frozenset({ActivitySource.BROKER, ActivitySource.CHILD})
"""Sources that show a job; processor time may be anything, such as a program that loads its modules."""

log = logging.getLogger(__name__)


class CutWatch:
    """Notes what ends of workers have cut."""

    def __init__(self, folder: StateFolder, *, boot_id: str, clock: Callable[[], float]) -> None:
        self.log = CutLog(folder, boot_id=boot_id)
        self._last = RowsFile(folder, FILE, from_json=partial(read_row, Activity))
        """What was known of each worker's jobs when an agent last wrote it down; without those of which nothing was."""
        self._known_before = self._last.read()
        self._clock = clock
        self._ended: list[LeftJobs] = []
        """What was cut unless a process still runs it."""
        self._left_file = left_jobs_file(folder, boot_id=boot_id)
        self._left = self._left_file.read()
        """Jobs that run on after their worker, by worker id."""
        self.activity: Callable[[Record], Activity] = lambda _: NOT_KNOWN
        """What is known of a worker's jobs now: the evidence by which its end is judged."""

    def keep(self, records: Iterable[Record]) -> None:
        """Write down what is known of these workers, for the agent that may find them gone."""
        known = {each.worker_id: self.activity(each) for each in records}
        self._last.keep(
            {
                worker_id: Activity(is_busy=each.is_busy, running=each.running)
                for worker_id, each in known.items()
                if each.is_busy is not None
            }
        )

    def known_before(self, record: Record) -> Activity:
        """What an earlier agent knew last of the worker's jobs. The worker may have ended them, or begun others."""
        return replace(NOT_KNOWN, running=self._known_when_seen(record).running)

    def known_of(self, record: Record, *, said: Activity) -> Activity:
        """What was known last of a worker that has ended, which reported ``said``."""
        known = self.activity(record)
        ended_jobs = max((each.ended_jobs for each in (said, known) if each.ended_jobs is not None), default=None)
        return replace(known if said.source is None else said, ended_jobs=ended_jobs)

    def note_kill(self, worker: Record | OrphanRecord, *, cause: CutCause, said: Activity = NOT_KNOWN) -> None:
        """Note what the agent cuts by killing the worker now; ``said`` is what it reports itself."""
        left = self._left.get(worker.worker_id)
        if left is not None:
            if left.gone_at_s is None:
                self.log.note(replace(each, cause=cause, cut_at_s=self._clock()) for each in left.cuts)
                self._left[worker.worker_id] = replace(left, cuts=())  # a process may take more than one kill
            return
        known = self.activity(worker) if isinstance(worker, Record) else said
        self.log.note(cuts_of(worker, known, cause=cause, at_s=self._clock()))

    def note_end(self, end: WorkerEnd, *, said: Activity) -> None:
        """Note what an end has cut that this agent noticed; ``said`` is what the worker reported last."""
        record = end.record
        is_at_work = record.life.state in _AT_WORK or bool(said.running)  # it may end before it is seen to be ready
        if record.life.is_forced or not is_at_work or record.has_other_main():
            return
        if end.exit_code is not None and _is_foreign_signal(record, end.exit_code):
            self._note(end.last, record, cause=CutCause.SIGNAL, at_s=self._clock())
        elif said.is_busy and said.source is ActivitySource.REPORTER:
            self._note(said, record, cause=CutCause.ENDED, at_s=self._clock())
        elif _has_failed_busy(end):
            self._note(end.last, record, cause=CutCause.ENDED, at_s=self._clock())
        elif end.exit_code is None and not (end.was_asked or end.ends_by_itself):
            self._note(end.last, record, cause=CutCause.VANISHED, at_s=self._clock())

    def note_reports(self, worker_id: str, said: JobReports) -> None:
        """Note the jobs that a worker has reported cut: the processes that ran them are gone."""
        cuts = [each for each in said.reports if each.is_cut][:RUNNING_JOBS_NAMED_MAX]
        for each in cuts:
            started_at_s = each.at_s if each.started_at_s is None else each.started_at_s
            job = taken_from(RunningJob, each, started_at_s=started_at_s)
            self.log.note([cut_of(worker_id, said.pool, said.template, job, cause=CutCause.ENDED, at_s=self._clock())])

    def note_gone(self, record: Record, *, were_all_killed: bool) -> None:
        """Note what the worker had that was gone when this agent came.

        ``were_all_killed``: also those that had been asked to stop, as where a container was stopped.
        """
        has_left_by_itself = record.life.is_burst or (
            record.life.state is WorkerState.DRAINING and not record.life.is_forced
        )
        if record.life.state in _AT_WORK and (were_all_killed or not has_left_by_itself):
            self._note(self._known_when_seen(record), record, cause=CutCause.VANISHED, at_s=None)

    def note_ended(self) -> None:
        """Note what the ends since the last call have cut, and the jobs that ran on and did not end since then."""
        now_s = self._clock()
        ended, self._ended = self._ended, []
        processes = find_job_processes([each.record for each in ended])
        for each in ended:
            worker_id = each.record.worker_id
            if worker_id in processes:
                self._left[worker_id] = left = replace(each, processes=processes[worker_id])
                _log_left(left)
            else:
                self.log.note(each.cuts)
        for worker_id, before in list(self._left.items()):
            record = before.record
            known = self.activity(replace(record, pid=record.known_pid))
            left = self._left[worker_id] = before.seen(known, now_s=now_s)
            cuts = left.cuts_by(known, now_s=now_s)
            if cuts is None:
                continue
            del self._left[worker_id]
            if left.has_ended_job:
                log.info("ended its job pool=%s worker=%s: it ran on after the worker", record.pool, worker_id)
            self.log.note(cuts)
        self._left_file.keep(self._left)

    def left_activity(self, worker_id: str) -> Activity:
        """What the processes do that run jobs of a worker that has ended."""
        left = self._left.get(worker_id)
        if left is None or left.gone_at_s is not None:
            return NOT_KNOWN
        running = tuple(each.job for each in left.cuts if each.job is not None)
        is_busy = True if any(each.is_certain for each in left.cuts) else None
        return Activity(is_busy=is_busy, source=ActivitySource.CHILD, known_at_s=self._clock(), running=running)

    def note_reboot(self, records: Iterable[Record]) -> None:
        """Note what workers had that ran before the host booted."""
        for record in records:
            if record.life.state in _AT_WORK:
                known = self._known_when_seen(record)
                self.log.note(cuts_of(record, known, cause=CutCause.REBOOT, at_s=None))

    def _known_when_seen(self, record: Record) -> Activity:
        return self._known_before.get(record.worker_id, NOT_KNOWN)

    def _note(self, known: Activity, record: Record, *, cause: CutCause, at_s: float | None) -> None:
        """Note what the end of a worker has cut, or may cut if its process ends before the job does."""
        if cuts := cuts_of(record, known, cause=cause, at_s=at_s):
            left = LeftJobs(record=record, cuts=cuts, left_at_s=self._clock(), ended_jobs=known.ended_jobs)
            self._ended.append(left)


def _log_left(left: LeftJobs) -> None:
    cut = left.cuts[0]
    log.warning(
        "%s pool=%s worker=%s cause=%s: %s in process %d",
        "a worker was killed" if cut.cause is CutCause.SIGNAL else "a worker ended",
        cut.pool,
        cut.worker_id,
        cut.cause,
        "its job runs on" if cut.is_certain else "its job, if it has one, runs on",
        left.pid,
    )


def _has_failed_busy(end: WorkerEnd) -> bool:
    """Whether the worker died by itself while somebody beside it knew that it had a job.

    A worker that was asked to stop, or that ends by an option, finishes its job first: the evidence is seconds older.
    """
    is_unasked = not (end.was_asked or end.ends_by_itself)
    return bool(end.exit_code) and is_unasked and end.last.is_busy is True and end.last.source in _SHOW_JOBS


def _is_foreign_signal(record: Record, exit_code: int) -> bool:
    """Whether a signal ended the worker that was not the agent's own."""
    is_wrapped = any(each.pid != record.pid for each in record.mains)
    number = -exit_code if exit_code < 0 else exit_code - SHELL_SIGNAL if is_wrapped else 0
    is_asked = record.life.state is WorkerState.DRAINING and number == record.stop.stop_signal
    return 0 < number <= procfs.SIGNALS_MAX and not is_asked
