"""The agent of one host: compares what runs with what is wanted, and acts. Its main thread never waits for anybody.

main     looks after the workers; woken by ends, answers and signals, else twice a second
poll     waits for orders                       } see link
report   tells what the host has and runs       }
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headway.agent import procfs
from headway.agent.busy import SAMPLE_EVERY_S, Lookout
from headway.agent.capacity import capacity, measure, memory_of
from headway.agent.client import ControlClient, HostNews
from headway.agent.fleet import Fleet
from headway.agent.folder import StateFolder
from headway.agent.host_file import HostFile
from headway.agent.link import Link
from headway.agent.records import Record
from headway.agent.templates import Log
from headway.agent.wakes import Wakes
from headway.errors import Refused
from headway.scaling.model import HostCapacity
from headway.scaling.reconcile import reconcile

LOOK_S = 0.5
HOUSEKEEPING_S = 60.0  # measuring memory and bounding logs: neither is cheap, neither is urgent
END_MARGIN_S = 10.0  # from the force signal to the end of the last process
LAST_REPORT_S = 2.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSetup:
    """What an agent is given."""

    folder: StateFolder
    host_file: HostFile
    host_name: str
    control: str
    """Address of the control plane's gRPC door."""
    token: str | None
    environment: Mapping[str, str]
    """What workers inherit, less what is the agent's own."""
    stops_workers: bool
    """Whether the workers end with the agent."""
    join_token: str | None = None
    """What lets this host in while it has no credential of its own."""


class Agent:
    """Runs the workers of one host until it is told to stop."""

    def __init__(self, setup: AgentSetup, *, wakes: Wakes, clock: Callable[[], float] = procfs.since_boot_s) -> None:
        self._setup = setup
        self._wakes = wakes
        self._clock = clock
        self._lookout = Lookout()
        self._capacity = HostCapacity(cpu_cores=0.0, memory_bytes=0)
        self._templates = tuple(template.told() for template in setup.host_file.templates.values())
        self._sampled_at_s = self._kept_house_at_s = float("-inf")
        self._ends_by_s: float | None = None
        """Until when workers may drain; ``None`` while this agent is not about to end them."""

    def run(self) -> tuple[Record, ...]:
        """Work until told to stop. Returns the workers that still run.

        Raises:
            Refused: another agent works in the state folder.
        """
        setup = self._setup
        with setup.folder.only_agent(), self._wakes.listening():
            identity = setup.folder.identity()
            fleet = Fleet(
                setup.folder,
                templates=setup.host_file.templates,
                agent_id=identity.agent_id,
                environment=setup.environment,
                clock=self._clock,
            )
            fleet.adopt()
            link = Link(
                ControlClient(setup.control, token=setup.token, clock=self._clock),
                setup.folder,
                identity=identity,
                host_name=setup.host_name,
                orders=fleet.orders,
                wake=self._wakes.wake,
                join_token=setup.join_token,
            )
            link.start()
            try:
                self._look_after(fleet, link)
            finally:
                link.close(within_s=LAST_REPORT_S)
                left = fleet.running()
                fleet.close()
            return left

    def _look_after(self, fleet: Fleet, link: Link) -> None:
        is_first = True
        while True:
            is_ending = self._begin_to_end(fleet)
            has_orders = self._take_orders(fleet, link)
            is_news = fleet.look() or is_ending or has_orders or is_first
            if is_news:
                self._reconcile(fleet)
                fleet.save(is_durable=has_orders)
            if self._measure(fleet) or is_news:
                self._publish(fleet, link, is_urgent=is_news)
            if self._is_over(fleet):
                return
            is_first = False
            self._wakes.wait(min(LOOK_S, fleet.next_look_s()), fleet.watchable())

    def _begin_to_end(self, fleet: Fleet) -> bool:
        """Whether this is the moment: this process was asked to stop, and its workers end with it."""
        if not (self._wakes.stops_asked and self._setup.stops_workers) or self._ends_by_s is not None:
            return False
        log.info("stopping workers=%d", len(fleet.running()))
        fleet.drain_all()
        self._ends_by_s = self._clock() + drain_bound_s(fleet)
        return True

    def _is_over(self, fleet: Fleet) -> bool:
        if not self._wakes.stops_asked:
            return False
        if self._ends_by_s is None:
            return not self._setup.stops_workers
        # Asked a second time by a person who has no patience: the workers have been told, and end without us.
        is_pressed = self._wakes.stops_asked > 1
        return not fleet.running() or is_pressed or self._clock() > self._ends_by_s

    def _take_orders(self, fleet: Fleet, link: Link) -> bool:
        heard = link.heard
        self._lookout.hear(heard.hints)
        if heard.orders is fleet.orders:
            return False
        fleet.obey(heard.orders)
        return True

    def _reconcile(self, fleet: Fleet) -> None:
        """Do what there is to be done. Without orders that is nothing: silence is not zero."""
        if fleet.orders.assignments is None or self._ends_by_s is not None:
            return
        now_s = self._clock()
        workers = fleet.workers(lambda record: self._lookout.activity(record, now_s=now_s))
        actions = reconcile(workers, fleet.orders.assignments, spent=fleet.spent)
        if actions:
            fleet.act(actions)

    def _measure(self, fleet: Fleet) -> bool:
        """Whether it was time to look who is busy, and now and then also at the host."""
        now_s = self._clock()
        if now_s - self._sampled_at_s < SAMPLE_EVERY_S:
            return False
        self._sampled_at_s = now_s
        self._lookout.look(fleet.running(), now_s=now_s)
        if now_s - self._kept_house_at_s >= HOUSEKEEPING_S:
            self._kept_house_at_s = now_s
            running = fleet.running()
            self._capacity = capacity(
                measure(),
                workers_bytes=memory_of([record.pid for record in running]),
                reserve_cpu_cores=self._setup.host_file.reserve_cpu_cores,
                reserve_memory_bytes=self._setup.host_file.reserve_memory_bytes,
            )
            fleet.output.clear(frozenset(record.worker_id for record in running))
        templates = self._setup.host_file.templates
        fleet.output.bound(
            {
                record.worker_id: templates[record.template].log if record.template in templates else Log()
                for record in fleet.running()
            }
        )
        return True

    def _publish(self, fleet: Fleet, link: Link, *, is_urgent: bool) -> None:
        now_s = self._clock()
        link.publish(
            HostNews(
                capacity=self._capacity,
                templates=self._templates,
                workers=fleet.workers(lambda record: self._lookout.activity(record, now_s=now_s)),
                labels=self._setup.host_file.labels,
            ),
            ended=fleet.take_ended(),
            start_ups=fleet.take_start_ups(),
            is_urgent=is_urgent,
        )


def stop_left(folder: StateFolder, *, wakes: Wakes, clock: Callable[[], float] = procfs.since_boot_s) -> int:
    """End every worker that an agent has left behind. Returns how many still run, which is 0 unless told to stop.

    Raises:
        Refused: an agent works there, which would start them again; or none ever did.
    """
    if not folder.was_used:
        raise Refused(f"no agent has worked in the state folder {folder.root}: name another with --state-dir")
    with folder.only_agent(), wakes.listening():
        fleet = Fleet(folder, templates={}, agent_id=folder.identity().agent_id, environment={}, clock=clock)
        fleet.adopt()
        fleet.drain_all()
        ends_by_s = clock() + drain_bound_s(fleet)
        while fleet.running() and not wakes.stops_asked and clock() < ends_by_s:
            fleet.look()
            wakes.wait(min(LOOK_S, fleet.next_look_s()), fleet.watchable())
        left = len(fleet.running())
        fleet.close()
        return left


def drain_bound_s(fleet: Fleet) -> float:
    """Seconds after which every worker that was told to stop has ended, by force if need be."""
    return max((record.stop.drain_timeout_s for record in fleet.running()), default=0.0) + END_MARGIN_S
