"""A control plane for tests of the agent: it speaks the same service over a real port, and decides what a test says."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc

from headway.wire.channel import ANSWERED
from headway.wire.v1 import agent_pb2, agent_pb2_grpc, telemetry_pb2, telemetry_pb2_grpc
from support.ports import free_port
from support.waiting import eventually

WAIT_S = 60.0


class FakeControl(agent_pb2_grpc.AgentServiceServicer, telemetry_pb2_grpc.TelemetryServiceServicer):
    """One cluster with one host in it."""

    def __init__(self) -> None:
        self.cluster_id = "cluster-1"
        self.host_id = "host-1"
        self.token: str | None = None
        self.knows_host = True
        self.enrolments: list[agent_pb2.EnrolRequest] = []
        self.reports: list[agent_pb2.ReportRequest] = []
        self.batches: list[telemetry_pb2.IngestRequest] = []
        self.polls: list[agent_pb2.PollRequest] = []
        self.polled_at_s: list[float] = []
        """When each of these arrived."""
        self.answer = agent_pb2.PollResponse(cluster_id=self.cluster_id)
        self.fails_with: grpc.StatusCode | None = None
        self.failed = 0
        self.refused_batches = 0
        self.is_awake = threading.Event()
        """Unset, reports get no answer and polls no news, although the network answers."""
        self.is_awake.set()
        self.peers: list[str] = []
        """The other ends of its connections, the newest last."""
        self._changed = threading.Condition()

    # --- what a test says --------------------------------------------------------------------------------------------

    def assign(
        self,
        *rows: agent_pb2.Assignment,
        epoch: int = 1,
        revision: int | None = None,
        hints: Any = (),
        kills: Any = (),
        pools: Any = (),
    ) -> None:
        """Give the host these rows under the next revision, or the one given."""
        with self._changed:
            self.answer = agent_pb2.PollResponse(
                cluster_id=self.cluster_id,
                epoch=epoch,
                revision=self.answer.revision + 1 if revision is None else revision,
                assignments=rows,
                hints=hints,
                kills=kills,
                pools=pools,
            )
            self._changed.notify_all()

    def become(self, cluster_id: str, host_id: str) -> None:
        """Be another installation from now on, in which nothing was ever decided."""
        with self._changed:
            self.cluster_id, self.host_id = cluster_id, host_id
            self.answer = agent_pb2.PollResponse(cluster_id=cluster_id)
            self._changed.notify_all()

    def forget_host(self, host_id: str) -> None:
        """Know this host no more, and call it ``host_id`` once it enrols again."""
        with self._changed:
            self.knows_host, self.host_id = False, host_id
            self.answer = agent_pb2.PollResponse(cluster_id=self.cluster_id)
            self._changed.notify_all()

    def workers(self) -> list[agent_pb2.Worker]:
        """The workers of the last report that are not gone."""
        last = self.reports[-1] if self.reports else agent_pb2.ReportRequest()
        return [worker for worker in last.workers if worker.state != agent_pb2.WORKER_STATE_GONE]

    def pids(self, state: int = agent_pb2.WORKER_STATE_RUNNING, pool: str = "mail") -> set[int]:
        """The pids of the last report's workers in this state."""
        return {worker.pid for worker in self.workers() if (worker.state, worker.pool) == (state, pool)}

    def running(self, count: int) -> set[int]:
        """The pids, once the last report shows so many running workers and no others."""

        def found() -> set[int]:
            workers = self.workers()  # of one report: the next may come at any moment
            at_work = [each for each in workers if each.state == agent_pb2.WORKER_STATE_RUNNING]
            pids = {each.pid for each in at_work if each.pool == "mail"}
            return (pids or {0}) if len(workers) == count == len(pids) else set()

        return eventually(found)

    # --- the service -------------------------------------------------------------------------------------------------

    def Enrol(self, request: Any, context: Any) -> agent_pb2.EnrolResponse:  # noqa: N802
        self._check(context)
        self.enrolments.append(request)
        self.knows_host = True
        return agent_pb2.EnrolResponse(cluster_id=self.cluster_id, host_id=self.host_id)

    def Report(self, request: Any, context: Any) -> agent_pb2.ReportResponse:  # noqa: N802
        self._check(context)
        while not self.is_awake.wait(0.05) and context.is_active():
            pass
        if request.cluster_id == self.cluster_id:
            self._require_host(request, context)
            self.reports.append(request)
        return agent_pb2.ReportResponse(cluster_id=self.cluster_id, lease_s=45.0)

    def Poll(self, request: Any, context: Any) -> agent_pb2.PollResponse:  # noqa: N802
        self._check(context)
        self.polled_at_s.append(time.monotonic())
        self.polls.append(request)
        until_s = time.monotonic() + request.max_wait_s
        with self._changed:
            while request.cluster_id == self.cluster_id:
                self._require_host(request, context)
                is_same = (self.answer.epoch, self.answer.revision) == (request.epoch, request.revision)
                is_same = is_same or not self.is_awake.is_set()
                if not is_same or time.monotonic() > until_s or not context.is_active():
                    break
                self._changed.wait(0.05)
            return self.answer

    def Ingest(self, request: Any, context: Any) -> telemetry_pb2.IngestResponse:  # noqa: N802
        try:
            self._check(context)
        except Exception:  # which is how gRPC aborts
            self.refused_batches += 1
            raise
        self.batches.append(request)
        return telemetry_pb2.IngestResponse(accepted_events=len(request.events))

    def _require_host(self, request: Any, context: Any) -> None:
        if not self.knows_host or request.host_id != self.host_id:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such host: enrol again")

    def _check(self, context: Any) -> None:
        if context.peer() not in self.peers:
            self.peers.append(context.peer())
        if self.token and ("authorization", f"Bearer {self.token}") not in context.invocation_metadata():
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")
        if self.fails_with is not None:
            self.failed += 1
            context.set_trailing_metadata((ANSWERED,))
            context.abort(self.fails_with, "as the test wants it")


@contextmanager
def serving(control: FakeControl, *, port: int = 0) -> Iterator[int]:
    """Serve it. Yields the port, which can be had again after a pause: nobody else is given it meanwhile."""
    with ThreadPoolExecutor(8) as threads:
        server = grpc.server(threads, options=[("grpc.so_reuseport", 0)])
        agent_pb2_grpc.add_AgentServiceServicer_to_server(control, server)
        telemetry_pb2_grpc.add_TelemetryServiceServicer_to_server(control, server)
        bound = server.add_insecure_port(f"127.0.0.1:{port or free_port()}")
        server.start()
        try:
            yield bound
        finally:
            server.stop(0).wait(5)


def row(base_workers: int, *, template: str = "sleep", pool: str = "mail", **values: Any) -> agent_pb2.Assignment:
    """A row for the host."""
    return agent_pb2.Assignment(pool=pool, template=template, base_workers=base_workers, **values)
