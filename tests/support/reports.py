"""What a host reports, and the beat of it."""

from typing import Any

from headway.control.agents.report_writer import ReportHeartbeat
from headway.scaling.model import HostCapacity, Worker, WorkerState
from headway.store.hosts.host_reports import HostReport

WORKER = Worker(
    worker_id="w1", pool="mail", template="rq", pid=7, state=WorkerState.RUNNING, started_at_s=0.0, is_busy=False
)


def report(host_id: str, sequence: int = 1, *, cpu_cores: float = 2.0, **values: Any) -> HostReport:
    capacity = HostCapacity(cpu_cores=cpu_cores, memory_bytes=4_000)
    given = {"boot_id": "boot", "epoch_seen": 0, "received_at_s": 60.0, "capacity": capacity, "workers": (WORKER,)}
    return HostReport(host_id=host_id, sequence=sequence, **(given | values))


def beat_of(report: HostReport) -> ReportHeartbeat:
    """The beat of a report, its content made from its workers."""
    return ReportHeartbeat(
        host_id=report.host_id,
        boot_id=report.boot_id,
        sequence=report.sequence,
        epoch_seen=report.epoch_seen,
        capacity=report.capacity,
        content=repr(report.workers).encode(),
    )
