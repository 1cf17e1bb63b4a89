"""What an agent finds that starts where another one ended: its own records of it, and what may run beside them.

A worker is taken over where a record has it: its process, when that began, and whose it is. An agent that was killed as
it started a worker has recorded its place alone: the process is the one that prints to the file that was made for it. A
process with marks alone may be anybody's: it is counted and left alone.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from headway.agent.config.host_file import HostFile
from headway.agent.config.templates import uid_of
from headway.agent.state.state_dir import WORKERS, StateFolder
from headway.agent.workers import worker_marks, worker_record
from headway.agent.workers.start_log import StartLog
from headway.agent.workers.worker_logs import WorkerLogs
from headway.agent.workers.worker_record import Ledger, Record, Unrecorded
from headway.local import procfs
from headway.scaling.fields import taken_from

BEGUN_WITHIN_S = 30.0  # from recording a place to its process, with hundreds before it and a machine that is busy

log = logging.getLogger(__name__)


def left_behind(
    folder: StateFolder, agent_id: str, output: WorkerLogs, starts: StartLog, host_file: HostFile
) -> Ledger:
    """The orders, the pauses and every worker that the last agent of ``folder`` has left, running or ended since."""
    ledger, is_readable = _kept(folder)
    started = starts.read()
    recorded = list(_recorded(ledger, started))
    foreign = [each for each in recorded if not _is_its_users(each, host_file)]
    found = [each for each in recorded if each not in foreign]
    over = {left.worker_id for left in ledger.remains} | {*ledger.ended}
    # An agent is about to start whatever it starts: a place is recorded and a file for the output made before. What has
    # neither is nobody's worker, unless what was recorded is lost.
    seen = {each.worker_id for each in recorded} | {*started} | over
    placed = {each.worker_id: each for each in ledger.records if each.life.is_alive and not each.pid}
    marked = {key: leaders for key, leaders in worker_marks.find_marked(agent_id, output).items() if key not in seen}
    begun = {
        worker_id: worker
        for worker_id, leaders in marked.items()
        if worker_id in placed and (worker := _begun(placed[worker_id], leaders, output)) is not None
    }
    unclear = {worker_id: leaders[0] for worker_id, leaders in marked.items() if worker_id not in begun}
    ours = {key: mark for key, mark in unclear.items() if not is_readable or key in placed or output.has(key)}
    _log_strangers([mark.pid for key, mark in unclear.items() if key not in ours])
    unknown = [_unrecorded(mark, placed.get(key)) for key, mark in ours.items() if _is_its_templates(mark, host_file)]
    kept = [each for each in ledger.unrecorded if procfs.is_there(each.pid, each.started_ticks)]
    unrecorded = {each.worker_id: each for each in (*unknown, *map(_as_unrecorded, foreign), *kept)}
    counted = list(unrecorded.values())[: host_file.workers_max]
    _log_unrecorded(counted)
    return replace(ledger, records=[*found, *begun.values()], unrecorded=counted)


def _log_strangers(pids: Sequence[int]) -> None:
    if pids:
        log.warning(
            "processes that bear the marks of workers that this agent never started: %d, as pid=%d: they are left out",
            len(pids),
            pids[0],
        )


def _log_unrecorded(counted: Iterable[Unrecorded]) -> None:
    for each in counted:
        log.warning(
            "no record of worker=%s pid=%d pool=%s: it takes a place, and is neither asked to stop nor replaced; "
            "see what it is, and end it if it is not wanted",
            each.worker_id,
            each.pid,
            each.pool or "unknown",
        )


def _recorded(ledger: Ledger, started: dict[str, Record]) -> Iterator[Record]:
    """The workers that were started, as the newer of the two records has them."""
    for record in ledger.records:
        start = started.pop(record.worker_id, None)
        if record.pid or not record.life.is_alive:
            yield record
        elif start is not None:  # the agent died before it could write it down in the ledger, too
            yield replace(record, pid=start.pid, started_ticks=start.started_ticks, uid=start.uid)
    over = {*ledger.ended, *(left.worker_id for left in ledger.remains)}
    for worker_id, start in started.items():
        if worker_id not in over and procfs.is_there(start.pid, start.started_ticks):
            yield start  # the ledger is lost, or older than a disk that took no more


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


def _as_unrecorded(record: Record) -> Unrecorded:
    return taken_from(Unrecorded, record, record.life)


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
