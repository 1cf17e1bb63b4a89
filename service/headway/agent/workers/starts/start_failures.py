"""Known causes of failed starts, read off what workers printed, or seen by the agent itself. Only codes leave the host.

A cause stands until a worker of its kind has run for a while, the worker that printed it is ready, or none of its kind
starts for a minute. While it stands, one worker of the kind is tried at a
time: all others would fail by the same cause, and take what the running ones need.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headway.agent.workers.worker_record import Record
from headway.scaling.model import StartFailure, Worker, WorkerState

OUTPUT_READ_AFTER_S = 5.0  # a start that is not ready by then may retry a connection for as long as it is left to
OUTPUT_READ_EVERY_S = 2.0
CAUSE_KEPT_S = 60.0  # while none of its kind starts or backs off: between two tries none may
OUTPUT_END_BYTES = 16 * 1024  # a traceback of a library, its last exception with it

WORDS: tuple[tuple[str, StartFailure], ...] = (
    ("max number of clients", StartFailure.MAXCLIENTS),
    ("too many clients already", StartFailure.MAXCLIENTS),
    ("too many connections", StartFailure.MAXCLIENTS),
    ("connection limit", StartFailure.MAXCLIENTS),
    ("connection refused", StartFailure.CONNECTION_REFUSED),
    ("econnrefused", StartFailure.CONNECTION_REFUSED),
    ("connection reset by peer", StartFailure.CONNECTION_CLOSED),
    ("connection closed by server", StartFailure.CONNECTION_CLOSED),
    ("name or service not known", StartFailure.UNKNOWN_HOST),
    ("temporary failure in name resolution", StartFailure.UNKNOWN_HOST),
    ("getaddrinfo enotfound", StartFailure.UNKNOWN_HOST),
    ("oom command not allowed", StartFailure.OUT_OF_MEMORY),
    ("command not allowed when used memory > 'maxmemory'", StartFailure.OUT_OF_MEMORY),  # redis-py cuts off the code
    ("write against a read only replica", StartFailure.READ_ONLY),
    ("misconf ", StartFailure.READ_ONLY),
    ("unable to persist to disk", StartFailure.READ_ONLY),
    ("is loading the dataset in memory", StartFailure.LOADING),
    ("must be called with the client already authenticated", StartFailure.AUTHENTICATION),
    ("authentication required", StartFailure.AUTHENTICATION),
    ("invalid username-password pair", StartFailure.AUTHENTICATION),
    ("invalid password", StartFailure.AUTHENTICATION),
    ("access_refused", StartFailure.AUTHENTICATION),
    ("access refused", StartFailure.AUTHENTICATION),
    ("modulenotfounderror", StartFailure.MODULE_MISSING),
    ("no module named", StartFailure.MODULE_MISSING),
    ("unable to load celery application", StartFailure.MODULE_MISSING),
    ("memoryerror", StartFailure.HOST_MEMORY),
    ("cannot allocate memory", StartFailure.HOST_MEMORY),
    ("no space left on device", StartFailure.DISK_FULL),
)
"""What libraries print, in lower case, and the cause. The last of them that a worker printed counts."""


def start_failure_in(printed: str) -> StartFailure | None:
    """The cause that the end of a worker's output names; ``None`` if it names none of the list."""
    lower = printed.lower()
    found = [(lower.rfind(words), cause) for words, cause in WORDS]
    at, cause = max(found, key=lambda each: each[0])
    return cause if at >= 0 else None


RETRIED = frozenset(cause for _, cause in WORDS) - {
    StartFailure.MODULE_MISSING,
    StartFailure.HOST_MEMORY,
    StartFailure.DISK_FULL,
}
"""The causes at which a start may go on, and retry. Of others it ends; else what was missing was optional."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """A cause, when a worker failed by it last, and when a worker of the kind last started or backed off."""

    cause: StartFailure
    at_s: float
    worker_id: str
    """Of the worker that printed it."""
    wanted_at_s: float


_TO_START = frozenset({WorkerState.STARTING, WorkerState.BACKING_OFF})


class StartFailures:
    """The causes that stand, by kind of worker: a pool and a template."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str], _Noted] = {}
        self._read_at_s: dict[str, float] = {}
        """Worker id -> when the output of its start is read next."""

    def note(self, record: Record, printed: str, *, now_s: float, has_ended: bool = True) -> None:
        """Take note of what a start has printed that failed, or that goes on for long.

        A start that has failed by none of the known causes ends the one that stood.
        """
        cause = start_failure_in(printed)
        if cause is not None and (has_ended or cause in RETRIED):
            self._noted[record.kind] = _Noted(cause=cause, at_s=now_s, worker_id=record.worker_id, wanted_at_s=now_s)
        elif has_ended:
            self.forget(record.kind)

    def note_refusal(self, record: Record, cause: StartFailure | None, *, now_s: float) -> None:
        """Take note of a start without a process: by this cause, or by none of the list, which ends the one before."""
        if cause is None:
            self.forget(record.kind)
        else:
            self._noted[record.kind] = _Noted(cause=cause, at_s=now_s, worker_id=record.worker_id, wanted_at_s=now_s)

    def note_ready(self, record: Record) -> None:
        """Take note of a start that has come to its end in spite of what it had printed."""
        noted = self._noted.get(record.kind)
        if noted is not None and noted.worker_id == record.worker_id:
            self.forget(record.kind)

    def forget(self, kind: tuple[str, str]) -> None:
        """End the cause of a kind, as where its workers are started otherwise now."""
        self._noted.pop(kind, None)

    def is_output_due(self, record: Record, *, now_s: float) -> bool:
        """Whether the output of a start that is not ready is to be read now; the next time is a moment later."""
        due_s = self._read_at_s.get(record.worker_id, record.life.started_at_s + OUTPUT_READ_AFTER_S)
        if now_s >= due_s:
            self._read_at_s[record.worker_id] = now_s + OUTPUT_READ_EVERY_S
        return now_s >= due_s

    def scan(self, records: Iterable[Record], *, now_s: float) -> None:
        """End the causes of kinds of which a worker was started since and has run for a while, or none is to start."""
        if not self._noted and not self._read_at_s:
            return
        found = tuple(records)
        for record in found:
            noted = self._noted.get(record.kind)
            has_stayed = record.life.has_stayed(now_s=now_s)
            if noted is not None and has_stayed and record.life.started_at_s > noted.at_s:
                del self._noted[record.kind]
        wanted = {each.kind for each in found if each.life.state in _TO_START}
        self._noted = {
            kind: replace(each, wanted_at_s=now_s) if kind in wanted else each
            for kind, each in self._noted.items()
            if kind in wanted or now_s - each.wanted_at_s <= CAUSE_KEPT_S
        }
        starting = {each.worker_id for each in found if each.life.state is WorkerState.STARTING}
        self._read_at_s = {each: due_s for each, due_s in self._read_at_s.items() if each in starting}

    def named(self, worker: Worker) -> Worker:
        """``worker`` with the cause by which its start fails, or by which the one before it has failed."""
        noted = self._noted.get((worker.pool, worker.template))
        if noted is None or worker.state not in _TO_START:
            return worker
        return replace(worker, start_failure=noted.cause)

    def holds(self, kind: tuple[str, str], records: Iterable[Record], *, now_s: float) -> bool:
        """Whether no more of the kind is to be started now: a cause stands, and one worker is being tried."""
        return kind in self._noted and any(each.kind == kind and each.life.is_on_trial(now_s=now_s) for each in records)
