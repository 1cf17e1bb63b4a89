"""What the agent asks of the control plane, over gRPC. Ages cross the wire, times do not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import grpc

from headway import __version__
from headway.agent.controlplane.rpc import RpcCalls
from headway.agent.model import Identity, ReceivedHint
from headway.agent.workers.ends.exit_log import Ended
from headway.scaling.model import (
    Assignment,
    CutJob,
    Exit,
    HostCapacity,
    HostProblem,
    KillOrder,
    PoolQueues,
    Receipt,
    StartUp,
    TelemetryBatch,
    Template,
    Worker,
    WorkerState,
)
from headway.wire import codec
from headway.wire.channel import Tls
from headway.wire.v1 import agent_pb2
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from headway.wire.v1.telemetry_pb2_grpc import TelemetryServiceStub

# Long, because every answer without a change costs as much as one with; less than the five minutes after which proxies
# give up on a silent call. A connection that died is noticed by its keepalive.
POLL_WAIT_S = 240.0
POLL_TIMEOUT_S = POLL_WAIT_S + 10.0  # the answer may wait its turn when every agent connects anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """How the control plane calls this host."""

    cluster_id: str
    host_id: str
    credential: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a host shows when it asks to be let in: something that it calls with, or a join token. Never logged."""

    shown: str = field(default="", repr=False)
    join_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAnswer:
    """What answers a report."""

    cluster_id: str
    credential: str
    """A new one, to be used from now on; empty: keep the one there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollAnswer:
    """What a poll brought."""

    cluster_id: str
    epoch: int
    revision: int
    assignments: tuple[Assignment, ...]
    hints: tuple[ReceivedHint, ...]
    pools: tuple[PoolQueues, ...]
    """The queues of each pool that the host runs, or whose workers may still drain here."""
    asked_at_s: float
    """When it was asked for: nothing of it is older."""
    kills: tuple[KillOrder, ...] = ()
    """Workers of this host that people want to be killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUpdate:
    """The contents of a report. Starts of workers are seconds since boot, as ``now_s`` is when it is sent."""

    capacity: HostCapacity
    templates: Sequence[Template]
    workers: Sequence[Worker]
    ended: Sequence[Ended] = ()
    """Workers whose process has ended; they are gone unless ``workers`` has them."""
    start_ups: Sequence[StartUp] = ()
    exits: Sequence[Exit] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    problems: Sequence[HostProblem] = ()
    cuts: Sequence[CutJob] = ()
    """What ends of workers have cut, and no answered report has contained."""


class _Stubs(AgentServiceStub):
    """The calls of a host: they share one connection."""

    def __init__(self, channel: grpc.Channel) -> None:
        super().__init__(channel)
        self.telemetry = TelemetryServiceStub(channel)


class ControlClient:
    """A connection to one of the control planes at ``addresses``. Safe to use from several threads."""

    def __init__(
        self,
        *addresses: str,
        token: str | None,
        clock: Callable[[], float],
        tls: Callable[[], Tls | None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._calls = RpcCalls(addresses, stub=_Stubs, token=token, clock=clock, tls=tls)

    @property
    def has_token(self) -> bool:
        """Whether there is a shared token to call with."""
        return bool(self._calls.token)

    def close(self) -> None:
        """Hang up: calls that wait for an answer end at once."""
        self._calls.close()

    def enrol(
        self, *, host_name: str, host_id: str, boot_id: str, agent_id: str = "", proof: Proof | None = None
    ) -> Enrolled:
        """Make the host known by ``proof``, or by the shared token. Raises as ``report`` does."""
        proof = proof or Proof(shown=self._calls.token)
        request = agent_pb2.EnrolRequest(
            host_name=host_name,
            host_id=host_id,
            boot_id=boot_id,
            agent_version=__version__,
            agent_id=agent_id,
            join_token=proof.join_token,
        )
        secret = proof.shown or ("" if proof.join_token else self._calls.token)
        response = self._calls.call(lambda stub: stub.Enrol, request, secret=secret)
        return codec.value_of(Enrolled, response)

    def report(
        self, update: HostUpdate, *, identity: Identity, host_name: str, boot_id: str, sequence: int, epoch_seen: int
    ) -> ReportAnswer:
        """Report what the host has and runs.

        Raises:
            Unavailable: try again later.
            NotFound: the host is not known there; enrol again.
            Unauthenticated: the token or the host's credential is missing or not valid.
            Refused: the control plane understood, and does not want it.
        """
        now_s = self._clock()
        exit_codes = {each.worker.worker_id: each.exit_code for each in update.ended}
        present = {each.worker_id for each in update.workers}
        ended = (each.worker for each in update.ended if each.worker.worker_id not in present)
        gone = [replace(each, state=WorkerState.GONE) for each in ended]
        request = agent_pb2.ReportRequest(
            cluster_id=identity.cluster_id,
            host_id=identity.host_id,
            host_name=host_name,
            boot_id=boot_id,
            sequence=sequence,
            epoch_seen=epoch_seen,
            capacity=codec.message_of(agent_pb2.HostCapacity, update.capacity),
            templates=[codec.message_of(agent_pb2.Template, template) for template in update.templates],
            workers=[
                codec.worker_to_message(worker, now_s=now_s, exit_code=exit_codes.get(worker.worker_id))
                for worker in (*update.workers, *gone)
            ],
            start_ups=[codec.message_of(agent_pb2.StartUp, each) for each in update.start_ups],
            exits=[codec.message_of(agent_pb2.Exit, each) for each in update.exits],
            labels=update.labels,
            problems=codec.problems_to_messages(update.problems),
            cuts=[codec.cut_to_message(cut, now_s=now_s) for cut in update.cuts],
        )
        response = self._calls.call(lambda stub: stub.Report, request, secret=self._secret(identity))
        return codec.value_of(ReportAnswer, response)

    def poll(self, identity: Identity, *, epoch: int, revision: int) -> PollAnswer:
        """What the host is to run, once that is newer than ``epoch`` and ``revision``, or the same after a while.

        Raises as ``report`` does, and ``GivenUp`` after ``give_up_poll``.
        """
        request = agent_pb2.PollRequest(
            cluster_id=identity.cluster_id,
            host_id=identity.host_id,
            epoch=epoch,
            revision=revision,
            max_wait_s=POLL_WAIT_S,
        )
        response: agent_pb2.PollResponse = self._calls.hold(
            lambda stub: stub.Poll, request, secret=self._secret(identity), timeout_s=POLL_TIMEOUT_S
        )
        received_at_s = self._clock()
        return codec.value_of(
            PollAnswer,
            response,
            assignments=tuple(
                codec.value_of(Assignment, each, host_id=identity.host_id) for each in response.assignments
            ),
            hints=tuple(codec.value_of(ReceivedHint, hint, received_at_s=received_at_s) for hint in response.hints),
            pools=tuple(PoolQueues(pool=each.pool, queues=tuple(each.queues)) for each in response.pools),
            asked_at_s=self._calls.held_since_s,
            kills=tuple(codec.value_of(KillOrder, each) for each in response.kills),
        )

    def send(self, batch: TelemetryBatch, *, identity: Identity) -> Receipt:
        """Send events of jobs once; return when they can no longer be lost. Raises as ``report`` does."""
        response = self._calls.call(
            lambda stub: stub.telemetry.Ingest, codec.batch_to_message(batch), secret=self._secret(identity)
        )
        return codec.value_of(Receipt, response)

    def give_up_poll(self) -> None:
        """Wait for the answer to the present poll no longer. One that is asked after this returns is not concerned."""
        self._calls.give_up()

    def _secret(self, identity: Identity) -> str:
        return identity.credential or self._calls.token
