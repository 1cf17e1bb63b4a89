"""What a worker leaves whose process has ended: children that outlive it, perhaps with a job in their hands.

    npm run worker    ends, and the worker that it has started takes jobs on
    celery --detach   ends well at once: what takes jobs is another process
    celery worker     is killed, and its pool finishes what it has begun

They count as one worker that drains, until they are gone: of a pool of which no two may run, no other is started. Where
their worker was not asked to stop, they keep its place. The main process of a library that nobody has asked is asked
once; all others only finish, for the signal would kill them. None is killed before a deadline that a person has set.
The scheduler of an RQ worker takes no job and would never end: it is asked as well, and keeps no place.

What a job of a worker that ended well has started (a tunnel, a display) is the job's own affair, and counts as nothing.

They are known by the marks that they have inherited, or by where they print to; the kernel shows no parent any more.
What goes to the background forks more than once: the process that is left first ends at once, and leaves another. So
the search for it goes on for a while, and begins again whenever one that was found has ended. What they report is read
until they have ended, and jobs that their kill cuts are noted.
"""

import logging
import math
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headway.agent.model import Activity
from headway.agent.reporting.reporters import Reporters
from headway.agent.workers import lifecycle, worker_marks, worker_process, worker_record
from headway.agent.workers.ends import orphan_roles
from headway.agent.workers.ends.cut_watch import CutWatch
from headway.agent.workers.ends.worker_end import WorkerEnd
from headway.agent.workers.managed_worker import ManagedWorker
from headway.agent.workers.worker_logs import WorkerLogs
from headway.agent.workers.worker_record import OrphanRecord, Record
from headway.local import procfs
from headway.local.procfs import Stat
from headway.scaling.fields import taken_from
from headway.scaling.model import CutCause, Worker, WorkerState

LEFT_ID = "{}-left"
"""By what id the remains of a worker are reported: the worker's own is reported as ended."""

SEARCH_AGAIN_S = 1.0
SEARCH_S = 15.0  # a program that goes to the background loads what it needs before it forks for the last time

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Ended:
    """A worker that has ended, and until when what it has left is searched for."""

    end: WorkerEnd
    until_s: float
    search_at_s: float


class OrphanProcesses:
    """The processes that workers have left, until they have ended."""

    def __init__(self, agent_id: str, output: WorkerLogs, reporters: Reporters, cuts: CutWatch) -> None:
        self._agent_id = agent_id
        self._output = output
        self._reporters = reporters
        self._cuts = cuts
        self._reporting: set[str] = set()
        """The ids of workers of which something was left at the last scan, and reports."""
        self._ended: dict[str, _Ended] = {}
        """By worker id, those whose processes are searched for, or may leave others."""
        self.left: list[OrphanRecord] = []
        """What is known of, for the next agent to go on with."""

    def note(self, end: WorkerEnd) -> None:
        """Search, from the next scan on, for processes that this worker has left."""
        self._ended[end.record.worker_id] = _Ended(end, until_s=-math.inf, search_at_s=-math.inf)

    def last_report(self, worker: ManagedWorker) -> Activity:
        """What a worker that has ended reported last. A main process that it leaves reports on, through its pipe."""
        worker_id = worker.record.worker_id
        if not worker.record.has_other_main():
            return self._reporters.end(worker_id)
        self._reporting.add(worker_id)
        return self._reporters.activity(worker_id)

    def end_reports(self) -> None:
        """Remove the pipes of workers of which nothing is left any more."""
        left = {each.worker_id for each in self.left}
        for worker_id in self._reporting - left:
            self._reporters.end(worker_id)
        self._reporting = left

    def workers(self) -> tuple[Worker, ...]:
        """What is left of each worker, as one that drains, under an id of its own, with what it reports."""
        return tuple(
            taken_from(
                Worker,
                left,
                known := self._activity(left.worker_id),
                activity_source=known.source,
                activity_known_at_s=known.known_at_s,
                worker_id=LEFT_ID.format(left.worker_id),
                state=WorkerState.DRAINING,
                started_at_s=left.started_ticks / procfs.TICKS_PER_S,
                is_left_behind=True,
                goes_to_background=left.is_background,
            )
            for left in self._first_of_each()
        )

    def keeping_places(self) -> frozenset[str]:
        """The ids of those in ``workers`` in whose place no other is started."""
        return frozenset(LEFT_ID.format(each.worker_id) for each in self.left if each.keeps_place)

    def in_background(self, template: str) -> OrphanRecord | None:
        """What a worker of the template left that ended well as soon as it was started."""
        return next((each for each in self.left if each.is_background and each.template == template), None)

    def _activity(self, worker_id: str) -> Activity:
        said = self._reporters.activity(worker_id)
        return self._cuts.left_activity(worker_id) if said.source is None else said

    def scan(self, *, now_s: float) -> list[OrphanRecord]:
        """Find what was left since the last scan, and end what has had its time.

        Returns those that are to be asked to stop, noted as asked: to many a second signal means to drop what they are
        doing.
        """
        self._note_kills(self._overdue(now_s), cause=CutCause.DRAIN_DEADLINE)
        due = {worker_id: each for worker_id, each in self._ended.items() if now_s >= each.search_at_s}
        if due:
            self._search(due, now_s=now_s)
        there = [each for each in self.left if procfs.is_there(each.pid, each.started_ticks)]
        self._follow(there, now_s=now_s)
        self.left = there
        self._kill(self._overdue(now_s))
        to_ask = [each for each in self.left if each.must_be_asked]
        self.left = [replace(each, must_be_asked=False) for each in self.left]
        return to_ask

    def due_s(self) -> float:
        """When the next search is, by the clock of ``scan``; infinite: there is none."""
        return min((each.search_at_s for each in self._ended.values()), default=math.inf)

    def _search(self, due: Mapping[str, _Ended], *, now_s: float) -> None:
        known = {(each.pid, each.started_ticks) for each in self.left}
        found = [each for each in self._found(due, now_s=now_s) if (each.pid, each.started_ticks) not in known]
        self.left = [*self.left, *found]
        for each in due.values():
            if each.until_s == -math.inf:  # its first search
                each.until_s = now_s + SEARCH_S if orphan_roles.may_be_in_background(each.end, now_s=now_s) else now_s
            each.search_at_s = now_s + SEARCH_AGAIN_S if now_s < each.until_s else math.inf

    def _follow(self, there: Sequence[OrphanRecord], *, now_s: float) -> None:
        """Search again where a process has ended that was found, and forget workers that have left nothing."""
        stay = {each.worker_id for each in there}
        stay_processes = {(each.pid, each.started_ticks) for each in there}
        for left in self.left:
            ended = self._ended.get(left.worker_id)
            if ended is not None and (left.pid, left.started_ticks) not in stay_processes:
                ended.search_at_s, ended.until_s = now_s, max(ended.until_s, now_s + SEARCH_AGAIN_S)
        self._ended = {
            worker_id: each
            for worker_id, each in self._ended.items()
            if worker_id in stay or each.search_at_s < math.inf
        }

    def _overdue(self, now_s: float) -> list[OrphanRecord]:
        """Those whose drain deadline is over."""
        return [each for each in self.left if each.ends_by_s is not None and now_s >= each.ends_by_s]

    def kill(self, worker_id: str | None = None) -> bool:
        """Kill what one worker has left, or all workers. Returns whether there was anything.

        The worker is named by its own id, or by the one under which what it has left is reported.
        """
        left = [each for each in self.left if worker_id in {None, each.worker_id, LEFT_ID.format(each.worker_id)}]
        self._note_kills(left, cause=CutCause.KILLED)
        self._kill(left)
        return bool(left)

    def _note_kills(self, left: Iterable[OrphanRecord], *, cause: CutCause) -> None:
        for each in left:
            self._cuts.note_kill(each, cause=cause, said=self._reporters.activity(each.worker_id))

    @staticmethod
    def ask(due: Iterable[OrphanRecord]) -> None:
        """Ask main processes to finish their jobs and end, and schedulers to end."""
        for each in due:
            log.info("draining pool=%s pid=%d, which a worker has left", each.pool, each.pid)
            process = procfs.stat(each.pid)
            if process is not None and abs(process.started_ticks - each.started_ticks) <= procfs.TICKS_APART_MAX:
                worker_process.send_to_each([process], each.stop_signal)

    @staticmethod
    def _kill(left: Iterable[OrphanRecord]) -> None:
        """Kill these, with their families."""
        for each in left:
            process = worker_process.adopt(each.pid, each.started_ticks)
            if process is not None:
                process.send_to_all(signal.SIGKILL)
                process.close()

    def _first_of_each(self) -> Sequence[OrphanRecord]:
        """One of the processes that each worker has left: the main process where there is one, else the eldest."""
        first: dict[str, OrphanRecord] = {}
        for each in self.left:
            first.setdefault(each.worker_id, each)
        return tuple(first.values())

    def _found(self, due: Mapping[str, _Ended], *, now_s: float) -> list[OrphanRecord]:
        families: dict[str, list[Stat]] = {}
        for process, record in self._marked(due):
            families.setdefault(record.worker_id, []).append(process)
        found = []
        for worker_id, family in families.items():
            end = due[worker_id].end
            mains = orphan_roles.main_pids(family, end)
            for process in sorted(family, key=lambda each: (each.pid not in mains, each.started_ticks, each.pid)):
                is_main = process.pid in mains
                if is_main or not orphan_roles.is_of_a_job(process, end):
                    found.append(_orphan(process, end, is_main=is_main, now_s=now_s))
        return found

    def _marked(self, due: Mapping[str, _Ended]) -> list[tuple[Stat, Record]]:
        """The processes that these have left: one walk through all for however many workers."""
        found = []
        for pid in procfs.pids():
            worker_id, _ = worker_marks.marked(pid, self._agent_id, self._output)
            record = due[worker_id].end.record if worker_id in due else None
            process = procfs.stat(pid) if record is not None else None
            if record is None or process is None or process.is_over:
                continue
            is_younger = process.started_ticks >= record.started_ticks - procfs.TICKS_APART_MAX
            if is_younger and worker_record.may_run_as(record.uid, procfs.uid(pid)):
                found.append((process, record))
        return found


def _orphan(process: Stat, end: WorkerEnd, *, is_main: bool, now_s: float) -> OrphanRecord:
    record = end.record
    ends_by_s = _deadline_s(record, now_s=now_s)
    is_background = orphan_roles.may_be_in_background(end, now_s=now_s) and orphan_roles.has_begun_with(process, record)
    is_scheduler = orphan_roles.is_scheduler(process, end, is_main=is_main)
    must_be_asked = is_scheduler or (is_main and orphan_roles.is_to_be_asked(process, end))
    _log(process, record, is_background=is_background, must_be_asked=must_be_asked, ends_by_s=ends_by_s, now_s=now_s)
    return taken_from(
        OrphanRecord,
        process,
        record,
        record.life,
        record.stop,
        ends_by_s=ends_by_s,
        must_be_asked=must_be_asked,
        keeps_place=not is_scheduler and orphan_roles.keeps_place(end, is_main=is_main),
        is_background=is_background,
    )


def _log(
    process: Stat,
    record: Record,
    *,
    is_background: bool,
    must_be_asked: bool,
    ends_by_s: float | None,
    now_s: float,
) -> None:
    if is_background:
        log.warning(
            "pool=%s template=%s: it ended with 0 and left process %d: it goes to the background. Remove --detach, or "
            "the & of a shell, from its argv; nothing of the template is started before that process has ended",
            *record.kind,
            process.pid,
        )
        return
    end = "runs until it ends by itself"
    if ends_by_s is not None:
        end = f"ended in {max(0.0, ends_by_s - now_s):.0f} s unless it ends by itself"
    asked = "asked to stop, " if must_be_asked else ""
    log.warning("left behind pool=%s pid=%d by pid=%d: %s%s", record.pool, process.pid, record.pid, asked, end)


def _deadline_s(record: Record, *, now_s: float) -> float | None:
    """When what the worker has left is killed; ``None`` where nobody has set a deadline.

    For a worker that was asked to stop, the time began then: the control plane may rely on its end.
    """
    ends_s = lifecycle.drain_ends_s(record.life, drain_timeout_s=record.stop.drain_timeout_s, now_s=now_s)
    return ends_s if math.isfinite(ends_s) else None
