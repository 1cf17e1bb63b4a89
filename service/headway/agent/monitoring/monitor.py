"""What the agent measures of its host and its workers: who is busy, what each takes, what there is for all of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import TypeVar

from headway.agent.config.commands.queue_orders import UNKNOWN, Taking
from headway.agent.config.host_file import HostFile
from headway.agent.config.templates import Reporter, Template
from headway.agent.model import Activity
from headway.agent.monitoring.activity import SAMPLE_EVERY_S, ActivityTracker
from headway.agent.monitoring.cost_model import COST_WARM_UP_S, Cost, CostModel
from headway.agent.monitoring.inability import InabilityWatch, Shown
from headway.agent.monitoring.resource_usage import ResourceUsage
from headway.agent.reporting.reporters import Reporters
from headway.agent.state.rows_file import RowsFile, read_row
from headway.agent.state.state_dir import StateFolder
from headway.agent.system.capacity import capacity, measure, pressure, steadied
from headway.agent.workers.worker_record import Record
from headway.scaling import model
from headway.scaling.model import HostCapacity

COSTS_FILE = "costs.json"
INABILITIES_FILE = "inabilities.json"
MONITOR_WEIGH_EVERY_S = 60.0  # each worker; neither cheap nor urgent

_Said = TypeVar("_Said")


class Monitor:
    """The newest of everything that is measured."""

    def __init__(self, folder: StateFolder, reporters: Reporters, *, clock: Callable[[], float]) -> None:
        """Go by what these workers report, too, and by what they reported to an earlier agent."""
        self._reporters = reporters
        self._clock = clock
        self.activities = ActivityTracker()
        self.inabilities = InabilityWatch()
        self._inability_file = RowsFile(folder, INABILITIES_FILE, from_json=partial(read_row, Shown))
        self.inabilities.resume(self._inability_file.read())
        self._scales = ResourceUsage()
        self._cost_file = RowsFile(folder, COSTS_FILE, from_json=partial(read_row, Cost))
        self._costs = CostModel(self._cost_file.read())
        self._orders: dict[tuple[str, str], Taking] = {}
        """By name and hash of a template, in what order its workers have reported that they take from their queues."""
        self._slots: dict[tuple[str, str], int] = {}
        """By the same, how many jobs they have reported to run at once."""
        self._room: HostCapacity | None = None
        self._measured_at_s = self._weighed_at_s = float("-inf")
        self.has_news = False
        """Whether the last poll has found another worker that takes no jobs, or takes them again."""
        self.capacity = HostCapacity(cpu_cores=0.0, memory_bytes=0)
        """What the host can give to workers."""

    def scan(self, records: Sequence[Record], host_file: HostFile) -> bool:
        """Whether the next poll was due."""
        now_s = self._clock()
        if now_s - self._measured_at_s < SAMPLE_EVERY_S:
            return False
        self._measured_at_s = now_s
        self.activities.scan(records, now_s=now_s)
        self.has_news = self.inabilities.scan(
            records, beat=self._reporters.beat, templates=host_file.templates, now_s=now_s
        )
        self._inability_file.keep(self.inabilities.shown)
        again = ceil(len(records) * SAMPLE_EVERY_S / MONITOR_WEIGH_EVERY_S)
        workers_bytes = self._scales.weigh(records, now_s=now_s, again=again)
        if now_s - self._weighed_at_s >= MONITOR_WEIGH_EVERY_S:
            self._weighed_at_s = now_s
            self._conclude(records, host_file, workers_bytes=workers_bytes)
        assert self._room is not None, "weighed above, in the first poll"
        self.capacity = replace(self._room, cpu_pressure=pressure("cpu"), memory_pressure=pressure("memory"))
        return True

    def activity(self, record: Record) -> Activity:
        """What is known of what the worker does and takes."""
        weight = self._scales.weight(record.worker_id)
        beat = self._reporters.beat(record.worker_id)
        reported = self._reporters.activity(record.worker_id)
        return replace(
            self.activities.activity(record, now_s=self._clock(), reported=reported),
            memory_bytes=weight.memory_bytes if weight else None,
            inability=self.inabilities.of(record.worker_id),
            ended_jobs=self.activities.ended_jobs(record) if beat is None or beat.ended is None else beat.ended,
        )

    def templates(self, host_file: HostFile) -> tuple[model.Template, ...]:
        """What the control plane may know of the templates, at what their workers cost."""
        # Of a template without a worker, what the last ones said: the next will do as they did. Where it has no
        # reporter any more, those that still say something may be of another library.
        self._orders = _kept(self._orders, self._reporters.queue_orders, host_file)
        self._slots = _kept(self._slots, self._reporters.slots, host_file)
        return tuple(map(self._reported, host_file.templates.values()))

    def _reported(self, template: Template) -> model.Template:
        found = self._costs.reported(template)
        slots = self._slots.get((template.name, template.content_hash), found.slots)
        if slots != found.slots:
            found = replace(found, slots=slots, written_slots=found.slots)
        order, strict_queues = self._orders.get((template.name, template.content_hash), UNKNOWN)
        if order is None or found.queue_order is not None:  # its own command line says so
            return found
        return replace(found, queue_order=order, strict_queues=strict_queues)

    def _conclude(self, records: Sequence[Record], host_file: HostFile, *, workers_bytes: int) -> None:
        """Once every worker has been weighed again."""
        self._costs.learn(self._scales.by_template(records, older_than_s=COST_WARM_UP_S))
        self._room = steadied(
            self._room,
            capacity(
                measure(),
                workers_bytes=workers_bytes,
                reserve_cpu_cores=host_file.reserve_cpu_cores,
                reserve_memory_bytes=host_file.reserve_memory_bytes,
                gpus=host_file.gpus,
            ),
        )
        self._cost_file.keep(self._costs.known)


def _kept(
    before: Mapping[tuple[str, str], _Said], said: Mapping[str, _Said], host_file: HostFile
) -> dict[tuple[str, str], _Said]:
    """What the workers of each template ``said``, or before, by its name and hash."""
    return {
        (name, each.content_hash): value
        for name, each in host_file.templates.items()
        if each.reporter is not Reporter.NONE
        and (value := said.get(name) or before.get((name, each.content_hash))) is not None
    }
