"""What is taken on a host, and by what: workers, what workers have left, and processes that may be workers."""

from dataclasses import dataclass

from headway.agent.system import gpus
from headway.agent.workers.ends.orphans import OrphanProcesses
from headway.agent.workers.unrecorded_processes import UnrecordedWorkers
from headway.agent.workers.worker_table import WorkerTable
from headway.scaling.model import WorkerState


@dataclass(slots=True)
class Occupancy:
    """The places, the GPUs and the logs that are taken on one host."""

    table: WorkerTable
    remains: OrphanProcesses
    unrecorded: UnrecordedWorkers
    host_gpus: int
    """How many GPUs of the host are for workers."""

    def keeping_places(self) -> frozenset[str]:
        """The ids of workers in whose place no other is started before they have ended.

        They failed to get ready and have not ended, or are what a worker has left that nobody had asked to stop.
        """
        living = [worker.record for worker in self.table if worker.process is not None]
        late = [each.worker_id for each in living if each.life.state is WorkerState.DRAINING and each.life.has_failed]
        return self.remains.keeping_places() | frozenset(late)

    def free_gpus(self) -> tuple[int, ...]:
        """The numbers of the host's GPUs that no worker has, nor what one has left, nor what may be one."""
        taken = [record.gpus for record in self.table.records() if record.life.is_alive]
        taken += [left.gpus for left in self.remains.left]
        taken += [each.gpus for each in self.unrecorded.found]
        return gpus.free(self.host_gpus, taken)

    def printing(self) -> frozenset[str]:
        """The ids of all that may still print."""
        with_process = frozenset(worker.record.worker_id for worker in self.table if worker.process is not None)
        return with_process | {each.worker_id for each in self.unrecorded.found}
