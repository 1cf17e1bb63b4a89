"""How a worker is started: it gets a place in the table, and once that is written down, its process.

The manager writes the table down in between: an agent that is killed while it spawns leaves a record of the worker.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from headway.agent.config.environment_file import UnusableEnvironmentFile
from headway.agent.config.templates import Template
from headway.agent.reporting.reporters import Reporters
from headway.agent.workers import lifecycle, worker_process, worker_record
from headway.agent.workers.ends.done_jobs import DoneJobs
from headway.agent.workers.managed_worker import ManagedWorker
from headway.agent.workers.starts.start_gate import StartGate
from headway.agent.workers.starts.start_log import StartLog
from headway.agent.workers.starts.storage_check import StorageCheck
from headway.agent.workers.worker_logs import WorkerLogs
from headway.agent.workers.worker_marks import marks_of
from headway.agent.workers.worker_process import NoOutput, Process
from headway.agent.workers.worker_table import WorkerTable
from headway.errors import Unavailable
from headway.scaling.reconcile import Start

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawner:
    """Starts the workers of one host."""

    table: WorkerTable
    gate: StartGate
    agent_id: str
    environment: Mapping[str, str]
    output: WorkerLogs
    reporters: Reporters
    storage: StorageCheck
    starts: StartLog
    done_jobs: DoneJobs

    def place(
        self,
        start: Start,
        template: Template | None,
        *,
        own_gpus: Sequence[int],
        number: int | None,
        queues: Sequence[str] = (),
        now_s: float,
    ) -> ManagedWorker:
        """A place for one worker, in which it either is to be spawned or backs off.

        ``template`` is ``None`` if the host has none of that name; ``own_gpus`` are those that no worker has, and
        ``number`` is the lowest that none of the template has, ``None`` if that is not known. ``queues`` are the names
        that the worker's command line is to hold.
        """
        kind = (start.pool, start.template)
        why = _why_not(start, template, number, queues)
        if why is not None and not self.gate.backoff.holds(kind, now_s=now_s):
            self.gate.note_failure(kind, why, started_at_s=now_s, now_s=now_s)
        is_admitted = self.gate.admit(kind, now_s=now_s)
        begin = lifecycle.spawned if is_admitted and why is None else lifecycle.held_back
        life = begin(now_s=now_s, is_burst=start.is_burst)
        record = worker_record.placed(start, template, life=life, own_gpus=own_gpus, number=number, queues=queues)
        return self.table.add(record)

    def spawn(self, worker: ManagedWorker, template: Template, *, queues: Sequence[str] = (), now_s: float) -> None:
        """Start the process of a worker whose place is written down; if it cannot be started, it backs off.

        The place is free again if the disk does not take what there is to write: nothing is started without a record.
        """
        if not self.storage.allows_starts:
            self.table.remove(worker)
            return
        record = worker.record
        try:
            process = self._process(worker, template, queues)
        except NoOutput as error:  # says nothing of the template
            self.reporters.end(record.worker_id)
            self.table.remove(worker)
            self.storage.note_no_log(error.why)
            return
        except Unavailable as error:
            self.reporters.end(record.worker_id)
            worker.become(lifecycle.held_back(now_s=now_s, is_burst=record.life.is_burst))
            cause = error.cause if isinstance(error, UnusableEnvironmentFile) else None
            self.gate.failures.note_refusal(record, cause, now_s=now_s)
            self.gate.note_failure(record.kind, str(error), started_at_s=record.life.started_at_s, now_s=now_s)
            return
        worker.runs_as(process, self.output)
        self.done_jobs.note_start(worker.record)
        with suppress(OSError):  # the disk takes nothing more: what follows reports it
            self.starts.note(worker.record)
        if self.starts.is_long:
            self.renew_log()
        log.info("started pool=%s template=%s pid=%d", record.pool, record.template, process.pid)

    def renew_log(self) -> None:
        """Leave the starts of present workers alone in the log of starts."""
        with suppress(OSError):
            self.starts.renew(self.table.records())

    def _process(self, worker: ManagedWorker, template: Template, queues: Sequence[str]) -> Process:
        record = worker.record
        return worker_process.spawn(
            template,
            marks=marks_of(record, agent_id=self.agent_id),
            environment=self.environment,
            log=partial(self.output.create, record.worker_id),
            is_burst=record.life.is_burst,
            loading=self.reporters.prepare(record.worker_id, record.pool, template, uid=record.uid),
            queues=queues,
        )


def _why_not(start: Start, template: Template | None, number: int | None, queues: Sequence[str]) -> str | None:
    """Why none of the template can be started now; ``None``: one can."""
    if template is None:
        return f"host.toml has no template {start.template!r}"
    if number is None and template.is_numbered:
        return "a process of this template runs whose number is not known: see the workers that are unknown, and end it"
    if template.fills_queues and not queues:
        return f"no queue of the pool is one that queues_allowed of template {start.template!r} matches"
    return None
