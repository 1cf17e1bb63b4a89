"""What Celery's workers publish of themselves every 2 s, with and without ``-E``: how many jobs they run."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import redis

from headway.collect.reply_bounds import begin_anew
from headway.connections import as_text
from headway.scaling.model import WorkerActivity

DUE_S = 2.25  # the next heartbeat, and so much later than the one before as a busy process may be
OVERDUE_S = 3.0  # one heartbeat is missing
LATE_S = 7.0  # three heartbeats are missing: it has ended, or is cut off
WHOLE_AFTER_S = 2.5  # by then every worker has published one that was connected all the time
RETURN_S = 30.0  # after the broker was away workers wait longer and longer before they connect again
MESSAGES_MAX = 2_000  # a poll; of more, the rest is read by the next
PID_MAX = 2**31
WORKERS_MAX = 5_000  # of one broker; whoever may publish can make up any number


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """One worker, as it was when its heartbeat came."""

    host: str
    pid: int
    running_jobs: int
    begun_jobs: int
    """Since it began."""
    received_s: float


class WorkerHeartbeats:
    """The workers of one broker, as far as their heartbeats came."""

    def __init__(self, client: "redis.Redis", *, prefix: str, database: int, have_published: bool = False) -> None:
        self._client = client
        self.have_published = have_published
        """Whether a worker of this broker has ever published a heartbeat; else they may run ``--without-heartbeat``."""
        events = f"{prefix}/{database}.celeryev"
        # By name: a login that may subscribe to some channels may not use a pattern that names them another way.
        self._channels = (events, f"{events}/worker.heartbeat", f"{events}/worker.offline")
        self._subscription: Any = None
        self._since_s = 0.0
        self._workers: dict[tuple[str, Any], Heartbeat] = {}
        """By name and process id: workers of one host have the same name where nobody gave them others."""
        self._awaited: set[tuple[str, Any]] = set()
        """Those that published before the subscription ended, and not since."""

    def read(self, at_s: float) -> None:
        """Take what was published since the last call. Raises ``redis.RedisError``; then nothing is known any more."""
        if self._subscription is None:
            self._awaited.update(self._workers)
            self._workers.clear()
            self._since_s = at_s
            self._subscription = self._client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
            self._subscription.subscribe(*self._channels)
        begin_anew(self._subscription.connection)
        try:
            for _ in range(MESSAGES_MAX):
                if not self._subscription.connection.can_read(timeout=0):
                    break
                received = self._subscription.get_message(timeout=0)
                if received is not None:
                    self._take(received.get("data"), at_s)
        except (redis.RedisError, OSError):
            self.close()
            raise
        for worker in [worker for worker, each in self._workers.items() if at_s - each.received_s > LATE_S]:
            del self._workers[worker]

    def is_whole(self, at_s: float) -> bool:
        """Whether every worker must have published a heartbeat by now."""
        after_s = RETURN_S if self._awaited else WHOLE_AFTER_S
        return self._subscription is not None and at_s - self._since_s >= after_s

    def are_fresh(self, at_s: float) -> bool:
        """Whether no heartbeat is overdue: a worker whose only thread runs a task publishes none meanwhile."""
        return all(at_s - each.received_s <= OVERDUE_S for each in self._workers.values())

    def running_jobs(self, at_s: float) -> int:
        """Of all workers together, as they published last; of one whose heartbeat is overdue at least one."""
        return sum(max(each.running_jobs, at_s - each.received_s > OVERDUE_S) for each in self._workers.values())

    @property
    def begun_jobs(self) -> int:
        """Jobs that the workers have begun, of all together."""
        return sum(each.begun_jobs for each in self._workers.values())

    @property
    def listed_workers(self) -> int | None:
        """Workers whose heartbeats come; ``None`` where none ever did: they may run ``--without-heartbeat``."""
        return len(self._workers) if self.have_published else None

    def activities(self, at_s: float) -> Iterator[WorkerActivity]:
        """Each worker whose heartbeats come. That one was idle is said only until its next heartbeat is due.

        A worker whose only thread runs a task publishes none, so a heartbeat that does not come may mean a job, which
        began up to 2 s before. An idle worker whose heartbeat is late is unknown for a moment.
        """
        for each in self._workers.values():
            if not each.running_jobs and at_s - each.received_s > DUE_S:
                continue
            yield WorkerActivity(
                host=each.host,
                pid=each.pid,
                is_busy=each.running_jobs > 0,
                running_jobs=each.running_jobs,
                ended_jobs=max(0, each.begun_jobs - each.running_jobs),
            )

    def close(self) -> None:
        """End the subscription."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def _take(self, text: Any, at_s: float) -> None:
        for event in _events(text):
            name, kind = event.get("hostname"), event.get("type")
            if not isinstance(name, str):
                continue
            if kind == "worker-offline":
                pid = event.get("pid")
                worker = (name, pid if isinstance(pid, int) else None)
                self._workers.pop(worker, None)
                self._awaited.discard(worker)
            elif kind == "worker-heartbeat" and (heartbeat := _heartbeat(name, event, at_s)) is not None:
                worker = (name, heartbeat.pid)
                self.have_published = True
                if worker in self._workers or len(self._workers) < WORKERS_MAX:
                    self._workers[worker] = heartbeat
                self._awaited.discard(worker)


def _events(text: Any) -> list[dict[str, Any]]:
    """The events in a message of kombu; none where it is something else."""
    try:
        message = json.loads(text)
        body = message["body"]
        if message["properties"].get("body_encoding") == "base64":
            body = base64.b64decode(body, validate=True)
        events = json.loads(body) if message.get("content-type") == "application/json" else []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
    return [each for each in (events if isinstance(events, list) else [events]) if isinstance(each, dict)]


def _heartbeat(name: str, event: dict[str, Any], at_s: float) -> Heartbeat | None:
    pid, active, processed = (event.get(key) for key in ("pid", "active", "processed"))
    if not all(isinstance(each, int) and 0 <= each < PID_MAX for each in (pid, active, processed)) or not pid:
        return None
    return Heartbeat(
        host=as_text(name.partition("@")[2] or name),
        pid=int(pid),
        running_jobs=int(active or 0),
        begun_jobs=int(processed or 0),
        received_s=at_s,
    )
