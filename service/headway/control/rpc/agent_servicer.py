"""AgentService over gRPC."""

import hashlib
import logging
import math
import time
from collections import Counter
from functools import lru_cache, partial
from typing import Any

import grpc.aio

from headway.control.agents.agent_service import AgentService, AppliedAssignment
from headway.control.agents.host_authorization import HostAuthorization
from headway.control.agents.report_validation import (
    check_heartbeat,
    check_host_name,
    check_names,
    check_report,
    check_size,
)
from headway.control.agents.report_writer import ReportHeartbeat
from headway.control.auth.authenticator import LOCAL, Caller
from headway.control.bounds import DEFAULT, Bounds
from headway.control.held_counts import one_more
from headway.control.rpc.call_permissions import CALLER, address_of_call
from headway.control.rpc.grpc_errors import with_status
from headway.errors import Invalid
from headway.local.throttle import Throttle
from headway.scaling.model import Exit, HostCapacity, StartUp
from headway.store.hosts.host_reports import HostReport
from headway.store.hosts.hosts import Enrolment
from headway.wire import codec
from headway.wire.v1 import agent_pb2, agent_pb2_grpc

log = logging.getLogger(__name__)

# Of the calls that a connection has at once: a client with so many lets others wait, reports among them, and a proxy
# that opens no further connection then cuts its hosts off without a word. A report takes milliseconds each 15 s.
POLLS_FRACTION = 0.9
REPORT_CUTS_MAX = 1_000  # as many as an agent keeps
AGENT_MEMORY_STEP_BYTES = 16_000_000  # a worker that grew by less is as it was
_LOGGED_EACH_TIME = {agent_pb2.WORKER_STATE_GONE, agent_pb2.WORKER_STATE_BACKING_OFF}


class AgentServicer(agent_pb2_grpc.AgentServiceServicer):
    """Hands what agents ask to the reports and answers in messages."""

    def __init__(self, reports: AgentService, admission: HostAuthorization, bounds: Bounds = DEFAULT) -> None:
        self._reports = reports
        self._admission = admission
        self._bounds = bounds
        self._polls = Counter[str]()
        """How many polls each connection holds."""
        self._polls_max = max(1, int(bounds.grpc_calls_per_connection_max * POLLS_FRACTION))
        self._throttle = Throttle()

    def add_to(self, server: grpc.aio.Server) -> None:
        """Make ``server`` route the service's calls here."""
        agent_pb2_grpc.add_AgentServiceServicer_to_server(self, server)

    @with_status
    async def Enrol(  # noqa: N802 - the name in the .proto file
        self, request: agent_pb2.EnrolRequest, context: Any
    ) -> agent_pb2.EnrolResponse:
        """Make a host known."""
        check_host_name(request.host_name)
        earlier = {"host_id": request.host_id, "agent_version": request.agent_version}
        check_names(boot_id=request.boot_id, **{key: given for key, given in earlier.items() if given})
        enrolment = codec.value_of(
            Enrolment,
            request,
            name=request.host_name,
            hosts_max=self._bounds.hosts_max,
            address=address_of_call(context),
        )
        joined = await self._admission.join(enrolment, CALLER.get(), certified=_certified(context))
        return agent_pb2.EnrolResponse(
            cluster_id=await self._reports.cluster_id(), host_id=joined.host_id, credential=joined.credential
        )

    @with_status
    async def Report(  # noqa: N802 - the name in the .proto file
        self, request: agent_pb2.ReportRequest, context: Any
    ) -> agent_pb2.ReportResponse:
        """Take a host's report."""
        check_names(host_id=request.host_id, boot_id=request.boot_id)
        caller = await self._entitled(request, context)
        self._bound(request)
        await self._reports.certified(request.host_id, ends_at_s=_certificate_ends_s(context))
        lease_s = await self._reports.report(
            _beat(request), partial(_report, request, address=address_of_call(context)), cluster_id=request.cluster_id
        )
        return agent_pb2.ReportResponse(
            cluster_id=await self._reports.cluster_id(),
            lease_s=lease_s,
            credential=await self._admission.renewed(caller),
        )

    @with_status
    async def Poll(  # noqa: N802 - the name in the .proto file
        self, request: agent_pb2.PollRequest, context: Any
    ) -> agent_pb2.PollResponse:
        """Answer when the host's assignment differs from what it has, or when its wait is over."""
        check_names(host_id=request.host_id)
        if math.isnan(request.max_wait_s):
            raise Invalid("max_wait_s=nan is no time in seconds: ask for one from 0 to 300")
        caller = await self._entitled(request, context)
        having = codec.value_of(AppliedAssignment, request)
        too_many = (
            f"this connection holds {self._polls_max} polls, and more would keep reports waiting: give each host "
            "its own connection through the proxy, or raise HEADWAY_GRPC_CALLS_PER_CONNECTION"
        )
        with one_more(self._polls, context.peer(), most=self._polls_max, why=too_many):
            recheck = partial(self._admission.callers.recheck, caller)
            standing = await self._reports.poll(having, wait_s=request.max_wait_s, recheck=recheck)
        return agent_pb2.PollResponse(
            cluster_id=await self._reports.cluster_id(),
            epoch=standing.epoch,
            revision=standing.revision,
            assignments=[codec.message_of(agent_pb2.Assignment, each) for each in standing.assignments],
            hints=[codec.message_of(agent_pb2.WorkerHint, hint) for hint in standing.hints],
            kills=[codec.message_of(agent_pb2.KillOrder, order) for order in standing.kills],
            pools=[codec.message_of(agent_pb2.PoolQueues, each) for each in standing.pools],
        )

    def _bound(self, request: agent_pb2.ReportRequest) -> None:
        """Leave of ``request`` what one host may report. Raises ``Invalid`` where that is no matter of leaving out."""
        newest = self._bounds.start_ups_per_report_max
        left_out = max(len(request.start_ups), len(request.exits)) - newest
        if left_out > 0 and self._throttle.due(request.host_id) is not None:
            log.warning(
                "start-ups or exits left out host_id=%s items=%d: HEADWAY_START_UPS_PER_REPORT allows %d",
                *(request.host_id, left_out, newest),
            )
        del request.cuts[:-REPORT_CUTS_MAX]
        del request.start_ups[:-newest]
        del request.exits[:-newest]
        learned = {each.template for each in request.start_ups} | {each.template for each in request.exits}
        labels = max(len(request.labels), *(len(template.labels) for template in request.templates), 0)
        check_size(
            self._bounds,
            workers=len(request.workers),
            templates=len(request.templates),
            labels=labels,
            learned_templates=len(learned),
        )

    async def _entitled(self, request: agent_pb2.ReportRequest | agent_pb2.PollRequest, context: Any) -> Caller:
        """Who calls, if that may speak for the host of the request. A host of another cluster is nobody's here."""
        caller, certified = CALLER.get(), _certified(context)
        if (caller is LOCAL and not certified) or request.cluster_id != await self._reports.cluster_id():
            return caller
        await self._admission.require_right(caller, request.host_id, certified=certified)
        return caller


def _certified(context: Any) -> frozenset[str]:
    """The names in the certificate that the other end has shown; none where it was asked for none."""
    shown = context.auth_context()
    names = (*shown.get("x509_common_name", ()), *shown.get("x509_subject_alternative_name", ()))
    return frozenset(name.decode(errors="replace") for name in names)


def _certificate_ends_s(context: Any) -> float | None:
    """Until when the certificate is good that the other end has shown, Unix seconds; ``None``: it has shown none."""
    return next(map(_ends_s, context.auth_context().get("x509_pem_cert", ())), None)


@lru_cache(maxsize=10_000)
def _ends_s(pem: bytes) -> float:
    from cryptography import x509  # not for those without TLS: some megabytes

    return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()


def _beat(request: agent_pb2.ReportRequest) -> ReportHeartbeat:
    capacity = codec.value_of(HostCapacity, request.capacity)
    beat = codec.value_of(ReportHeartbeat, request, capacity=capacity, content=_content(request))
    check_heartbeat(beat)
    return beat


def _content(request: agent_pb2.ReportRequest) -> bytes:
    """A digest of all that a report holds beside the numbers of a heartbeat and the passing of time.

    Empty where it holds more than the present state: of a start, an end or a failure each report counts.
    """
    if request.start_ups or request.exits or any(worker.state in _LOGGED_EACH_TIME for worker in request.workers):
        return b""
    standing = agent_pb2.ReportRequest()
    standing.CopyFrom(request)
    for name in ("sequence", "epoch_seen", "capacity"):
        standing.ClearField(name)
    for worker in standing.workers:
        worker.age_s = 0.0
        worker.ClearField("state_age_s")
        worker.ClearField("activity_age_s")
        worker.memory_bytes //= AGENT_MEMORY_STEP_BYTES
    return hashlib.blake2b(standing.SerializeToString(deterministic=True), digest_size=16).digest()


def _report(request: agent_pb2.ReportRequest, *, address: str) -> HostReport:
    now_s = time.time()
    report = codec.value_of(
        HostReport,
        request,
        received_at_s=now_s,
        capacity=codec.value_of(HostCapacity, request.capacity),
        templates=tuple(codec.template_from_message(template) for template in request.templates),
        workers=tuple(codec.worker_from_message(worker, now_s=now_s) for worker in request.workers),
        start_ups=tuple(codec.value_of(StartUp, each) for each in request.start_ups),
        exits=tuple(codec.value_of(Exit, each) for each in request.exits),
        labels=dict(request.labels),
        problems=codec.problems_from_messages(request.problems),
        cuts=tuple(codec.cut_from_message(cut, now_s=now_s) for cut in request.cuts),
        address=address,
    )
    check_report(report)
    return report
