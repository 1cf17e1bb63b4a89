"""What an agent finds that starts where another one ended: its own records of it, and what may run beside them.

A worker is taken over where a record has it: its process, when that began, and whose it is. An agent that was killed as
it started a worker has recorded its place alone: the process is the one that prints to the file that was made for it. A
process with marks alone may be anybody's: it is counted and left alone.

Pid and start name a process within one boot clock, and the last agent may have counted by another one. Records come
with their starts moved to this agent's clock. Where a start does not fit, the process with that pid is the worker if it
runs as the user of the record and prints to the worker's own file.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from headway.agent.config.host_file import HostFile
from headway.agent.config.templates import uid_of
from headway.agent.state.state_dir import WORKERS, StateFolder
from headway.agent.workers import worker_marks, worker_record
from headway.agent.workers.starts.start_log import StartLog
from headway.agent.workers.worker_logs import WorkerLogs
from headway.agent.workers.worker_record import Ledger, OrphanRecord, Record, Unrecorded
from headway.local import procfs
from headway.scaling.fields import taken_from

BEGUN_WITHIN_S = 30.0  # from recording a place to its process, with hundreds before it and a machine that is busy

log = logging.getLogger(__name__)

_Row = TypeVar("_Row", Record, OrphanRecord, Unrecorded)
_Other = TypeVar("_Other", OrphanRecord, Unrecorded)


def left_behind(
    folder: StateFolder, agent_id: str, output: WorkerLogs, starts: StartLog, host_file: HostFile
) -> Ledger:
    """The orders, the pauses and every worker that the last agent of ``folder`` has left, running or ended since."""
    ledger, is_readable = _kept(folder)
    started = starts.read()
    known = _RecordedProcesses(agent_id, output)
    rows = list(_recorded(ledger, started, known))
    recorded = [each for each in rows if isinstance(each, Record)]
    foreign = [each for each in recorded if not _is_its_users(each, host_file)]
    found = [each for each in recorded if each not in foreign]
    left = [known.other(each) for each in ledger.remains]
    over = {left.worker_id for left in ledger.remains} | {*ledger.ended}
    # An agent is about to start whatever it starts: a place is recorded and a file for the output made before. What has
    # neither is nobody's worker, unless what was recorded is lost.
    seen = {each.worker_id for each in rows} | {*started} | over
    placed = {each.worker_id: each for each in ledger.records if each.life.is_alive and not each.pid}
    marked = {key: leaders for key, leaders in worker_marks.find_marked(agent_id, output).items() if key not in seen}
    begun = {
        worker_id: worker
        for worker_id, leaders in marked.items()
        if worker_id in placed and (worker := _begun(placed[worker_id], leaders, output)) is not None
    }
    unclear = {worker_id: leaders[0] for worker_id, leaders in marked.items() if worker_id not in begun}
    ours = {key: mark for key, mark in unclear.items() if not is_readable or key in placed or output.has(key)}
    if strangers := [mark.pid for key, mark in unclear.items() if key not in ours]:
        log.warning(
            "processes that bear the marks of workers that this agent never started: %d, as pid=%d: they are left out",
            len(strangers),
            strangers[0],
        )
    unknown = [_unrecorded(mark, placed.get(key)) for key, mark in ours.items() if _is_its_templates(mark, host_file)]
    kept = [each for each in map(known.other, ledger.unrecorded) if each is not None]
    doubtful = [each for each in (*rows, *left) if isinstance(each, Unrecorded)]
    unrecorded = {each.worker_id: each for each in (*map(_as_unrecorded, foreign), *doubtful, *unknown, *kept)}
    counted = list(unrecorded.values())[: host_file.workers_max]
    _log_unrecorded(counted, more=len(unrecorded) - len(counted))
    remains = [each for each in left if isinstance(each, OrphanRecord)]
    return replace(ledger, records=[*found, *begun.values()], remains=remains, unrecorded=counted)


def _log_unrecorded(counted: Iterable[Unrecorded], *, more: int) -> None:
    for each in counted:
        log.warning(
            "no record of worker=%s pid=%d pool=%s: it takes a place, and is neither asked to stop nor replaced; "
            "see what it is, and end it if it is not wanted",
            each.worker_id,
            each.pid,
            each.pool or "unknown",
        )
    if more:
        log.warning("no record of %d more: they are not counted, as a host has no more places", more)


def _recorded(ledger: Ledger, started: dict[str, Record], known: "_RecordedProcesses") -> Iterator[Record | Unrecorded]:
    """The workers that were started, as the newer of the two records has them, and what may be one of them."""
    for record in ledger.records:
        start = started.pop(record.worker_id, None)
        if not record.life.is_alive:
            yield record
        elif record.pid:
            yield known.worker(record) or record
        elif start is not None:  # the agent died before it could write it down in the ledger, too
            begun = replace(record, pid=start.pid, started_ticks=start.started_ticks, uid=start.uid)
            yield known.worker(begun) or begun
    over = {*ledger.ended, *(left.worker_id for left in ledger.remains)}
    for worker_id, start in started.items():
        if worker_id not in over and (found := known.worker(start)) is not None:
            yield found  # the ledger is lost, or older than a disk that took no more


class _RecordedProcesses:
    """The processes that the records of one agent mean, by this agent's boot clock."""

    def __init__(self, agent_id: str, output: WorkerLogs) -> None:
        self._agent_id = agent_id
        self._output = output

    def worker(self, record: Record) -> Record | Unrecorded | None:
        """The worker, or what only its marks suggest to be it; ``None`` if neither runs."""
        return _by_start(record) or self._by_output(record) or self._by_marks(record, started_as=record.uid)

    def other(self, row: _Other) -> _Other | Unrecorded | None:
        """What outlived its worker, or was counted and left alone, if it still runs.

        What only its marks suggest to be the one that outlived its worker is not ended any more.
        """
        return _by_start(row) or self._by_marks(row)

    def _by_output(self, record: Record) -> Record | None:
        """The process that has pid, user and output of the record.

        A process that got the pid later has that file open only if the worker itself started the process.
        """
        process = procfs.stat(record.pid)
        if process is None or process.is_over or process.session != process.pid:
            return None
        if record.uid is None or procfs.uid(record.pid) != record.uid:
            return None
        if not worker_marks.prints_to(record.pid, record.worker_id, self._output):
            return None
        apart_s = (process.started_ticks - record.started_ticks) / procfs.TICKS_PER_S
        log.warning(
            "took over pool=%s pid=%d by its user and its log: its record says that it started %.2f s %s",
            record.pool,
            record.pid,
            abs(apart_s),
            "earlier" if apart_s > 0 else "later",
        )
        return worker_record.moved(record, apart_s)  # its start by two clocks says how far these are apart

    def _by_marks(self, row: Record | OrphanRecord | Unrecorded, *, started_as: int | None = None) -> Unrecorded | None:
        process = procfs.stat(row.pid)
        if process is None or process.is_over or not worker_record.may_run_as(started_as, procfs.uid(row.pid)):
            return None
        worker_id, _ = worker_marks.marked(row.pid, self._agent_id, self._output)
        if worker_id != row.worker_id:
            return None
        return replace(_as_unrecorded(row), started_ticks=process.started_ticks)


def _by_start(row: _Row) -> _Row | None:
    """The row with the start that this agent reads, if a process with that pid and that start runs."""
    process = procfs.stat(row.pid)
    if process is None or process.is_over or abs(process.started_ticks - row.started_ticks) > procfs.TICKS_APART_MAX:
        return None
    return replace(row, started_ticks=process.started_ticks)


def _begun(place: Record, leaders: Iterable[Unrecorded], output: WorkerLogs) -> Record | None:
    """The worker whose place was recorded and whose process was not; ``None`` where none, or more than one, may be it.

    Its process has open what the agent made for it, and what its user cannot open: nobody else has it but who was given
    it by the worker, or took it from it, and whoever can do that could as well be the worker.
    """
    fitting = [
        each
        for each in leaders
        if _was_begun_for(place, each) and worker_marks.prints_to(each.pid, place.worker_id, output)
    ]
    children = {child.pid for each in fitting for child in procfs.descendants(each.pid)}
    mains = [each for each in fitting if each.pid not in children]
    if len(mains) != 1:
        return None
    log.info(
        "took over pool=%s pid=%d by its place: the last agent was ended as it started it", place.pool, mains[0].pid
    )
    return replace(place, pid=mains[0].pid, started_ticks=mains[0].started_ticks)


def _was_begun_for(place: Record, process: Unrecorded) -> bool:
    """Whether it is of the place's user, and began when a process of that place must have."""
    began_after_s = process.started_ticks / procfs.TICKS_PER_S - place.life.started_at_s
    is_in_time = -2 / procfs.TICKS_PER_S <= began_after_s <= BEGUN_WITHIN_S  # ticks are cut off
    return is_in_time and place.uid is not None and procfs.uid(process.pid) == place.uid


def _is_its_users(record: Record, host_file: HostFile) -> bool:
    """Whether the process that has the worker's pid is of the user that the worker was started as."""
    if not record.pid or not procfs.is_there(record.pid, record.started_ticks):
        return True  # it has none: whoever adopts it reports its end
    template = host_file.templates.get(record.template)
    started_as = uid_of(template) if record.uid is None and template is not None else record.uid
    return worker_record.may_run_as(started_as, procfs.uid(record.pid))


def _is_its_templates(mark: Unrecorded, host_file: HostFile) -> bool:
    """Whether the process is of the user that the template which it names is run as."""
    template = host_file.templates.get(mark.template)
    return template is None or worker_record.may_run_as(uid_of(template), procfs.uid(mark.pid))


def _unrecorded(mark: Unrecorded, record: Record | None) -> Unrecorded:
    """What is known of a process that bears these marks; a record of its place counts more."""
    return mark if record is None else _as_unrecorded(replace(record, pid=mark.pid, started_ticks=mark.started_ticks))


def _as_unrecorded(row: Record | OrphanRecord | Unrecorded) -> Unrecorded:
    return taken_from(Unrecorded, row, row.life) if isinstance(row, Record) else taken_from(Unrecorded, row)


def _kept(folder: StateFolder) -> tuple[Ledger, bool]:
    """What was recorded, and whether that can be read."""
    body = folder.read(WORKERS)
    if body is None:
        return worker_record.EMPTY, False
    try:
        return worker_record.from_json(body, boot_id=procfs.boot_id()), True
    except (ValueError, AttributeError) as error:
        log.warning("unreadable file=%s: %s; workers are taken over by the record of their starts", WORKERS, error)
        return worker_record.EMPTY, False
