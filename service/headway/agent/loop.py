"""The agent of one host: compares what runs with what is wanted, and acts. Its main thread never waits for anybody.

main     maintains the workers; woken by ends, answers and signals, else twice a second
poll     waits for orders                       } see link
report   sends what the host has and runs       }
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headway.agent.config.host_file import HostFile
from headway.agent.config.host_file_watcher import WatchedFile
from headway.agent.config.templates import Log
from headway.agent.controlplane.client import ControlClient, HostUpdate
from headway.agent.controlplane.isolation import Contact, Isolation, unisolated
from headway.agent.controlplane.session import ControlSession
from headway.agent.desired_state import Bound, within
from headway.agent.fleet_end import FleetEnd
from headway.agent.model import Activity
from headway.agent.monitoring.monitor import Monitor
from headway.agent.policy.recycling import Recycling
from headway.agent.policy.rollout import held_back, surplus, upkeep
from headway.agent.policy.start_throttle import admitted, starting_max, uncounted
from headway.agent.reporting.begun_work import BegunWork
from headway.agent.reporting.job_events import UnsentReports, queues_of
from headway.agent.reporting.reading_wait import wait_reading
from headway.agent.reporting.receptions import Receptions
from headway.agent.reporting.reporters import Reporters
from headway.agent.state.instance_lock import as_host
from headway.agent.state.state_dir import StateFolder
from headway.agent.system.wake_pipe import WakePipe
from headway.agent.workers.manager import WorkerManager
from headway.agent.workers.worker_record import Record
from headway.errors import Refused, printable
from headway.local import procfs
from headway.scaling.model import HostProblem, HostProblemKind, Worker
from headway.scaling.reconcile import Upkeep, reconcile
from headway.wire.channel import Tls

POLL_S = 0.5
LAST_REPORT_S = 2.0
BEATS_WITHIN_S = 5.0  # two beats

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSetup:
    """What an agent is given."""

    folder: StateFolder
    host_file: WatchedFile
    host_name: str
    control: Sequence[str]
    """Addresses of the gRPC endpoints of one control plane or several."""
    token: str | None
    environment: Mapping[str, str]
    """What workers inherit, less what is the agent's own."""
    stops_workers: bool
    """Whether the workers end with the agent."""
    takes_over: bool = False
    """Whether an agent that works in the folder already is ended, its workers taken over."""
    join_token: str | None = None
    """What lets this host in while it has no credential of its own."""
    tls: Callable[[], Tls | None] = lambda: None
    """What this host trusts and shows now; ``None``: the control plane is called without TLS."""


class Agent:
    """Runs the workers of one host until it is asked to stop."""

    _measures: Monitor
    """Made as this agent begins to run: it goes by what workers report."""

    def __init__(self, setup: AgentSetup, *, wakes: WakePipe, clock: Callable[[], float] = procfs.since_boot_s) -> None:
        self._setup = setup
        self._wakes = wakes
        self._clock = clock
        self._recycling = Recycling()
        self._begun_work = BegunWork()
        self._isolation = Isolation()
        self._has_waiting = False
        """Whether there are starts that there was no room for, or too much doubt; or reports are awaited."""
        self._bound = Bound()
        self._read_until_s = time.time()
        """All that workers had reported until then was read."""
        self._receptions = Receptions(since_s=self._read_until_s)
        self._unsent = UnsentReports()
        self._end: FleetEnd | None = None
        """The end of all workers; ``None`` while this agent is not about to end them."""

    @property
    def _host_file(self) -> HostFile:
        return self._setup.host_file.now

    def run(self) -> tuple[Record, ...]:
        """Work until asked to stop. Returns the workers that still run.

        Raises:
            Refused: another agent works in the state folder, or is this host.
        """
        setup = self._setup
        with (
            setup.folder.only_agent(takes_over=setup.takes_over),
            as_host(setup.control, setup.host_name, waits=setup.takes_over),
            self._wakes.listening(),
        ):
            identity = setup.folder.identity()
            fleet = WorkerManager(
                setup.folder,
                host_file=self._host_file,
                agent_id=identity.agent_id,
                environment=setup.environment,
                clock=self._clock,
            )
            fleet.adopt()
            fleet.use(self._host_file)
            self._measures = Monitor(setup.folder, fleet.reporters, clock=self._clock)
            fleet.cuts.activity = self._measures.activity
            contact = Contact(setup.folder, clock=self._clock)
            link = ControlSession(
                ControlClient(*setup.control, token=setup.token, clock=self._clock, tls=setup.tls),
                setup.folder,
                identity=identity,
                host_name=setup.host_name,
                orders=fleet.orders,
                wake=self._wakes.wake,
                join_token=setup.join_token,
                contact=contact,
                cuts_reported=fleet.cuts.log.forget,
            )
            link.start()
            try:
                self._maintain(fleet, link, contact)
            finally:
                self._send_events(fleet, link)
                link.close(within_s=LAST_REPORT_S)
                left = fleet.running()
                fleet.close()
            return left

    def _maintain(self, fleet: WorkerManager, link: ControlSession, contact: Contact) -> None:
        is_first = True
        while True:
            at_s = time.time()
            if fleet.reporters.read():  # first: who has just begun a job is not asked to leave for being idle
                self._read_until_s = at_s
            self._send_events(fleet, link)
            is_ending = self._begin_to_end(fleet)
            has_orders = self._take_orders(fleet, link)
            is_measured = self._measures.scan(fleet.running(), self._host_file)
            has_file = self._take_host_file(fleet, is_due=is_measured)
            is_news = fleet.scan() or is_ending or has_orders or has_file or is_first
            is_news |= is_measured and self._measures.has_news
            if is_news or is_measured or self._has_waiting:
                is_news = self._reconcile(fleet, link, contact) or is_news
            if is_news:
                fleet.save(is_durable=has_orders)
            if is_measured:
                fleet.note_mains()
                seen = [(each, self._measures.activity(each)) for each in fleet.running()]
                fleet.done_jobs.note_counts(seen, now_s=self._clock())
                fleet.cuts.keep(fleet.running())
                fleet.reporters.keep()
                self._bound_logs(fleet)
            has_begun = self._begun_work.is_due(fleet.reporters.activity, now_s=self._clock())
            if is_measured or is_news or has_begun:
                self._publish(fleet, link, is_urgent=is_news or has_begun)
            if self._is_over():
                return
            is_first = False
            wait_reading(self._wakes, fleet.reporters, min(POLL_S, fleet.next_check_s()), fds=fleet.watchable)

    def _begin_to_end(self, fleet: WorkerManager) -> bool:
        """Whether this is the moment: this process was asked to stop, and its workers end with it."""
        if not (self._wakes.stops_asked and self._setup.stops_workers) or self._end is not None:
            return False
        log.info("stopping workers=%d", len(fleet.running()))
        self._end = FleetEnd(fleet, self._setup.folder, clock=self._clock, activity=self._measures.activity)
        return True

    def _is_over(self) -> bool:
        if not self._wakes.stops_asked:
            return False
        if self._end is None:
            return not self._setup.stops_workers
        if self._wakes.stops_asked > 1:
            self._end.force()
        return self._end.is_over()

    def _take_orders(self, fleet: WorkerManager, link: ControlSession) -> bool:
        received = link.received
        self._measures.activities.receive(received.hints)
        for order in received.kills:
            fleet.kill(order.worker_id, why=f"{printable(order.requested_by)} asked for it")
        if received.orders is fleet.orders:
            return False
        fleet.obey(received.orders)
        self._bound.log_change(received.orders.assignments or (), workers_max=self._host_file.workers_max)
        return True

    def _take_host_file(self, fleet: WorkerManager, *, is_due: bool) -> bool:
        is_asked = self._wakes.take_reload()
        watched = self._setup.host_file
        had_mistakes = watched.has_mistakes
        if not (is_asked or is_due) or not watched.is_changed(is_asked=is_asked):
            return watched.has_mistakes != had_mistakes
        fleet.use(self._host_file)
        return True

    def _reconcile(self, fleet: WorkerManager, link: ControlSession, contact: Contact) -> bool:
        """Do what is to be done. Returns whether that was anything: without orders it never is, silence is not zero."""
        if fleet.orders.assignments is None or self._end is not None:
            return False
        host_file = self._host_file
        limits_s = contact.limits_s(host_file.templates)
        isolated = self._isolation.templates(limits_s, lost_for_s=contact.lost_for_s())
        doubtful = self._isolation.doubtful(limits_s, contact)
        if self._isolation.wants_word:
            link.ask_anew()
        workers = fleet.all_workers(self._measures.activity)
        wanted = within(fleet.orders.assignments, workers_max=host_file.workers_max, templates=host_file.templates)
        wanted = unisolated(wanted, isolated)
        certain = held_back(wanted, doubtful, workers, is_perhaps_forgotten=contact.is_perhaps_forgotten())
        certain = fleet.suspended_starts.marked(certain, now_s=self._clock())
        kept = self._upkeep(fleet, workers)
        due = reconcile(workers, certain, spent=fleet.ends.spent, upkeep=kept)
        actions = admitted(
            due if fleet.storage.allows_starts else surplus(workers, certain),
            workers,
            starting_max=starting_max(host_file.starting_max, cpu_cores=self._measures.capacity.cpu_cores),
            free_gpus=len(fleet.free_gpus()),
            gpus_of={name: template.gpus for name, template in host_file.templates.items()},
            uncounted=uncounted(host_file),
        )
        self._has_waiting = len(actions) < len(due) or certain != wanted or bool(kept.awaited)
        if actions:
            fleet.act(actions, idle=frozenset(each.worker_id for each in workers if each.is_busy is False))
        return bool(actions)

    def _upkeep(self, fleet: WorkerManager, workers: Iterable[Worker]) -> Upkeep:
        host_file, now_s = self._host_file, self._clock()
        seen = ((record, self._measures.activity(record)) for record in fleet.running())
        return replace(
            upkeep(
                host_file,
                workers=workers,
                templates={template.name: template for template in self._measures.templates(host_file)},
                capacity=self._measures.capacity,
                free_gpus=len(fleet.free_gpus()),
                now_s=now_s,
            ),
            worn=self._recycling.worn(seen, host_file.templates, now_s=now_s)
            | fleet.queue_lists.outdated(fleet.running(), host_file.templates),
            keeping_places=fleet.keeping_places(),
            spared=self._measures.inabilities.spared(now_s=now_s),
            awaited=fleet.reporters.awaited(),
        )

    def _send_events(self, fleet: WorkerManager, link: ControlSession) -> None:
        """Send what workers have reported of jobs, and note which of these were cut.

        What comes before the control plane has answered waits for that.
        """
        pools = link.received.pools
        reporters, queues = fleet.reporters, queues_of(pools or ())
        reported = reporters.take_events()
        for worker_id, each in reported.items():
            fleet.cuts.note_reports(worker_id, each)
            fleet.done_jobs.note_reports(worker_id, each.reports, now_s=self._clock())
            self._receptions.note(each.pool, each.reports, queues)
            self._unsent.add(each.pool, self._receptions.joined(each.reports))
        receptions = self._receptions.due(
            reporters.consumers,
            queues,
            until_s=self._read_until_s,
            lost_lines=reporters.lost_lines,
            has_news=bool(reported),
        )
        events = [] if pools is None else self._unsent.take_events(queues)
        if events or receptions:
            link.events.send(events, receptions)

    def _bound_logs(self, fleet: WorkerManager) -> None:
        templates = self._host_file.templates
        running = fleet.running()
        fleet.output.bound(
            {each.worker_id: templates[each.template].log if each.template in templates else Log() for each in running}
        )
        fleet.output.clear(fleet.printing())

    def _publish(self, fleet: WorkerManager, link: ControlSession, *, is_urgent: bool) -> None:
        workers = fleet.all_workers(self._measures.activity)
        self._begun_work.publish(workers, now_s=self._clock())
        mistakes = [HostProblem(kind=HostProblemKind.HOST_FILE)] if self._setup.host_file.has_mistakes else []
        link.publish(
            HostUpdate(
                capacity=self._measures.capacity,
                templates=self._measures.templates(self._host_file),
                workers=workers,
                labels=self._host_file.labels,
                problems=(*fleet.storage.problems, *mistakes),
                cuts=fleet.cuts.log.unsent,
                ended=fleet.ends.take(),
                start_ups=fleet.start_watch.take_start_ups(),
                exits=fleet.ends.take_exits(),
            ),
            is_urgent=is_urgent,
        )


def stop_left(
    folder: StateFolder,
    *,
    wakes: WakePipe,
    is_forced: bool = False,
    clock: Callable[[], float] = procfs.since_boot_s,
) -> int:
    """End every worker that an agent has left behind. Returns how many still run: when asked to stop, or of no record.

    ``is_forced`` kills them, and cuts their jobs, after a few seconds for what they report: the cut jobs are named.

    Raises:
        Refused: an agent works there, which would start them again; or none ever did.
    """
    if not folder.was_used:
        raise Refused(f"no agent has worked in the state folder {folder.root}: name another with --state-dir")
    with folder.only_agent(), wakes.listening():
        fleet = WorkerManager(
            folder, host_file=HostFile(templates={}), agent_id=folder.identity().agent_id, environment={}, clock=clock
        )
        fleet.adopt()
        reporters = fleet.reporters
        if is_forced:
            _read_beats(reporters, wakes, clock=clock)
        fleet.cuts.activity = lambda record: _last_known(fleet, record)
        end = FleetEnd(fleet, folder, clock=clock, activity=lambda record: reporters.activity(record.worker_id))
        if is_forced:
            end.force()
        while not (wakes.stops_asked or end.is_over()):
            reporters.read()
            fleet.scan()
            wakes.wait(min(POLL_S, fleet.next_check_s()), fleet.watchable())
        left = end.left + len(fleet.unrecorded.found)
        fleet.close()
        return left


def _read_beats(reporters: Reporters, wakes: WakePipe, *, clock: Callable[[], float]) -> None:
    """Read what workers report until each has sent a beat, or some seconds are over: their pipes hold older reports."""
    since_s = clock()
    while not (reporters.has_beats_since(since_s) or wakes.stops_asked):
        left_s = since_s + BEATS_WITHIN_S - clock()
        if left_s <= 0:
            return
        wakes.wait(min(POLL_S, left_s))
        reporters.read()


def _last_known(fleet: WorkerManager, record: Record) -> Activity:
    """What the worker reports of its jobs, or else what the last agent knew of them."""
    said = fleet.reporters.activity(record.worker_id)
    return fleet.cuts.known_before(record) if said.is_busy is None else said
