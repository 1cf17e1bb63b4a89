"""The workers of this host: started, watched, drained, and taken over from an agent that died.

Whoever owns a fleet reconciles it from one thread: ``scan`` takes note of what has happened, ``act`` does what is to
be done. Nothing here waits.

The manager says in which order things are written down and done. The rules are in ``starts``, ``ends`` and ``reaper``.
"""

import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from headway.agent.config.host_file import HostFile
from headway.agent.config.templates import Template
from headway.agent.desired_state import DesiredState
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.reporting.reporters import Reporters
from headway.agent.state.state_dir import StateFolder
from headway.agent.system import gpus
from headway.agent.workers import worker_numbers, worker_process
from headway.agent.workers.crash_backoff import Backoff
from headway.agent.workers.ends.cut_watch import CutWatch
from headway.agent.workers.ends.done_jobs import DoneJobs
from headway.agent.workers.ends.drain_watch import DrainWatch
from headway.agent.workers.ends.exit_log import ExitLog
from headway.agent.workers.ends.orphans import OrphanProcesses
from headway.agent.workers.journal import WorkerJournal
from headway.agent.workers.managed_worker import LATER_S, ManagedWorker
from headway.agent.workers.reaper import Reaper
from headway.agent.workers.recovery import left_behind
from headway.agent.workers.starts.queue_lists import QueueLists
from headway.agent.workers.starts.spawner import Spawner
from headway.agent.workers.starts.start_gate import StartGate
from headway.agent.workers.starts.start_log import StartLog
from headway.agent.workers.starts.start_watch import StartWatch
from headway.agent.workers.starts.storage_check import StorageCheck
from headway.agent.workers.starts.suspended_starts import SuspendedStarts
from headway.agent.workers.unrecorded_processes import UnrecordedWorkers
from headway.agent.workers.worker_logs import WorkerLogs
from headway.agent.workers.worker_record import Ledger, OrphanRecord, Record, Unrecorded
from headway.agent.workers.worker_table import WorkerTable
from headway.local import procfs
from headway.scaling.model import HostProblem, Worker, WorkerState
from headway.scaling.reconcile import Action, Drain

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
        self._host_file = host_file
        self._agent_id = agent_id
        self._clock = clock
        self._is_first_process = os.getpid() == 1
        self.orders = DesiredState()
        """The orders in force."""
        self.is_ending = False
        """Whether all workers are to end with this agent, which the next one has to know if that was killed at it."""

        logs, boot_id = folder.open_logs(), procfs.boot_id()
        self._folder = folder
        self._starts = StartLog(folder, boot_id=boot_id)
        self._logbook = WorkerJournal(folder, clock=clock)
        self.storage = StorageCheck(folder, logs, self._logbook, clock=clock)
        self.output = WorkerLogs(logs)
        self.reporters = Reporters(folder, agent_id=agent_id, environment=environment, clock=clock)

        self._table = WorkerTable()
        self.cuts = CutWatch(folder, boot_id=boot_id, clock=clock)
        self.remains = OrphanProcesses(agent_id, self.output, self.reporters, self.cuts)
        self.unrecorded = UnrecordedWorkers()

        self.done_jobs = DoneJobs()
        self.suspended_starts = SuspendedStarts()
        self.queue_lists = QueueLists()
        self._gate = StartGate(self._table, self.remains, self.done_jobs)
        self.start_watch = StartWatch(self._gate.failures, self.reporters, self.output)
        self._spawner = Spawner(
            table=self._table,
            gate=self._gate,
            agent_id=agent_id,
            environment=environment,
            output=self.output,
            reporters=self.reporters,
            storage=self.storage,
            starts=self._starts,
            done_jobs=self.done_jobs,
        )

        self.ends = ExitLog()
        self._drain_watch = DrainWatch(self.reporters, self.cuts)
        self._reaper = Reaper(
            table=self._table,
            gate=self._gate,
            ends=self.ends,
            cuts=self.cuts,
            remains=self.remains,
            suspended_starts=self.suspended_starts,
            reporters=self.reporters,
            output=self.output,
        )

    # --- what is known -----------------------------------------------------------------------------------------------

    def workers(self, activity: Callable[[Record], Activity] = lambda _: NOT_KNOWN) -> tuple[Worker, ...]:
        """Every worker that is not gone."""
        return tuple(self._gate.failures.named(held.worker(activity(held.record))) for held in self._table)

    def all_workers(self, activity: Callable[[Record], Activity] = lambda _: NOT_KNOWN) -> tuple[Worker, ...]:
        """Every worker that is not gone, what others have left, and what may be one."""
        return (*self.workers(activity), *self.remains.workers(), *self.unrecorded.workers())

    def running(self) -> tuple[Record, ...]:
        """The workers that have a process."""
        return tuple(held.record for held in self._table if held.process is not None)

    def keeping_places(self) -> frozenset[str]:
        """The ids of workers in whose place no other is started before they have ended.

        They failed to get ready and have not ended, or are what a worker has left that nobody had asked to stop.
        """
        lives = ((record.worker_id, record.life) for record in self.running())
        late = (key for key, life in lives if life.state is WorkerState.DRAINING and life.has_failed)
        return self.remains.keeping_places() | frozenset(late)

    def free_gpus(self) -> tuple[int, ...]:
        """The numbers of the host's GPUs that no worker has, nor what one has left, nor what may be one."""
        taken = [record.gpus for record in self._table.records() if record.life.is_alive]
        taken += [left.gpus for left in self.remains.left]
        taken += [each.gpus for each in self.unrecorded.found]
        return gpus.free(self._host_file.gpus, taken)

    def free_number(self, template: str) -> int | None:
        """The lowest number that no worker of the template has, nor what one has left, nor what may be one.

        ``None`` while something runs of which nobody knows the number.
        """
        alive = (record for record in self._table.records() if record.life.is_alive)
        return worker_numbers.lowest_free(template, (*alive, *self.remains.left), self.unrecorded.found)

    def printing(self) -> frozenset[str]:
        """The ids of all that may still print."""
        running = frozenset(record.worker_id for record in self.running())
        return running | {each.worker_id for each in self.unrecorded.found}

    def watchable(self) -> frozenset[int]:
        """File descriptors that become readable when a worker ends which is not this agent's child."""
        found = (held.process.pidfd for held in self._table if held.process is not None)
        return frozenset(pidfd for pidfd in found if pidfd is not None)

    def next_check_s(self) -> float:
        """Seconds until the next change that no event announces."""
        now_s = self._clock()
        due_s = (
            self._gate.opens_at_s(held.record.kind, now_s=now_s)
            if held.state is WorkerState.BACKING_OFF
            else held.due_s(now_s=now_s)
            for held in self._table
        )
        return max(0.0, min(*due_s, self.remains.due_s(), now_s + LATER_S) - now_s)

    def drain_bound_s(self) -> float:
        """Seconds until the last worker that drains, and the last process that one has left, is ended by force.

        Endless if one of them has no drain deadline.
        """
        now_s = self._clock()
        drains_s = (held.drain_bound_s for held in self._table if held.process is not None)
        remains_s = (float("inf") if left.ends_by_s is None else left.ends_by_s - now_s for left in self.remains.left)
        return max([*drains_s, *remains_s], default=0.0)

    # --- what happens ------------------------------------------------------------------------------------------------

    def obey(self, orders: DesiredState) -> None:
        """Put ``orders`` in force. Burst places that were spent under others are free again."""
        before = self.orders
        if (orders.cluster_id, orders.epoch, orders.revision) != (before.cluster_id, before.epoch, before.revision):
            self.ends.spent = {}
        self.orders = orders
        if self.queue_lists.take(orders.queues):
            for held in self._table:
                template = self._host_file.templates.get(held.record.template)
                if held.state is WorkerState.BACKING_OFF and template is not None and template.fills_queues:
                    self._gate.forget_failures(held.record.kind)

    def use(self, host_file: HostFile) -> None:
        """Go by ``host_file`` from now on. Earlier failures do not count for what is started otherwise now."""
        self._host_file = host_file
        self.reporters.doubts.forget()
        for held in self._table:
            is_other = held.go_by(host_file.templates.get(held.record.template))
            if is_other and held.state is WorkerState.BACKING_OFF:
                self._gate.forget_failures(held.record.kind)

    def scan(self) -> bool:
        """Take note of ends, of readiness and of times that are over. Returns whether anything has changed."""
        now_s = self._clock()
        before = self._seen()
        self._gate.note_survivors(now_s=now_s)
        self._request_stops([held for held in self._table if self._check(held, now_s)])
        self.cuts.note_ended()
        self.start_watch.scan(self._table, now_s=now_s)
        self._gate.failures.scan(self._table.records(), now_s=now_s)
        if self._is_first_process:
            worker_process.reap_orphans({record.pid for record in self._table.records()})
        if to_ask := self.remains.scan(now_s=now_s):
            self.save()
            self.remains.ask(to_ask)
        self.remains.end_reports()
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
                held.begin_to_drain(was_idle=action.worker_id in idle, now_s=now_s)
                self._table.remove_if_gone(held)
                if held.process is not None:
                    to_stop.append(held)
            else:
                template = self._host_file.templates.get(action.template)
                fresh.append(
                    self._spawner.place(
                        action,
                        template,
                        own_gpus=self.free_gpus(),
                        number=self.free_number(action.template),
                        queues=self.queue_lists.names(action.pool, template),
                        now_s=now_s,
                    )
                )
        self._request_stops(to_stop)
        to_spawn = [held for held in fresh if held.record.life.is_alive]
        if to_spawn:
            self.save()  # first: an agent that dies while it starts them leaves a record of what to search for
        for held in to_spawn:
            template = self._host_file.templates[held.record.template]
            queues = self.queue_lists.names(held.record.pool, template)
            self._spawner.spawn(held, template, queues=queues, now_s=now_s)
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
                self._drain_watch.kill(held, why=why, now_s=now_s)
        self.remains.kill()
        self.save()

    def kill(self, worker_id: str, *, why: str) -> bool:
        """Kill one worker, or what one has left. Returns whether it is there and was not being killed already.

        A process that this agent has no record of is nobody's to kill.
        """
        held = self._table.get(worker_id)
        if held is None or held.process is None:
            return self.remains.kill(worker_id)
        if held.record.life.is_forced:
            return False
        self._drain_watch.kill(held, why=why, now_s=self._clock())
        self.save()
        return True

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
            orders=self.orders,
            spent=self.ends.spent,
            pauses=self._gate.backoff.pauses,
            records=list(self._table.records()),
            remains=self.remains.left,
            ended=tuple(self.ends.worker_ids),
            unrecorded=tuple(self.unrecorded.found),
            processes_id=procfs.processes_id(),
            is_ending=self.is_ending,
        )
        self._logbook.write(ledger, is_durable=is_durable)

    # --- taking over -------------------------------------------------------------------------------------------------

    def adopt(self) -> None:
        """Go on where the last agent of this folder ended: its orders, and every worker of its that still runs."""
        ledger = left_behind(self._folder, self._agent_id, self.output, self._starts, self._host_file)
        self.orders, self._gate.backoff = ledger.orders, Backoff(ledger.pauses)
        self.queue_lists.take(self.orders.queues)
        self.ends.resume(spent=ledger.spent, worker_ids=ledger.ended)
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
        self.cuts.note_ended()
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
            self._reaper.reap_gone(held, self._template_of(held), were_all_killed=were_all_killed, now_s=now_s)
        else:
            held.asked_at_s = now_s
            held.runs_as(process, self.output)

    # --- one scan ----------------------------------------------------------------------------------------------------

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
        held.note_processors()
        if held.process is None:
            self._gate.check(held, now_s=now_s)
        elif held.process.has_ended():
            self._reaper.reap(held, self._template_of(held), exit_code=held.process.exit_code, now_s=now_s)
        elif held.state is WorkerState.STARTING:
            return self.start_watch.check(held, now_s=now_s)
        elif held.state is WorkerState.DRAINING:
            return self._drain_watch.check(held, self._template_of(held), now_s=now_s)
        return False

    def _template_of(self, held: ManagedWorker) -> Template | None:
        return self._host_file.templates.get(held.record.template)

    def _seen(self) -> tuple[dict[str, Record], list[OrphanRecord], list[Unrecorded], tuple[HostProblem, ...]]:
        """What a scan may change."""
        recorded = {record.worker_id: record for record in self._table.records()}
        return recorded, self.remains.left, list(self.unrecorded.found), self.storage.problems
