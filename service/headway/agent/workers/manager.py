"""The workers of this host: started, watched, drained, and taken over from an agent that died.

Whoever owns a fleet reconciles it from one thread: ``scan`` takes note of what has happened, ``act`` does what is to
be done. Nothing here waits.
"""

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from headway.agent.config.host_file import HostFile
from headway.agent.desired_state import DesiredState
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.reporting.reporters import Reporters
from headway.agent.state.state_dir import StateFolder
from headway.agent.system import gpus
from headway.agent.workers import lifecycle, worker_process
from headway.agent.workers.crash_backoff import Backoff
from headway.agent.workers.ends.cut_watch import CutWatch
from headway.agent.workers.ends.done_jobs import DoneJobs
from headway.agent.workers.ends.exit_log import Ended, ExitLog
from headway.agent.workers.ends.orphans import OrphanProcesses
from headway.agent.workers.ends.start_failures import OUTPUT_END_BYTES
from headway.agent.workers.ends.suspended_starts import SuspendedStarts
from headway.agent.workers.journal import WorkerJournal
from headway.agent.workers.managed_worker import LATER_S, ManagedWorker
from headway.agent.workers.recovery import left_behind
from headway.agent.workers.start_log import StartLog
from headway.agent.workers.starts.spawner import Spawner
from headway.agent.workers.starts.start_gate import StartGate
from headway.agent.workers.starts.start_watch import StartWatch
from headway.agent.workers.storage_check import StorageCheck
from headway.agent.workers.unrecorded_processes import UnrecordedWorkers
from headway.agent.workers.worker_logs import WorkerLogs
from headway.agent.workers.worker_record import Ledger, OrphanRecord, Record, Unrecorded
from headway.agent.workers.worker_table import WorkerTable
from headway.errors import printable
from headway.local import procfs
from headway.scaling.model import CutCause, Exit, HostProblem, Worker, WorkerState
from headway.scaling.reconcile import Action, Drain

STOP_REPEATED_AFTER_S = 5.0  # beats come every 2 s, and a handler may wait for the present instruction

log = logging.getLogger(__name__)


class WorkerManager:
    """The workers of one host."""

    def __init__(
        self,
        folder: StateFolder,
        *,
        host_file: HostFile,
        agent_id: str,
        environment: Mapping[str, str],
        clock: Callable[[], float] = procfs.since_boot_s,
    ) -> None:
        logs = folder.open_logs()
        self.output = WorkerLogs(logs)
        self._folder = folder
        self._starts = StartLog(folder, boot_id=procfs.boot_id())
        self._logbook = WorkerJournal(folder, clock=clock)
        self.storage = StorageCheck(folder, logs, self._logbook, clock=clock)
        self._host_file = host_file
        self._agent_id = agent_id
        self._clock = clock
        self._table = WorkerTable()
        self._orders = DesiredState()
        self.cuts = CutWatch(folder, boot_id=procfs.boot_id(), clock=clock)
        self.is_ending = False
        """Whether all workers are to end with this agent, which the next one has to know if that was killed at it."""
        self.remains = OrphanProcesses(agent_id, self.output)
        self._left_reporting: set[str] = set()
        """The ids of workers of which something was left at the last scan."""
        self.unrecorded = UnrecordedWorkers()
        self.reporters = Reporters(folder, agent_id=agent_id, environment=environment, clock=clock)
        self.suspended_starts = SuspendedStarts()
        self.done_jobs = DoneJobs()
        self._gate = StartGate(self._table, self.remains, self.done_jobs)
        self.start_watch = StartWatch(self._gate.failures, self.reporters, self.output)
        self._spawner = Spawner(
            self._table,
            self._gate,
            agent_id=agent_id,
            environment=environment,
            output=self.output,
            reporters=self.reporters,
            storage=self.storage,
            starts=self._starts,
            done_jobs=self.done_jobs,
        )
        self._is_first_process = os.getpid() == 1
        self._ends = ExitLog()
        self._exits: list[Exit] = []

    # --- what is known -----------------------------------------------------------------------------------------------

    @property
    def orders(self) -> DesiredState:
        """The orders in force."""
        return self._orders

    @property
    def spent(self) -> Mapping[str, int]:
        """Pool -> burst workers that ended by themselves under these orders."""
        return self._ends.spent

    def workers(self, activity: Callable[[Record], Activity] = lambda _: NOT_KNOWN) -> tuple[Worker, ...]:
        """Every worker that is not gone."""
        return tuple(self._gate.failures.named(held.worker(activity(held.record))) for held in self._table)

    def all_workers(self, activity: Callable[[Record], Activity] = lambda _: NOT_KNOWN) -> tuple[Worker, ...]:
        """Every worker that is not gone, what others have left, and what may be one."""
        return (*self.workers(activity), *self.left_workers(), *self.unrecorded.workers())

    def left_workers(self) -> tuple[Worker, ...]:
        """What workers have left, with what those report that take jobs on."""
        return self.remains.workers(self.reporters.activity)

    def printing(self) -> frozenset[str]:
        """The ids of all that may still print."""
        return frozenset(each.worker_id for each in self.running()) | {each.worker_id for each in self.unrecorded.found}

    def running(self) -> tuple[Record, ...]:
        """The workers that have a process."""
        return tuple(held.record for held in self._table if held.process is not None)

    def keeping_places(self) -> frozenset[str]:
        """The ids of workers in whose place no other is started before they have ended.

        They failed to get ready and have not ended, or are what a worker has left that nobody had asked to stop.
        """
        late = (held.record.worker_id for held in self._table if held.is_late_to_end)
        return self.remains.keeping_places() | frozenset(late)

    def free_gpus(self) -> tuple[int, ...]:
        """The numbers of the GPUs that no worker has, nor what one has left, nor what may be one."""
        taken = [record.gpus for record in self._table.records() if record.life.is_alive]
        taken += [left.gpus for left in self.remains.left]
        taken += [each.gpus for each in self.unrecorded.found]
        return gpus.free(self._host_file.gpus, taken)

    def watchable(self) -> frozenset[int]:
        """File descriptors that become readable when a worker ends which is not this agent's child."""
        found = (held.process.pidfd for held in self._table if held.process is not None)
        return frozenset(pidfd for pidfd in found if pidfd is not None)

    def take_ended(self) -> list[Ended]:
        """The workers that ended since the last call."""
        return self._ends.take()

    def take_exits(self) -> list[Exit]:
        """The ends since the last call of workers that had no job when they were asked to stop."""
        exits, self._exits = self._exits, []
        return exits

    def next_check_s(self) -> float:
        """Seconds until the next change that no event announces."""
        now_s = self._clock()
        due_s = (self._due_s(held, now_s) for held in self._table)
        return max(0.0, min(*due_s, self.remains.due_s(), now_s + LATER_S) - now_s)

    def drain_bound_s(self) -> float:
        """Seconds until the last worker that drains, and the last process that one has left, is ended by force.

        Endless if one of them has no drain deadline.
        """
        now_s = self._clock()
        drains_s = (
            float("inf")
            if (timeout_s := held.record.stop.drain_timeout_s) is None
            else timeout_s * (1 + held.record.life.is_being_told)
            for held in self._table
            if held.process is not None
        )
        remains_s = (float("inf") if left.ends_by_s is None else left.ends_by_s - now_s for left in self.remains.left)
        return max([*drains_s, *remains_s], default=0.0)

    # --- what happens ------------------------------------------------------------------------------------------------

    def obey(self, orders: DesiredState) -> None:
        """Put ``orders`` in force. Burst places that were spent under others are free again."""
        before = self._orders
        if (orders.cluster_id, orders.epoch, orders.revision) != (before.cluster_id, before.epoch, before.revision):
            self._ends.spent = {}
        self._orders = orders

    def use(self, host_file: HostFile) -> None:
        """Go by ``host_file`` from now on. Earlier failures do not count for what is started otherwise now."""
        self._host_file = host_file
        self.reporters.use_other_file()
        for held in self._table:
            template = host_file.templates.get(held.record.template)
            if template is None:
                if not held.record.template:  # nobody knows how it was started, and its job may be a long one
                    held.record = replace(held.record, stop=replace(held.record.stop, drain_timeout_s=None))
                continue
            if template.content_hash == held.record.template_hash:
                held.record = replace(held.record, stop=template.stop)
            elif held.state is WorkerState.BACKING_OFF:
                self._gate.forget_failures(held.record.kind)

    def scan(self) -> bool:
        """Take note of ends, of readiness and of times that are over. Returns whether anything has changed."""
        now_s = self._clock()
        before = self._seen()
        self._gate.note_survivors(now_s=now_s)
        self._request_stops([held for held in self._table if self._check(held, now_s)])
        self._gate.failures.scan(self._table.records(), now_s=now_s)
        if self._is_first_process:
            worker_process.reap_orphans({record.pid for record in self._table.records()})
        for left in self.remains.overdue(now_s=now_s):
            self.cuts.note_kill(left, cause=CutCause.DRAIN_DEADLINE, said=self.reporters.activity(left.worker_id))
        if self.remains.scan(now_s=now_s):
            due = self.remains.note_asked()
            self.save()
            self.remains.ask(due)
        for worker_id in self._left_reporting - {left.worker_id for left in self.remains.left}:
            self.reporters.end(worker_id)
        self._left_reporting = {left.worker_id for left in self.remains.left}
        self.unrecorded.scan()
        if self._logbook.is_behind:
            self.save()
        self.storage.scan()
        return before != self._seen()

    def act(self, actions: Iterable[Action], *, idle: Collection[str] = ()) -> None:
        """Drain and start. Nothing waits for a worker to end, or to be ready, and none is started without a record.

        ``idle`` are the ids of workers that are known to have no job: how long these take to end is measured.
        """
        now_s = self._clock()
        fresh: list[ManagedWorker] = []
        to_stop: list[ManagedWorker] = []
        for action in actions:
            if isinstance(action, Drain):
                held = self._table[action.worker_id]
                held.was_idle = action.worker_id in idle
                to_stop += self._drain(held, now_s)
            else:
                template = self._host_file.templates.get(action.template)
                fresh.append(self._spawner.place(action, template, own_gpus=self.free_gpus(), now_s=now_s))
        self._request_stops(to_stop)
        to_spawn = [held for held in fresh if held.record.life.is_alive]
        if to_spawn:
            self.save()  # first: an agent that dies while it starts them leaves a record of what to search for
        for held in to_spawn:
            self._spawner.spawn(held, self._host_file.templates[held.record.template], now_s=now_s)
        self.save()

    def note_mains(self) -> None:
        """Note which processes of each worker take jobs: where a wrapper leaves one, it is known by that."""
        for held in self._table:
            held.note_mains()

    def drain_all(self) -> None:
        """Ask every worker to end."""
        staying = (held.record for held in self._table if held.state is not WorkerState.DRAINING)
        self.act([Drain(worker_id=record.worker_id) for record in staying])

    def kill_all(self, *, why: str) -> None:
        """End every worker by force, and all that workers have left."""
        self.drain_all()
        now_s = self._clock()
        for held in self._table:
            if held.process is not None:
                self._force(held, now_s, why=why, cause=CutCause.KILLED)
        self._kill_remains(self.remains.named())
        self.save()

    def kill(self, worker_id: str, *, why: str) -> bool:
        """Kill one worker, or what one has left. Returns whether it is there and was not being killed already.

        A process that this agent has no record of is nobody's to kill.
        """
        held = self._table.get(worker_id)
        if held is None or held.process is None:
            left = self.remains.named(worker_id)
            self._kill_remains(left)
            return bool(left)
        if held.record.life.is_forced:
            return False
        now_s = self._clock()
        if held.state is not WorkerState.DRAINING:
            held.become(lifecycle.signalled(lifecycle.stop_requested(held.record.life, now_s=now_s)))
        self._force(held, now_s, why=why, cause=CutCause.KILLED)
        self.save()
        return True

    def _kill_remains(self, left: Sequence[OrphanRecord]) -> None:
        for each in left:
            self.cuts.note_kill(each, cause=CutCause.KILLED, said=self.reporters.activity(each.worker_id))
        self.remains.kill(left)

    def _force(self, held: ManagedWorker, now_s: float, *, why: str, cause: CutCause) -> None:
        if not held.record.life.is_forced:
            self.cuts.note_kill(held.record, cause=cause)
        held.force(now_s=now_s, why=why)

    def close(self) -> None:
        """Let go of every worker; they run on."""
        self.is_ending = False
        self.save()
        for held in self._table:
            held.let_go()
        self.reporters.close()
        self.output.close()

    def save(self, *, is_durable: bool = False) -> None:
        """Write everything down, for the next agent."""
        ledger = Ledger(
            orders=self._orders,
            spent=self._ends.spent,
            pauses=self._gate.backoff.pauses,
            records=list(self._table.records()),
            remains=self.remains.left,
            ended=tuple(self._ends.worker_ids),
            unrecorded=tuple(self.unrecorded.found),
            processes_id=procfs.processes_id(),
            is_ending=self.is_ending,
        )
        self._logbook.write(ledger, is_durable=is_durable)

    # --- taking over -------------------------------------------------------------------------------------------------

    def adopt(self) -> None:
        """Go on where the last agent of this folder ended: its orders, and every worker of its that still runs."""
        ledger = left_behind(self._folder, self._agent_id, self.output, self._starts, self._host_file)
        self._orders, self._gate.backoff = ledger.orders, Backoff(ledger.pauses)
        self._ends = ExitLog(spent=ledger.spent, worker_ids=ledger.ended)
        self.remains.left, self.unrecorded.found = list(ledger.remains), list(ledger.unrecorded)
        now_s = self._clock()
        self.reporters.take_over(
            {
                **{left.worker_id: (left.pool, left.template) for left in ledger.remains},
                **{each.worker_id: each.kind for each in ledger.records if each.life.is_alive},
            },
            others={each.worker_id for each in ledger.unrecorded},
        )
        self.cuts.note_reboot(ledger.before_boot)
        were_all_killed = ledger.is_ending or ledger.processes_id not in {"", procfs.processes_id()}
        for record in ledger.records:
            self._adopt(record, now_s, were_all_killed=were_all_killed)
        if self._table:
            log.info("took over workers=%d of an earlier agent", len(self.running()))
        self.save()
        self._spawner.renew_log()

    def _adopt(self, record: Record, now_s: float, *, were_all_killed: bool) -> None:
        held = self._table.add(record, is_ours=False)
        if not record.life.is_alive:
            return
        process = worker_process.adopt(record.pid, record.started_ticks)
        if process is None:
            self.cuts.note_gone(record, were_all_killed=were_all_killed)
            self._take_note_of_end(held, exit_code=None, now_s=now_s)
        else:
            held.asked_at_s = now_s
            held.runs_as(process, self.output)

    # --- one worker --------------------------------------------------------------------------------------------------

    def _drain(self, held: ManagedWorker, now_s: float) -> Sequence[ManagedWorker]:
        """The worker, if there is a process to report."""
        held.become(lifecycle.stop_requested(held.record.life, now_s=now_s))
        self._table.remove_if_gone(held)
        return [held] if held.process is not None else []

    def _request_stops(self, to_stop: Sequence[ManagedWorker]) -> None:
        """Signal those that were noted to be about to be signalled: an agent that dies at it leaves word of that."""
        if not to_stop:
            return
        self.save()
        for held in to_stop:
            held.request_stop(now_s=self._clock())
        self.save()

    def _check(self, held: ManagedWorker, now_s: float) -> bool:
        """Take note of what has become of the worker. Returns whether it is to be asked to stop."""
        life = held.record.life
        held.note_processors()
        if held.process is None:
            kind = held.record.kind
            if self._gate.is_open(kind, now_s=now_s) or self._gate.begin_trial(kind, now_s=now_s):
                held.become(lifecycle.over(life, now_s=now_s))
                self._table.remove_if_gone(held)
        elif held.process.has_ended():
            self._take_note_of_end(held, exit_code=held.process.exit_code, now_s=now_s)
        elif life.state is WorkerState.STARTING:
            return self.start_watch.check(held, now_s=now_s)
        elif life.state is WorkerState.DRAINING and now_s >= held.due_s(now_s=now_s):
            if life.is_being_told and not life.is_forced and not self._must_end_in_time(held):
                held.become(lifecycle.stop_repeated(life, now_s=now_s))
                return True
            why = f"it did not end by its drain deadline of {held.record.stop.drain_timeout_s} s"
            self._force(held, now_s, why=why, cause=CutCause.DRAIN_DEADLINE)
        elif life.state is WorkerState.DRAINING and not life.is_forced and self._works_on(held):
            if not self._must_end_in_time(held):
                held.become(lifecycle.stop_repeated(life, now_s=now_s))
            log.warning(
                "draining again pool=%s pid=%d: it reports that it does not stop", held.record.pool, held.record.pid
            )
            return True
        return False

    def _works_on(self, held: ManagedWorker) -> bool:
        """Whether the worker reports, some seconds after the stop signal, that it has not received it."""
        beat = self.reporters.beat(held.record.worker_id)
        return (
            beat is not None and not beat.is_stopping and beat.received_at_s - held.asked_at_s >= STOP_REPEATED_AFTER_S
        )

    def _seen(self) -> tuple[dict[str, Record], list[OrphanRecord], list[Unrecorded], tuple[HostProblem, ...]]:
        """What a scan may change."""
        recorded = {record.worker_id: record for record in self._table.records()}
        return recorded, self.remains.left, list(self.unrecorded.found), self.storage.problems

    def _must_end_in_time(self, held: ManagedWorker) -> bool:
        """Whether the control plane goes by it that such a worker has ended when its time to drain is over."""
        template = self._host_file.templates.get(held.record.template)
        return template is not None and template.isolation_drain_after_s is not None

    def _take_note_of_end(self, held: ManagedWorker, *, exit_code: int | None, now_s: float) -> None:
        record = held.record
        is_repeated = bool(exit_code) and self._is_the_reporters_fault(record)
        said = self._last_report(held)
        if exit_code is not None:
            self.cuts.note_end(record, exit_code=exit_code, said=said)
        if is_repeated:
            self._repeat(held, exit_code=exit_code)
            return
        if record.life.state is WorkerState.DRAINING and held.was_idle and not record.life.is_forced:
            self._exits.append(held.exit(now_s=now_s))
        life = lifecycle.ended(record.life, exit_code=exit_code, now_s=now_s)
        if life.state is WorkerState.BACKING_OFF and self.suspended_starts.note(
            record.kind, last_words=self.output.last_words(record.worker_id), now_s=now_s
        ):
            life = lifecycle.over(life, now_s=now_s)
        held.let_go()
        self.output.release(record.worker_id)
        held.become(life)
        self._ends.note(Ended(worker=held.worker(NOT_KNOWN), exit_code=exit_code), is_spent=life.is_spent)
        if exit_code != 0 or held.may_leave(now_s=now_s):
            self.remains.note(record, exit_code=exit_code)
        summary = f"pid={record.pid} exit={'unknown' if exit_code is None else exit_code}"
        summary += f" after_s={now_s - life.started_at_s:.1f}"
        if life.state is WorkerState.BACKING_OFF:
            held.record = replace(held.record, pid=0, started_ticks=0)
            printed = self.output.end(record.worker_id, OUTPUT_END_BYTES)
            self._gate.failures.note(record, printed, now_s=now_s)
            why = f"{summary}{_at_job(said)} said={self.output.last_words(record.worker_id)!r}"
            self._gate.note_failure(record.kind, why, started_at_s=life.started_at_s, now_s=now_s)
        else:
            log.info("ended pool=%s template=%s %s", *record.kind, summary)
        self._table.remove_if_gone(held)

    def _last_report(self, held: ManagedWorker) -> Activity:
        """What the worker has reported last. A main process that it leaves reports on, through its pipe."""
        worker_id = held.record.worker_id
        if not held.leaves_main:
            return self.reporters.end(worker_id)
        self._left_reporting.add(worker_id)
        return self.reporters.activity(worker_id)

    def _is_the_reporters_fault(self, record: Record) -> bool:
        """Whether its start may have ended for the reporter's sake: then it is no failure, and is repeated without."""
        return (
            record.life.state is WorkerState.STARTING
            and self.reporters.beat(record.worker_id) is None
            and self.reporters.note_unready_end(
                record.worker_id, record.template, why=self.output.last_words(record.worker_id)
            )
        )

    def _repeat(self, held: ManagedWorker, *, exit_code: int | None) -> None:
        """Free the place of a start, so that another is made at once."""
        held.let_go()
        self.output.release(held.record.worker_id)
        self.remains.note(held.record, exit_code=exit_code)
        self._table.remove(held)

    def _due_s(self, held: ManagedWorker, now_s: float) -> float:
        """When the worker must be looked at, at the latest."""
        if held.state is WorkerState.BACKING_OFF:
            return self._gate.opens_at_s(held.record.kind, now_s=now_s)
        return held.due_s(now_s=now_s)


def _at_job(said: Activity) -> str:
    """The job that a worker began last and had not ended, by its own report: its id and class, never its arguments."""
    if not said.running:
        return ""
    job = max(said.running, key=lambda each: each.started_at_s)
    return f" job={printable(job.job_id)} class={printable(job.job_class or 'unknown')}"
