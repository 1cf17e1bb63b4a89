"""Workers that drain: asked again if the stop signal may not have arrived, and killed at their drain deadline.

was perhaps never signalled    asked again at its deadline, with all its time again
reports that it does not stop  asked again at once
is past its drain deadline     killed, with its family, and again while it does not end

A worker whose template drains after isolation gets its time once: the control plane may give its place to another.
"""

import logging

from headway.agent.config.templates import Template
from headway.agent.reporting.reporters import Reporters
from headway.agent.workers import lifecycle
from headway.agent.workers.ends.cut_watch import CutWatch
from headway.agent.workers.managed_worker import ManagedWorker
from headway.scaling.model import CutCause, WorkerState

STOP_REPEATED_AFTER_S = 5.0  # beats come every 2 s, and a handler may wait for the present instruction

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
            if life.is_being_told and not life.is_forced and has_time_again:
                worker.become(lifecycle.stop_repeated(life, now_s=now_s))
                return True
            why = f"it did not end by its drain deadline of {worker.record.stop.drain_timeout_s} s"
            self._force(worker, now_s, why=why, cause=CutCause.DRAIN_DEADLINE)
        elif not life.is_forced and self._works_on(worker):
            if has_time_again:
                worker.become(lifecycle.stop_repeated(life, now_s=now_s))
            log.warning(
                "draining again pool=%s pid=%d: it reports that it does not stop", worker.record.pool, worker.record.pid
            )
            return True
        return False

    def kill(self, worker: ManagedWorker, *, why: str, now_s: float) -> None:
        """Kill the worker, whether or not it drains already."""
        if worker.state is not WorkerState.DRAINING:
            worker.become(lifecycle.signalled(lifecycle.stop_requested(worker.record.life, now_s=now_s)))
        self._force(worker, now_s, why=why, cause=CutCause.KILLED)

    def _force(self, worker: ManagedWorker, now_s: float, *, why: str, cause: CutCause) -> None:
        if not worker.record.life.is_forced:
            self._cuts.note_kill(worker.record, cause=cause)
        worker.force(now_s=now_s, why=why)

    def _works_on(self, worker: ManagedWorker) -> bool:
        """Whether the worker reports, some seconds after the stop signal, that it has not received it."""
        beat = self._reporters.beat(worker.record.worker_id)
        return (
            beat is not None
            and not beat.is_stopping
            and beat.received_at_s - worker.asked_at_s >= STOP_REPEATED_AFTER_S
        )
