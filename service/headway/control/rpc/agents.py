"""AgentService over gRPC."""

import time
from typing import Any

import grpc.aio

from headway.control.reports import Enrolment, Having, Reports
from headway.control.rpc.errors import with_status
from headway.errors import Invalid
from headway.store.reports import HostReport
from headway.wire import codec
from headway.wire.v1 import agent_pb2, agent_pb2_grpc


class AgentServicer(agent_pb2_grpc.AgentServiceServicer):
    """Hands what agents ask to the reports and answers in messages."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports

    def add_to(self, server: grpc.aio.Server) -> None:
        """Make ``server`` route the service's calls here."""
        agent_pb2_grpc.add_AgentServiceServicer_to_server(self, server)

    @with_status
    async def Enrol(  # noqa: N802 - the name in the .proto file
        self, request: agent_pb2.EnrolRequest, _context: Any
    ) -> agent_pb2.EnrolResponse:
        """Make a host known."""
        _require(host_name=request.host_name, boot_id=request.boot_id)
        host_id = await self._reports.enrol(
            Enrolment(
                name=request.host_name,
                host_id=request.host_id,
                boot_id=request.boot_id,
                agent_version=request.agent_version,
            )
        )
        return agent_pb2.EnrolResponse(cluster_id=await self._reports.cluster_id(), host_id=host_id)

    @with_status
    async def Report(  # noqa: N802 - the name in the .proto file
        self, request: agent_pb2.ReportRequest, _context: Any
    ) -> agent_pb2.ReportResponse:
        """Take what a host tells of itself."""
        _require(host_id=request.host_id, boot_id=request.boot_id)
        lease_s = await self._reports.report(_report(request), cluster_id=request.cluster_id)
        return agent_pb2.ReportResponse(cluster_id=await self._reports.cluster_id(), lease_s=lease_s)

    @with_status
    async def Poll(  # noqa: N802 - the name in the .proto file
        self, request: agent_pb2.PollRequest, _context: Any
    ) -> agent_pb2.PollResponse:
        """Answer when the host's assignment differs from what it has, or when its wait is over."""
        _require(host_id=request.host_id)
        having = Having(
            cluster_id=request.cluster_id, host_id=request.host_id, epoch=request.epoch, revision=request.revision
        )
        standing = await self._reports.poll(having, wait_s=request.max_wait_s)
        return agent_pb2.PollResponse(
            cluster_id=await self._reports.cluster_id(),
            epoch=standing.epoch,
            revision=standing.revision,
            assignments=codec.assignments_to_messages(standing.assignments),
            hints=[
                agent_pb2.WorkerHint(pid=hint.pid, is_busy=hint.is_busy, since_age_s=hint.since_age_s, age_s=hint.age_s)
                for hint in standing.hints
            ],
        )


def _report(request: agent_pb2.ReportRequest) -> HostReport:
    now_s = time.time()
    return HostReport(
        host_id=request.host_id,
        boot_id=request.boot_id,
        sequence=request.sequence,
        epoch_seen=request.epoch_seen,
        received_at_s=now_s,
        capacity=codec.capacity_from_message(request.capacity),
        templates=tuple(codec.template_from_message(template) for template in request.templates),
        workers=tuple(codec.worker_from_message(worker, now_s=now_s) for worker in request.workers),
        start_ups=tuple((start_up.template, start_up.start_up_s) for start_up in request.start_ups),
        labels=dict(request.labels),
    )


def _require(**values: str) -> None:
    breaches = [f"{name} is empty" for name, value in values.items() if not value]
    if breaches:
        raise Invalid(*breaches)
