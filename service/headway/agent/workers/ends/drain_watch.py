"""Workers that drain: asked again if the stop signal may not have arrived, and killed at their drain deadline.

was perhaps never signalled    asked again at its deadline, or once it is known to have no job
reports that it does not stop  asked again at once
has no job and does not end    asked again after some time
is past its drain deadline     killed, with its family, and again while it does not end

A worker that may have a job and may have received the signal is never sent a second one before its deadline: to many
libraries that means to drop the job.

The first repetition gives a worker all its time again; later ones do not, so that its deadline is reached. A worker
whose template drains after isolation gets its time once: the control plane may give its place to another.
"""

import logging

from headway.agent.config.templates import Template
from headway.agent.reporting.reporters import Reporters
from headway.agent.workers import lifecycle
from headway.agent.workers.ends.cut_watch import CutWatch
from headway.agent.workers.managed_worker import ManagedWorker
from headway.scaling.model import CutCause, WorkerState

STOP_REPEATED_AFTER_S = 5.0  # beats come every 2 s, and a handler may wait for the present instruction
IDLE_STOP_REPEATED_AFTER_S = 30.0  # a worker without a job ends within seconds; one may still send what it has logged

log = logging.getLogger(__name__)


class DrainWatch:
    """Ends the workers that were asked to stop, and notes the jobs that a kill cuts."""

    def __init__(self, reporters: Reporters, cuts: CutWatch) -> None:
        self._reporters = reporters
        self._cuts = cuts

    def check(self, worker: ManagedWorker, template: Template | None, *, now_s: float) -> bool:
        """Kill the worker if its time is over. Returns whether it is to be asked to stop again instead.

        ``template`` is what it was started from, as ``host.toml`` has it now.
        """
        life = worker.record.life
        has_time_again = template is None or template.isolation_drain_after_s is None
        if now_s >= worker.due_s(now_s=now_s):
            if not (life.is_being_told and not life.is_forced and has_time_again):
                why = f"it did not end by its drain deadline of {worker.record.stop.drain_timeout_s} s"
                self._force(worker, now_s, why=why, cause=CutCause.DRAIN_DEADLINE)
                return False
        elif life.is_forced or (reason := self._why_again(worker)) is None:
            return False
        else:
            log.warning("draining again pool=%s pid=%d: %s", worker.record.pool, worker.record.pid, reason)
        if has_time_again and not worker.had_time_again:
            worker.had_time_again = True
            worker.become(lifecycle.stop_repeated(life, now_s=now_s))
        return True

    def kill(self, worker: ManagedWorker, *, why: str, now_s: float) -> None:
        """Kill the worker, whether or not it drains already."""
        if worker.state is not WorkerState.DRAINING:
            worker.become(lifecycle.signalled(lifecycle.stop_requested(worker.record.life, now_s=now_s)))
        self._force(worker, now_s, why=why, cause=CutCause.KILLED)

    def _force(self, worker: ManagedWorker, now_s: float, *, why: str, cause: CutCause) -> None:
        if not worker.record.life.is_forced:
            self._cuts.note_kill(worker.record, cause=cause)
        worker.force(now_s=now_s, why=why)

    def _why_again(self, worker: ManagedWorker) -> str | None:
        """Why the worker is to be asked to stop again before its deadline; ``None``: it is not.

        Only evidence from some time after the last signal counts: a worker that received the signal has begun no job
        since, and to a worker that did not, the next signal is the first.
        """
        beat = self._reporters.beat(worker.record.worker_id)
        if beat is not None:
            is_late = beat.received_at_s - worker.asked_at_s >= STOP_REPEATED_AFTER_S
            return "it reports that it does not stop" if is_late and not beat.is_stopping else None
        known = self._cuts.activity(worker.record)
        if known.is_busy is not False or known.known_at_s is None:
            return None
        after_s = STOP_REPEATED_AFTER_S if worker.record.life.is_being_told else IDLE_STOP_REPEATED_AFTER_S
        return "it has no job and does not end" if known.known_at_s - worker.asked_at_s >= after_s else None
