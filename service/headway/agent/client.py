"""What the agent asks of the control plane, over gRPC. Every call has a deadline; ages cross the wire, times do not."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc

from headway import __version__
from headway.agent.busy import Hint
from headway.agent.folder import Identity
from headway.errors import Conflict, Forbidden, HeadwayError, NotFound, Refused, Unauthenticated, Unavailable
from headway.scaling.model import Assignment, HostCapacity, Template, Worker
from headway.wire import codec
from headway.wire.channel import Tls, handshake_failure, open_channel
from headway.wire.v1 import agent_pb2, agent_pb2_grpc

CALL_TIMEOUT_S = 10.0
# Long, because every answer without news costs as much as one with; less than the five minutes after which proxies
# give up on a silent call. A connection that died is noticed by its keepalive.
POLL_WAIT_S = 240.0
POLL_TIMEOUT_S = POLL_WAIT_S + 10.0  # the answer may wait its turn when every agent connects anew

_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 4_000),
    # A control plane that vanished without a word is noticed within half a minute.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_http_proxy", 0),  # a proxy for the web is none for gRPC
)

# What a repetition may cure. CANCELLED is how gRPC's server refuses a call for which it has no room.
_RETRYABLE = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}
_REFUSALS: dict[grpc.StatusCode, type[Refused]] = {
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: Forbidden,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ABORTED: Conflict,
}

_Response = TypeVar("_Response")


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """How the control plane calls this host."""

    cluster_id: str
    host_id: str
    credential: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a host shows when it asks to be let in: something that it calls with, or a join token. Never told."""

    shown: str = field(default="", repr=False)
    join_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What answers a report."""

    cluster_id: str
    credential: str
    """A new one, to be used from now on; empty: keep the one there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a poll brought."""

    cluster_id: str
    epoch: int
    revision: int
    assignments: tuple[Assignment, ...]
    hints: tuple[Hint, ...]
    asked_at_s: float
    """When it was asked for: nothing of it is older."""


class GivenUp(Unavailable):
    """The poll was given up on our side, so that it is asked anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNews:
    """What a report tells. Starts of workers are seconds since boot, as ``now_s`` is when it is sent."""

    capacity: HostCapacity
    templates: Sequence[Template]
    workers: Sequence[Worker]
    exit_codes: Mapping[str, int | None] = field(default_factory=dict)
    """Worker id -> exit code, of workers whose process has ended."""
    start_ups: Sequence[tuple[str, float]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


class ControlClient:
    """A connection to the control plane. Safe to use from several threads."""

    def __init__(self, address: str, *, token: str | None, clock: Callable[[], float], tls: Tls | None = None) -> None:
        self._address = address
        self._clock = clock
        self._token = token or ""
        self._channel = open_channel(address, options=_OPTIONS, tls=tls)
        self._stub = agent_pb2_grpc.AgentServiceStub(self._channel)
        self._polling = threading.Lock()
        self._held: grpc.Future[Any] | None = None
        """The poll that waits for its answer."""

    @property
    def has_token(self) -> bool:
        """Whether there is a shared token to call with."""
        return bool(self._token)

    def close(self) -> None:
        """Hang up: calls that wait for an answer end at once."""
        self._channel.close()

    def enrol(
        self, *, host_name: str, host_id: str, boot_id: str, agent_id: str = "", proof: Proof | None = None
    ) -> Enrolled:
        """Make the host known by ``proof``, or by the shared token. Raises as ``report`` does."""
        proof = proof or Proof(shown=self._token)
        request = agent_pb2.EnrolRequest(
            host_name=host_name,
            host_id=host_id,
            boot_id=boot_id,
            agent_version=__version__,
            agent_id=agent_id,
            join_token=proof.join_token,
        )
        response = self._call(self._stub.Enrol, request, CALL_TIMEOUT_S, shown=proof.shown)
        return Enrolled(cluster_id=response.cluster_id, host_id=response.host_id, credential=response.credential)

    def report(
        self, news: HostNews, *, identity: Identity, host_name: str, boot_id: str, sequence: int, epoch_seen: int
    ) -> Heard:
        """Tell what the host has and runs.

        Raises:
            Unavailable: try again later.
            NotFound: the host is not known there; enrol again.
            Unauthenticated: the token or the host's credential is missing or not valid.
            Refused: the control plane understood, and does not want it.
        """
        now_s = self._clock()
        request = agent_pb2.ReportRequest(
            cluster_id=identity.cluster_id,
            host_id=identity.host_id,
            host_name=host_name,
            boot_id=boot_id,
            sequence=sequence,
            epoch_seen=epoch_seen,
            capacity=codec.capacity_to_message(news.capacity),
            templates=[codec.template_to_message(template) for template in news.templates],
            workers=[
                codec.worker_to_message(worker, now_s=now_s, exit_code=news.exit_codes.get(worker.worker_id))
                for worker in news.workers
            ],
            start_ups=[
                agent_pb2.StartUp(template=template, start_up_s=start_up_s) for template, start_up_s in news.start_ups
            ],
            labels=news.labels,
        )
        response = self._call(self._stub.Report, request, CALL_TIMEOUT_S, shown=identity.credential)
        return Heard(cluster_id=response.cluster_id, credential=response.credential)

    def poll(self, identity: Identity, *, epoch: int, revision: int) -> Answer:
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
        asked_at_s = 0.0

        def ask(request: Any, **how: Any) -> Any:
            nonlocal asked_at_s
            with (
                self._polling
            ):  # so that a poll is either given up, or asked later than whoever gives up has decided to
                asked_at_s = self._clock()
                held = self._held = self._stub.Poll.future(request, **how)
            return held.result()

        response = self._call(ask, request, POLL_TIMEOUT_S, shown=identity.credential)
        heard_at_s = self._clock()
        return Answer(
            cluster_id=response.cluster_id,
            epoch=response.epoch,
            revision=response.revision,
            assignments=codec.assignments_from_messages(response.assignments, host_id=identity.host_id),
            hints=tuple(
                Hint(
                    pid=hint.pid,
                    is_busy=hint.is_busy,
                    since_age_s=hint.since_age_s if hint.HasField("since_age_s") else None,
                    age_s=hint.age_s,
                    heard_at_s=heard_at_s,
                    ended_jobs=hint.ended_jobs if hint.HasField("ended_jobs") else None,
                )
                for hint in response.hints
            ),
            asked_at_s=asked_at_s,
        )

    def give_up_poll(self) -> None:
        """Wait for the answer to the present poll no longer. One that is asked after this returns is not concerned."""
        with self._polling:
            if self._held is not None:
                self._held.cancel()

    def _call(self, method: Callable[..., _Response], request: Any, timeout_s: float, *, shown: str) -> _Response:
        secret = shown or ("" if getattr(request, "join_token", "") else self._token)
        try:
            metadata = (("authorization", f"Bearer {secret}"),) if secret else ()
            return method(request, timeout=timeout_s, metadata=metadata)
        except grpc.FutureCancelledError as error:
            raise GivenUp("the poll is asked anew") from error
        except grpc.RpcError as error:
            raise self._told(error) from error
        except ValueError as error:  # how gRPC says that the channel was closed meanwhile
            raise Unavailable(f"the connection to {self._address} is closed") from error

    def _told(self, error: Any) -> HeadwayError:
        code, details = error.code(), error.details()
        if (failure := handshake_failure(details or "")) is not None:
            return Unavailable(f"the control plane at {self._address} {failure}")
        if code in _RETRYABLE:
            return Unavailable(f"the control plane at {self._address} does not answer ({code.name}: {details})")
        return _REFUSALS.get(code, Refused)(f"the control plane at {self._address} refuses: {details} ({code.name})")
