"""Which workers take no jobs although they run: by the state of their processes, and by what they report.

A worker is named once it has been so for some seconds: a debugger stops a process for a moment, too. What it reports
counts only against what it has reported before, so that a template with the wrong number of slots, or a library that
reports no queues, makes no worker seem to have lost them. An agent that takes a worker over goes on with what the
earlier agent knew: a worker reports the queues that it consumes now, never those that it has lost.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headway.agent.config.templates import Template
from headway.agent.reporting.worker_report import BEAT_FRESH_S, Beat
from headway.agent.workers.worker_record import Record
from headway.local import procfs
from headway.scaling.model import Inability, WorkerState

INABILITY_AFTER_S = 8.0  # two polls of the processes
SUSPENSION_SAID_S = 10.0  # from a report to the next decision and back: two evaluations
_STOPPED = frozenset({"T", "t"})
_REPORTED = frozenset({Inability.CONSUMERS_CANCELLED, Inability.POOL_SHRUNK})
_AT_WORK = frozenset({WorkerState.RUNNING, WorkerState.DRAINING})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What one worker has shown, for the agent that takes it over."""

    slots_max: int
    """The most jobs that it has reported to run at once."""
    had_queues: bool
    """Whether it has reported that it consumes queues."""
    inability: Inability | None
    """Why it takes no jobs; ``None``: it can, as far as is known."""


@dataclass(slots=True)
class _Watched:
    """What one worker has shown so far."""

    pool: str
    is_running: bool = False
    found: Inability | None = None
    since_s: float = 0.0
    confirmed: Inability | None = None
    slots_max: int = 0
    had_queues: bool = False
    loop: int | None = None
    resumed_at_s: float = float("-inf")
    """When this agent took the worker over, with what an earlier agent knew of it."""

    @property
    def shown(self) -> Shown:
        """What the next agent is to know of it."""
        return Shown(slots_max=self.slots_max, had_queues=self.had_queues, inability=self.confirmed)


class InabilityWatch:
    """The running workers that take no jobs."""

    def __init__(self) -> None:
        self._watched: dict[str, _Watched] = {}
        self._known_before: Mapping[str, Shown] = {}

    def resume(self, shown: Mapping[str, Shown]) -> None:
        """Go on with what workers had ``shown`` to an earlier agent."""
        self._known_before = shown

    @property
    def shown(self) -> dict[str, Shown]:
        """Worker id -> what it has shown so far."""
        return {worker_id: each.shown for worker_id, each in self._watched.items()}

    def scan(
        self,
        records: Iterable[Record],
        *,
        beat: Callable[[str], Beat | None],
        templates: Mapping[str, Template],
        now_s: float,
    ) -> bool:
        """Poll these workers, and forget all others. Returns whether that changed for any."""
        is_news, watched = False, {}
        for record in records:
            if record.life.state not in _AT_WORK:
                continue
            known = watched[record.worker_id] = self._watched.get(record.worker_id) or self._first(record, now_s)
            known.is_running = record.life.state is WorkerState.RUNNING
            found = _of_processes(record)
            if found is None and record.life.state is WorkerState.RUNNING:
                found = _of_beat(known, beat(record.worker_id), slots=_slots(record, templates), now_s=now_s)
            if found is not known.found:
                known.found, known.since_s = found, now_s
            is_confirmed = known.found is known.confirmed or now_s - known.since_s >= INABILITY_AFTER_S
            confirmed = known.found if is_confirmed else None
            if confirmed is not known.confirmed:
                known.confirmed, is_news = confirmed, True
                if confirmed is not None:
                    log.warning("takes no jobs pool=%s template=%s pid=%d: %s", *record.kind, record.pid, confirmed)
        self._watched = watched
        return is_news

    def _first(self, record: Record, now_s: float) -> _Watched:
        """The watch on a worker that this agent has not polled yet."""
        before = self._known_before.get(record.worker_id)
        if before is None:
            return _Watched(pool=record.pool)
        return _Watched(
            pool=record.pool,
            found=before.inability,
            since_s=now_s - INABILITY_AFTER_S,
            confirmed=before.inability,
            slots_max=before.slots_max,
            had_queues=before.had_queues,
            resumed_at_s=now_s,
        )

    def of(self, worker_id: str) -> Inability | None:
        """Why the worker takes no jobs; ``None``: it can, as far as is known."""
        known = self._watched.get(worker_id)
        return None if known is None else known.confirmed

    def spared(self, *, now_s: float) -> frozenset[str]:
        """The ids of those that consume nothing like every other worker of their pool here, for some seconds.

        Perhaps somebody has paused the pool so. The control plane, which knows all hosts, then says that it is
        suspended; else they are replaced.
        """
        running = {worker_id: each for worker_id, each in self._watched.items() if each.is_running}
        able = {each.pool for each in running.values() if each.confirmed is not Inability.CONSUMERS_CANCELLED}
        return frozenset(
            worker_id
            for worker_id, each in running.items()
            if each.pool not in able and now_s - each.since_s < INABILITY_AFTER_S + SUSPENSION_SAID_S
        )


def _of_beat(known: _Watched, beat: Beat | None, *, slots: int, now_s: float) -> Inability | None:
    """What a running worker reports of its queues and slots."""
    if beat is None and known.found in _REPORTED and now_s - known.resumed_at_s < INABILITY_AFTER_S:
        return known.found  # its first report to this agent is still to come
    if beat is None or now_s - beat.received_at_s > BEAT_FRESH_S or beat.is_stopping:
        return None
    # While its loop does not turn, as without its broker, what it says of queues and slots is of before.
    is_turning, known.loop = beat.loop != known.loop, beat.loop
    known.had_queues |= bool(beat.queues)
    slots_now = beat.slots if beat.slots_max is None else beat.slots_max  # a pool that grows by itself is not shrunk
    known.slots_max = max(known.slots_max, slots_now or 0)
    if not is_turning:
        return None
    if known.had_queues and not beat.queues:
        return Inability.CONSUMERS_CANCELLED
    if slots_now is not None and slots_now < min(slots, known.slots_max):
        return Inability.POOL_SHRUNK
    return None


def _of_processes(record: Record) -> Inability | None:
    """What the states of the worker's main processes show, or of the one that was started."""
    known = [(each.pid, each.started_ticks) for each in record.mains] or [(record.pid, record.started_ticks)]
    states = []
    for pid, started_ticks in known:
        process = procfs.stat(pid)
        is_there = process is not None and abs(process.started_ticks - started_ticks) <= procfs.TICKS_APART_MAX
        states.append(process.state if process is not None and is_there else "")
    if all(state in _STOPPED for state in states):
        return Inability.STOPPED
    return Inability.ZOMBIE if all(state == "Z" for state in states) else None


def _slots(record: Record, templates: Mapping[str, Template]) -> int:
    """Jobs that the worker runs at once, as its template said when it was started; 0: not known any more."""
    template = templates.get(record.template)
    return template.slots if template is not None and template.content_hash == record.template_hash else 0
