"""Reports what a Celery worker does to the agent that started the worker, through a named pipe.

The agent puts this module's folder on PYTHONPATH and loads the module by ``celery worker --include
headway_celery_reporter``. The module needs the standard library and Celery 5.2 or later, and Python 3.8 or later.
Without ``HEADWAY_REPORTER_PIPE``, the path of the pipe, it does nothing. No error of it reaches Celery or a job, and it
never waits: a line that the pipe does not take immediately is dropped and counted.

Protocol. A line is one JSON object in ASCII, at most 4,096 bytes with its line feed. One call writes it, so that lines
of several processes do not mix. Times are Unix seconds of the host. Readers ignore keys that they do not know.

``{"v":1,"t":"received","id","queue","class","attempt","at_s","redelivered"[,"entered_at_s"][,"eta_s"]}``
    The worker took a message. ``entered_at_s`` is when the job entered the queue, if the message says so.
``{"v":1,"t":"begun",… the same keys …}``
    A job begins, in the process that runs it.
    A batch of ``celery-batches`` is one job of the queue of its first message, with an id of its own.
``{"v":1,"t":"ended","id","queue","class","attempt","at_s","outcome"[,"started_at_s"][,"requeued":true][,"cut":true]}``
    A job ended: "finished", "failed", "retried", "rejected" or "revoked". ``requeued`` says that a rejected job is in
    its queue again. A job that is revoked or expires before it begins has no ``started_at_s``. If the process of a job
    dies, the main process reports the end, and ``cut`` says that nothing of Celery's killed it. A second end of a job
    that has ended means nothing.
``{"v":1,"t":"beat","n","part","parts","running":[[id,queue,class,attempt,started_at_s],…],"queues":[…],"unnamed",
"begun","ended","slots","slots_max","pool","order","connected","stopping","loop","lost","at_s"}``
    The whole state, from the main process: when the worker is ready, every 2 s, and when it begins to stop. A state
    that is too long for one line comes in ``parts`` lines with the same ``n``: ``running`` and ``queues`` are the
    concatenation of the parts, the other keys are equal.

    ``running`` has each job that began before ``at_s`` and has not ended, also a job that is being terminated.
    ``unnamed`` is how much the pool runs beside them, of which nothing is known, as a batch of ``celery-batches``.
    ``begun`` and ``ended`` count jobs since the worker started. ``slots`` is the size of the pool now, ``slots_max``
    what it grows to by itself (``--autoscale``). ``queues`` are the queues that the worker consumes; without a
    connection to the broker (``connected``), the queues that it will consume. ``loop`` rises while Celery's own loop
    turns, at least every 4 s. It stands in a solo pool that runs a job, while the broker is away, and while the worker
    stops. ``order`` is in what order the worker takes from its queues: "in_turn", "by_arrival", or "strict", which is
    the order of ``queues``. ``lost`` counts the lines that the main process dropped; a line of a job has the ``lost``
    of its process, if that is not 0. ``null`` is unknown.

A text whose JSON is longer than 1,000 bytes keeps 80 characters, ``~`` and 16 digits of its SHA-256.

The beat comes from a thread of the operating system, also under gevent and eventlet: it goes on while a job keeps the
event loop busy. A call into C that holds Python's interpreter lock stops the beat; meanwhile the worker is unknown.
"""

from __future__ import annotations

import os
import stat
import sys
from errno import EBADF
from fcntl import F_DUPFD_CLOEXEC, fcntl
from functools import wraps
from hashlib import sha256
from importlib import import_module
from itertools import count
from json.encoder import encode_basestring_ascii
from posix import fstat, write  # gevent and eventlet do not replace these
from resource import RLIMIT_NOFILE, getrlimit
from time import time_ns
from typing import Any, Callable, Mapping, Sequence

from celery import bootsteps, signals
from celery.exceptions import Terminated, TimeLimitExceeded, WorkerLostError
from celery.utils.time import maybe_iso8601, maybe_make_aware
from celery.worker import state as celery_state

PIPE_VARIABLE = "HEADWAY_REPORTER_PIPE"
ENTERED_HEADER = "headway_enqueued_at_s"  # of headway.emit.celery
DELAY_WORDS = 28  # Celery's delayed delivery in RabbitMQ puts the bits of a delay in front of a message's key
RABBITMQ_HEADER = "timestamp_in_ms"  # of RabbitMQ's interceptor; the timestamp of AMQP has whole seconds only

LINE_BYTES_MAX = 4096  # PIPE_BUF: a longer write may mix with another process's
STATE_BYTES_MAX = 512  # of a beat's line, without running jobs and queues
TEXT_BYTES_MAX = 1000  # three in a line
TEXT_CHARACTERS_KEPT = 80  # of a longer text: 12 bytes each at most
BEAT_INTERVAL_S = 2.0
LOOP_INTERVAL_S = 1.0
ATTEMPTS_MAX = 2**31
KINDS_MAX = 1000
KNOWN_IDS_MAX = 10_000
OPENS_MAX = 3
CLOSED = -1  # to write to it is an error
HIGH_NUMBER = 500  # of a file: below what select takes
WATCHED = "is_watched_by_headway"
PIPE_BYTES = 256 * 1024  # a second of 300 jobs; more counts against what the user's other pipes may have
F_SETPIPE_SZ = 1031  # fcntl has the name from Python 3.10

OUTCOMES = {
    "SUCCESS": "finished",
    "IGNORED": "finished",
    "FAILURE": "failed",
    "RETRY": "retried",
    "REJECTED": "rejected",
}
NOTHING: Mapping[str, Any] = {}
REQUEUED = ',"requeued":true'
CUT = ',"cut":true'
STOPPED_PROCESS = (WorkerLostError, Terminated, TimeLimitExceeded, SystemExit, KeyboardInterrupt)
"""Why the main process ends a job in place of the process that ran it."""


def _never_raises(act: Callable[..., Any]) -> Callable[..., Any]:
    """``act`` without its exceptions: they would be in the application's log, or end its worker."""

    @wraps(act)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        try:
            return act(*args, **kwargs)
        except Exception:  # noqa: BLE001 - of whatever kind it is
            return None

    return quiet


# --- lines ---


def json_text(text: object) -> str:
    """``text`` as a JSON string of ASCII, at most ``TEXT_BYTES_MAX`` long."""
    whole = text if isinstance(text, str) else str(text)
    quoted = encode_basestring_ascii(whole)
    if "\\ud" in quoted:  # half a surrogate pair is no text for most readers
        quoted = encode_basestring_ascii(whole.encode("utf-8", "replace").decode())
    if len(quoted) <= TEXT_BYTES_MAX:
        return quoted
    digest = sha256(whole.encode("utf-8", "replace")).hexdigest()[:16]
    return json_text(f"{whole[:TEXT_CHARACTERS_KEPT]}~{digest}")


def nanoseconds(at_s: float | None) -> int | None:
    """A time of Celery's as this module has them: the digits of an integer take a third of the time of a float's."""
    return None if at_s is None else int(1e9 * at_s)


def beat_lines(number: int, state: str, running: Sequence[str], queues: Sequence[str]) -> list[str]:
    """The lines of one beat.

    Args:
        number: of the beat.
        state: the JSON of the other keys, without braces, at most ``STATE_BYTES_MAX`` - 100 long.
        running: the JSON of each running job.
        queues: the JSON of each queue.
    """
    parts: list[tuple[list[str], list[str]]] = [([], [])]
    left_bytes = LINE_BYTES_MAX - STATE_BYTES_MAX
    for kind, items in enumerate((running, queues)):
        for item in items:
            if len(item) + 1 > left_bytes:
                parts.append(([], []))
                left_bytes = LINE_BYTES_MAX - STATE_BYTES_MAX
            parts[-1][kind].append(item)
            left_bytes -= len(item) + 1
    return [
        f'{{"v":1,"t":"beat","n":{number},"part":{part},"parts":{len(parts)},'
        f'"running":[{",".join(some)}],"queues":[{",".join(others)}],{state}}}\n'
        for part, (some, others) in enumerate(parts)
    ]


class _Pipe:
    """The agent's named pipe, open both ways: so it takes lines, or is full, whether the agent lives or not."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = CLOSED
        self._identity = (0, 0)
        self._opens_left = OPENS_MAX
        self.lost_lines = 0
        self.end = "}\n"
        """How each line of a job ends."""

    def open(self) -> None:
        """Open the pipe; leaves it closed if there is none."""
        self._file = CLOSED
        if not self._opens_left:
            return
        self._opens_left -= 1
        try:
            low = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        try:
            opened = fstat(low)
            if stat.S_ISFIFO(opened.st_mode):
                # A job that closes files it does not know opens its own under the lowest numbers.
                numbers, _ = getrlimit(RLIMIT_NOFILE)
                high = HIGH_NUMBER if not 0 <= numbers <= 2 * HIGH_NUMBER else int(numbers) // 2
                self._file, self._identity = fcntl(low, F_DUPFD_CLOEXEC, high), (opened.st_dev, opened.st_ino)
                fcntl(self._file, F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # the pipe stays as large as it is
        finally:
            os.close(low)

    @property
    def is_open(self) -> bool:
        return self._file != CLOSED

    def write(self, line: str) -> None:
        """Write ``line`` if there is room for it now, else count it as lost."""
        try:
            write(self._file, line.encode())  # the whole line or none of it: no line is longer than PIPE_BUF
        except OSError as error:
            if error.errno == EBADF and self._opens_left:  # closed by a job, or this process was not forked
                self.open()
                self.write(line)
                return
            self.lost_lines += 1
            self.end = f',"lost":{self.lost_lines}}}\n'

    def check(self) -> None:
        """Open the pipe again if its number is another file's."""
        if self._file == CLOSED:
            return
        try:
            opened = fstat(self._file)
            if (opened.st_dev, opened.st_ino) == self._identity:
                return
        except OSError:
            pass
        self.open()


_pipe = _Pipe(os.environ.get(PIPE_VARIABLE, ""))


# --- jobs ---


def topic_matches(pattern: Sequence[str], key: Sequence[str]) -> bool:
    """Whether a message with the words ``key`` reaches a topic binding: ``*`` is one word, ``#`` any number."""
    reached = {0}
    for word in pattern:
        if word == "#":
            reached = set(range(min(reached), len(key) + 1))
        else:
            reached = {used + 1 for used in reached if used < len(key) and word in ("*", key[used])}
        if not reached:
            return False
    return len(key) in reached


def _leads(bound: Any, exchange: str, routing_key: str) -> bool:
    if bound.exchange is None or bound.exchange.name != exchange:
        return False
    if bound.exchange.type == "topic":
        return topic_matches((bound.routing_key or "").split("."), routing_key.split("."))
    return bool((bound.routing_key or "") == routing_key)


def undelayed(routing_key: str) -> str:
    """``routing_key`` as it was before Celery's delayed delivery, whose exchanges replace that of the message."""
    words = routing_key.split(".", DELAY_WORDS)
    is_delayed = len(words) > DELAY_WORDS and all(word in ("0", "1") for word in words[:DELAY_WORDS])
    return words[-1] if is_delayed else routing_key


def _delivers(bound: Any, words: Sequence[str]) -> bool:
    """Whether delayed delivery brings a message of this key here: it binds each exchange that is not direct."""
    pattern = (bound.routing_key or "").split(".")
    return bound.exchange is not None and bound.exchange.type != "direct" and topic_matches(pattern, words)


def queue_of(app: Any, exchange: str, routing_key: str) -> str:
    """The queue of a message that was sent to this exchange, with this key."""
    queues = app.amqp.queues
    for queue in tuple(queues.values()) if exchange else ():
        if any(_leads(bound, exchange, routing_key) for bound in (queue, *queue.bindings)):
            return str(queue.name)
    # The nameless exchange sends to the queue that the key names. A message of an exchange that the application does
    # not know came from a queue that this worker consumes.
    if exchange and len(queues.consume_from) == 1:
        return str(next(iter(queues.consume_from)))
    key = undelayed(routing_key)
    for queue in tuple(queues.consume_from.values()) if key != routing_key else ():
        if any(_delivers(bound, key.split(".")) for bound in (queue, *queue.bindings)):
            return str(queue.name)
    return str(key or app.conf.task_default_queue)


_kinds: dict[tuple[Any, Any, Any], str] = {}
"""``"queue":…,"class":…`` of each exchange, routing key and task.

Each beat empties it: remote control adds and removes queues.
"""


def _kind(task: Any, exchange: Any, routing_key: Any) -> str:
    queue = json_text(queue_of(task.app, str(exchange or ""), str(routing_key or "")))
    if len(_kinds) >= KINDS_MAX:
        _kinds.clear()
    kind = _kinds[exchange, routing_key, task.name] = f'"queue":{queue},"class":{json_text(task.name)}'
    return kind


def _job(task: Any, job_id: Any, message: Mapping[str, Any]) -> str:
    """``"id":…,"queue":…,"class":…,"attempt":…``."""
    # Few steps here and below, because a job waits for them: after a pause, when the processor's caches have other
    # things, each call of a function costs several times as much as in a loop.
    sent, retries = message.get("delivery_info") or NOTHING, message.get("retries")
    exchange, routing_key = sent.get("exchange"), sent.get("routing_key")
    kind = _kinds.get((exchange, routing_key, task.name)) or _kind(task, exchange, routing_key)
    quoted = encode_basestring_ascii(job_id) if job_id.__class__ is str else ""
    if not 0 < len(quoted) <= TEXT_BYTES_MAX or len(quoted) != len(job_id) + 2:  # long, or with escapes
        quoted = json_text(job_id)
    return f'"id":{quoted},{kind},"attempt":{_attempt(retries) if retries else "1"}'


def _job_of(request: Any) -> str:
    """The job of a request of the main process."""
    return _job(request.task, request.id, request.request_dict)


def _attempt(retries: Any) -> str:
    return str(retries + 1) if isinstance(retries, int) and 0 < retries < ATTEMPTS_MAX else "1"


def _times(message: Mapping[str, Any]) -> str:
    """``,"entered_at_s":…,"eta_s":…``, without what the message does not say, or says so that it cannot be read."""
    headers, retries, eta = message.get("headers") or message, message.get("retries"), message.get("eta")
    entered_at_s = message.get(ENTERED_HEADER) or headers.get(ENTERED_HEADER)
    entered_at_ms = message.get(RABBITMQ_HEADER) or headers.get(RABBITMQ_HEADER)
    if not (entered_at_s or entered_at_ms or eta):
        return ""
    said = ""
    # A retry carries the headers of the first attempt, unless whoever sets them is in this worker, too.
    if not retries or "headway.emit.celery" in sys.modules:
        said += _time("entered_at_s", lambda: float(entered_at_s or float(entered_at_ms or "") / 1000))
    return said + _time("eta_s", lambda: maybe_make_aware(maybe_iso8601(eta)).timestamp())


def _time(key: str, at_s: Callable[[], float]) -> str:
    try:
        return f',"{key}":{int(1e6 * at_s()) / 1e6:.6f}'  # no int is NaN or infinite
    except Exception:  # noqa: BLE001 - the message may have anything
        return ""


def _write_taken(said: str, job: str, at_ns: int, message: Mapping[str, Any]) -> None:
    get = message.get
    redelivered = "true" if (get("delivery_info") or NOTHING).get("redelivered") else "false"
    times = _times(message) if get("eta") or get("headers") or get(ENTERED_HEADER) or get(RABBITMQ_HEADER) else ""
    _pipe.write(f'{{"v":1,"t":"{said}",{job},"at_s":{at_ns}e-9,"redelivered":{redelivered}{times}{_pipe.end}')


def _write_end(job: str, outcome: str, started_at_ns: int | None, more: str = "") -> None:
    started = "" if started_at_ns is None else f',"started_at_s":{started_at_ns}e-9'
    _pipe.write(f'{{"v":1,"t":"ended",{job},"at_s":{time_ns()}e-9,"outcome":"{outcome}"{started}{more}{_pipe.end}')


# --- what Celery says of a job ---

_begun: dict[int, tuple[object, str, int]] = {}
"""Id, job and start of what runs in this process, by the identity of its request."""
_known_ids: dict[object, None] = {}
"""Of messages that were received, the oldest first."""


def _received(request: Any, **_: Any) -> None:
    try:
        message, job_id = request.request_dict, request.id
        _known_ids[job_id] = None
        if len(_known_ids) > KNOWN_IDS_MAX:
            _forget_ids()
        _write_taken("received", _job(request.task, job_id, message), time_ns(), message)
    except Exception:  # noqa: BLE001, S110 - here and below as in ``_never_raises``, without its steps
        pass


def _forget_ids() -> None:
    for old in tuple(_known_ids)[: KNOWN_IDS_MAX // 10]:  # one by one, Python passes all that were removed before
        _known_ids.pop(old, None)


def _begins(task: Any, task_id: Any = None, args: Any = (), **_: Any) -> None:
    try:
        request = task.request
        if request.is_eager:  # called where it is, and never in a queue
            return
        at_ns, job_id, message = time_ns(), request.id, request.__dict__
        if job_id is None:
            job_id, message = task_id, _message_of_batch(args)
        job = _job(task, job_id, message)
        _begun[id(request)] = (job_id, job, at_ns)
        _write_taken("begun", job, at_ns, message)
    except Exception:  # noqa: BLE001, S110
        pass


def _message_of_batch(args: Any) -> Mapping[str, Any]:
    """What is known of the messages that ``celery-batches`` runs together: it runs them as one job with its own id.

    They are the one argument of the job. All of them are for the same task, and most of them from the same queue.
    """
    return {"delivery_info": args[0][0].delivery_info}


def _ends(task: Any, state: str | None = None, retval: object = None, **_: Any) -> None:
    try:
        request = task.request
        if request.is_eager:
            return
        begun = _begun.pop(id(request), None)
        outcome = OUTCOMES.get(state or "")
        if outcome is None:
            # The job left by an exception that ends a process, or a greenlet: if it ends a process, the main process
            # reports the end. By any other, Celery's own work on the job has failed, as where no result can be stored.
            if not _main.is_this_process and not isinstance(sys.exc_info()[1], Exception):
                return
            outcome = "revoked" if request.id in celery_state.revoked else "failed"
        if begun is None and request.id is None:
            return
        job, started_at_ns = begun[1:] if begun else (_job(task, request.id, request.__dict__), None)
        # A message that was acknowledged as its job began cannot be put back.
        is_put_back = outcome == "rejected" and getattr(retval, "requeue", False) and task.acks_late
        _write_end(job, outcome, started_at_ns, REQUEUED if is_put_back else "")
    except Exception:  # noqa: BLE001, S110
        pass


@_never_raises
def _revoked(sender: Any, request: Any, *, terminated: bool = False, **_: Any) -> None:
    """A job ends before it begins. One that is terminated while it runs ends later."""
    if terminated:
        return
    message = request.__dict__
    job = _job(sender, request.id, message)
    if request.id not in _known_ids:  # Celery looks for what is revoked or expired before it says that it received it
        _write_taken("received", job, time_ns(), message)
    _write_end(job, "revoked", None)


@_never_raises
def _stopped(request: Any, raised: Any) -> None:
    """The main process ends a job, since the process that ran it did not."""
    error = getattr(raised, "exc", raised)  # billiard wraps what it brings from another process
    if not isinstance(error, STOPPED_PROCESS):
        return  # the process that ran it has reported its end
    task, is_lost = request.task, not isinstance(error, (Terminated, TimeLimitExceeded))
    more = ""
    if getattr(request, "_already_cancelled", False):  # since the connection to the broker was lost
        outcome = "retried"
    elif isinstance(error, Terminated) or getattr(request, "_already_revoked", False):
        outcome = "revoked"
    elif is_lost and task.acks_late and task.reject_on_worker_lost:
        outcome, more = "rejected", REQUEUED
    else:
        outcome = "retried" if is_lost and getattr(task, "retry_on_worker_lost", False) else "failed"
    if isinstance(error, WorkerLostError):
        more += CUT
    _write_end(_job_of(request), outcome, nanoseconds(request.time_start), more)


def _watch_stopped_processes() -> None:
    """Have ``_stopped`` called for each job whose process was killed, or died: of some, Celery sends no signal."""
    from celery.worker.request import Request

    original = Request.on_failure
    if getattr(original, WATCHED, False):
        return

    @wraps(original)
    def on_failure(request: Any, exc_info: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(request, exc_info, *args, **kwargs)
        finally:
            if not kwargs.get("return_ok"):  # else a job that failed, in a process that lives
                _stopped(request, getattr(exc_info, "exception", None))

    setattr(on_failure, WATCHED, True)
    Request.on_failure = on_failure


# --- what the worker does ---


class _Main:
    """The main process of a worker."""

    def __init__(self) -> None:
        self.process_id: int | None = None
        self.worker: Any = None
        self.is_stopping = False
        self.loop_turns = 0
        self._numbers = count(1)
        self._beats = False

    @property
    def is_this_process(self) -> bool:
        return self.process_id == os.getpid()

    def begin(self, worker: Any) -> None:
        """Take ``worker``, which has not started yet."""
        self.process_id, self.worker = os.getpid(), worker
        _pipe.open()
        _watch_stopped_processes()
        worker.app.steps["consumer"].add(_LoopStep)

    def begin_beats(self) -> None:
        """Write a beat now, and one every ``BEAT_INTERVAL_S``."""
        if self._beats or not self.is_this_process or not _pipe.is_open:
            return
        self._beats = True
        sleep = _original("time", "sleep")

        def beat_forever() -> None:
            while True:
                self.beat()
                sleep(BEAT_INTERVAL_S)

        # Neither the application nor Celery counts or joins this thread, and the process ends without it.
        _original("_thread", "start_new_thread")(_never_raises(beat_forever), ())

    @_never_raises
    def beat(self) -> None:
        """Write the whole state."""
        at_ns, worker, consumer = time_ns(), self.worker, self.worker.consumer
        requests, unnamed_jobs = _work_in(worker.pool)
        jobs = [_running(_job_of(request), nanoseconds(request.time_start) or at_ns) for request in requests]
        ids = {request.id for request in requests}
        jobs += [_running(job, begun_at_ns) for job_id, job, begun_at_ns in tuple(_begun.values()) if job_id not in ids]
        _kinds.clear()
        begun_jobs = celery_state.all_total_count[0]
        queues, is_connected = _consumed_queues(worker.app, consumer)
        order, queues = _order(consumer, queues)
        slots = _slots(worker.pool)
        state = (
            f'"unnamed":{unnamed_jobs},'
            f'"begun":{begun_jobs},"ended":{max(begun_jobs - len(_active_requests()), 0)},'
            f'"slots":{_number(slots)},"slots_max":{_number(_slots_max(worker, slots))},'
            f'"pool":{json_text(type(worker.pool).__module__.rpartition(".")[2][:20])},'
            f'"order":{"null" if order is None else json_text(order)},'
            f'"connected":{"true" if is_connected else "false"},'
            f'"stopping":{"true" if self.is_leaving() else "false"},'
            f'"loop":{self.loop_turns},"lost":{_pipe.lost_lines},"at_s":{at_ns}e-9'
        )
        _pipe.check()
        for line in beat_lines(next(self._numbers), state, jobs, [json_text(queue) for queue in queues]):
            _pipe.write(line)

    def is_leaving(self) -> bool:
        """Whether the worker takes no further job, and ends."""
        if self.is_stopping or self.worker.blueprint.state in (bootsteps.CLOSE, bootsteps.TERMINATE):
            return True
        flags = celery_state.should_stop, celery_state.should_terminate
        return any(flag is not None and flag is not False for flag in flags)


def _original(module: str, name: str) -> Any:
    """A function that gevent or eventlet may have replaced by one that waits in their own loop."""
    gevent, eventlet = sys.modules.get("gevent.monkey"), sys.modules.get("eventlet.patcher")
    if gevent is not None:
        return gevent.get_original(module, name)
    if eventlet is not None:
        return getattr(eventlet.original(module), name)
    return getattr(import_module(module), name)


def _running(job: str, started_at_ns: int) -> str:
    """``[id,queue,class,attempt,started_at_s]``."""
    items = job[len('"id":') :]
    for key in (',"queue":', ',"class":', ',"attempt":'):  # a quote inside a JSON string is behind a backslash
        items = items.replace(key, ",")
    return f"[{items},{started_at_ns}e-9]"


def _number(value: Any) -> str:
    return "null" if value is None else str(int(value))


def _active_requests() -> list[Any]:
    # Other threads change the set: a list of its weak references is made in one step.
    return [
        request for request in (known() for known in list(celery_state.active_requests.data)) if request is not None
    ]


def _work_in(pool: Any) -> tuple[list[Any], int]:
    """The jobs that the worker has in its pool: those that Celery calls active, and those of which only the pool knows.

    A job is with a process before Celery calls it active, and stays with it after Celery gave it up, until it ends.
    Beside them, how many calls the pool runs that are of no job of Celery's.
    """
    requests = {id(request): request for request in _active_requests()}
    unnamed_jobs = 0
    processes = getattr(pool, "_pool", None)
    cache = getattr(processes, "_cache", None)
    has_buffer = hasattr(processes, "outbound_buffer")  # of jobs that no process has yet
    for result in list(cache.values()) if isinstance(cache, dict) else ():
        is_sent = result._accepted or not has_buffer or getattr(result, "_scheduled_for", None) is not None
        request = getattr(result._accept_callback, "__self__", None)
        if not is_sent or result.ready():
            continue
        if hasattr(request, "request_dict"):
            requests[id(request)] = request
        else:
            unnamed_jobs += 1
    return list(requests.values()), unnamed_jobs


def _slots(pool: Any) -> int | None:
    """How many jobs the pool can run at once, now."""
    # ``num_processes`` of some pools counts those at work.
    slots = getattr(getattr(pool, "_pool", None), "_processes", None)
    slots = slots if isinstance(slots, int) else getattr(pool, "limit", None)
    return slots if isinstance(slots, int) else None


def _slots_max(worker: Any, slots: int | None) -> int | None:
    grown = getattr(getattr(worker, "autoscaler", None), "max_concurrency", None)
    return slots if slots is None or not isinstance(grown, int) else max(slots, grown)


def _consumed_queues(app: Any, consumer: Any) -> tuple[list[str], bool]:
    """The queues that the worker consumes, and whether it is connected to its broker."""
    tasks = getattr(consumer, "task_consumer", None)
    if tasks is None or consumer.connection is None:
        return [str(name) for name in list(app.amqp.queues.consume_from)], False
    return [str(name) for name in list(tasks._active_tags)], True


def _order(consumer: Any, queues: list[str]) -> tuple[str | None, list[str]]:
    """In what order the worker takes from ``queues``, and these, of a strict order from the first to the last.

    ``None``: not known. Kombu's cycle of queues on Redis has the name of its ``queue_order_strategy``. RabbitMQ sends
    messages as they come, as soon as the worker may have one more: measured, most of those that came first.
    """
    channel = getattr(getattr(consumer, "task_consumer", None), "channel", None)
    if channel is None:
        return None, queues
    kind = type(getattr(channel, "_queue_cycle", None)).__name__
    if kind == "round_robin_cycle":
        return "in_turn", queues
    if kind == "sorted_cycle":
        return "strict", sorted(queues)
    named = getattr(channel, "active_queues", None)
    if kind == "priority_cycle" and isinstance(named, list):  # a set, in earlier versions, has any order
        return "strict", [str(name) for name in named]
    driver = getattr(getattr(consumer.connection, "transport", None), "driver_type", None)
    return ("by_arrival" if driver == "amqp" else None), queues


class _LoopStep(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """Counts the turns of Celery's own loop, anew with each connection to the broker."""

    requires = ("celery.worker.consumer.connection:Connection",)
    _connections = 0

    @_never_raises
    def start(self, parent: Any) -> None:
        self._connections += 1
        self._turn(parent, self._connections)

    def stop(self, parent: Any) -> None:  # noqa: ARG002 - Celery's signature
        self._connections += 1  # the timer that runs is of no connection any more

    @_never_raises
    def _turn(self, consumer: Any, connection: int) -> None:
        if connection != self._connections:
            return
        if consumer.hub is None:  # the timer has a thread or greenlet of its own, and the loop calls what it is given
            if not self._is_awaited:
                self._is_awaited = True
                consumer.call_soon(self._count)
        else:
            self._count()
        consumer.timer.call_after(LOOP_INTERVAL_S, self._turn, (consumer, connection))

    _is_awaited = False

    def _count(self) -> None:
        self._is_awaited = False
        _main.loop_turns += 1


_main = _Main()


@_never_raises
def _worker_begins(sender: Any, **_: Any) -> None:
    _main.begin(sender)


@_never_raises
def _worker_is_ready(**_: Any) -> None:
    _main.begin_beats()


@_never_raises
def _worker_stops(**_: Any) -> None:
    _main.is_stopping = True
    if _main.is_this_process and _pipe.is_open:
        _main.beat()


_ACTS = (
    (signals.worker_init, _worker_begins),
    (signals.worker_ready, _worker_is_ready),
    (signals.worker_shutting_down, _worker_stops),
    (signals.task_received, _received),
    (signals.task_prerun, _begins),
    (signals.task_postrun, _ends),
    (signals.task_revoked, _revoked),
)
for _signal, _act in _ACTS if PIPE_VARIABLE in os.environ else ():
    _signal.connect(_act, weak=False, dispatch_uid=f"headway_celery_reporter.{_act.__name__}")
    # Celery's own option, which is off for these: each job waits while Celery takes a lock and finds the receivers.
    _signal.use_caching = True
