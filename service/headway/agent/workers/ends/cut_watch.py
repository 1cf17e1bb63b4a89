"""Which ends of workers have cut a job: judged by how each ended, and by the last that was known of it.

killed by its agent         at a drain deadline, or because a person asked: what it had is cut
ended by another's signal   as where memory is short; but by the signal to stop it dies as it was asked to
gone while nobody watched   cut, unless it was known idle, or was asked to stop and had the time to
"""

from collections.abc import Callable, Iterable, Mapping

from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.state.state_dir import StateFolder
from headway.agent.workers.ends.cut_jobs import CutLog, cuts_of
from headway.agent.workers.ends.last_activity import LastActivity
from headway.agent.workers.worker_record import OrphanRecord, Record
from headway.local import procfs
from headway.scaling.model import CutCause, WorkerState

SHELL_SIGNAL = 128  # a shell ends with this and the number of the signal that ended its child
_AT_WORK = frozenset({WorkerState.RUNNING, WorkerState.DRAINING})


class CutWatch:
    """Notes what ends of workers have cut."""

    def __init__(self, folder: StateFolder, *, boot_id: str, clock: Callable[[], float]) -> None:
        self.log = CutLog(folder, boot_id=boot_id)
        self._last = LastActivity(folder)
        self._known_before = self._last.read()
        self._clock = clock
        self._activity: Callable[[Record], Activity] = lambda _: NOT_KNOWN

    def go_by(self, activity: Callable[[Record], Activity]) -> None:
        """Judge ends by this evidence."""
        self._activity = activity

    def keep(self, records: Iterable[Record]) -> None:
        """Write down what is known of these workers, for the agent that may find them gone."""
        self._last.keep({each.worker_id: self._activity(each) for each in records})

    def note_kill(self, worker: Record | OrphanRecord, *, cause: CutCause, said: Activity = NOT_KNOWN) -> None:
        """Note what the agent cuts by killing the worker now; ``said`` is what it reports itself."""
        known = self._activity(worker) if isinstance(worker, Record) else said
        self.log.note(cuts_of(worker, known, cause=cause, at_s=self._clock()))

    def note_end(self, record: Record, *, exit_code: int, said: Activity) -> None:
        """Note what an end has cut that this agent saw; ``said`` is what the worker reported last."""
        if not record.life.is_forced and record.life.state in _AT_WORK and _is_foreign_signal(record, exit_code):
            known = self._activity(record) if said.source is None else said
            self.log.note(cuts_of(record, known, cause=CutCause.SIGNAL, at_s=self._clock()))

    def note_gone(self, record: Record, *, were_all_killed: bool) -> None:
        """Note what the worker had that was gone when this agent came.

        ``were_all_killed``: also those that had been asked to stop, as where a container was stopped.
        """
        has_left_by_itself = record.life.is_burst or (
            record.life.state is WorkerState.DRAINING and not record.life.is_forced
        )
        if record.life.state in _AT_WORK and (were_all_killed or not has_left_by_itself):
            self._note_unseen((record,), cause=CutCause.VANISHED)

    def note_reboot(self, records: Iterable[Record]) -> None:
        """Note what workers had that ran before the host booted."""
        self._note_unseen((each for each in records if each.life.state in _AT_WORK), cause=CutCause.REBOOT)

    def _note_unseen(self, records: Iterable[Record], *, cause: CutCause) -> None:
        for record in records:
            known = self._known_before.get(record.worker_id, NOT_KNOWN)
            self.log.note(cuts_of(record, known, cause=cause, at_s=None))


def _is_foreign_signal(record: Record, exit_code: int) -> bool:
    """Whether a signal ended the worker that was not the agent's own, and not only what had started it."""
    others: Mapping[int, int] = {each.pid: each.started_ticks for each in record.mains if each.pid != record.pid}
    if any(procfs.is_there(pid, ticks) for pid, ticks in others.items()):
        return False  # what takes jobs goes on, as what the worker has left
    number = -exit_code if exit_code < 0 else exit_code - SHELL_SIGNAL if others else 0
    is_asked = record.life.state is WorkerState.DRAINING and number == record.stop.stop_signal
    return 0 < number <= procfs.SIGNALS_MAX and not is_asked
