"""What an agent finds that starts where another one ended: its own records of it, and what may run beside them.

A worker is taken over where a record has it: its process, when that began, and whose it is. A process that only says it
is a worker may be one that an agent was killed before recording, or anybody's: it is counted and left alone.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace

from headway.agent import marks, procfs, records
from headway.agent.folder import WORKERS, StateFolder
from headway.agent.host_file import HostFile
from headway.agent.output import Output
from headway.agent.records import Ledger, Record, Unrecorded
from headway.agent.starts import Starts
from headway.agent.templates import uid_of

log = logging.getLogger(__name__)


def left_behind(folder: StateFolder, agent_id: str, output: Output, starts: Starts, host_file: HostFile) -> Ledger:
    """The orders, the pauses and every worker that the last agent of ``folder`` has left, running or ended since."""
    ledger, is_readable = _kept(folder)
    started = starts.read()
    recorded = list(_recorded(ledger, started))
    foreign = [each for each in recorded if not _is_its_users(each, host_file)]
    found = [each for each in recorded if each not in foreign]
    over = {left.worker_id for left in ledger.remains} | {*ledger.ended}
    seen = {each.worker_id for each in recorded} | {*started} | over
    placed = {each.worker_id: each for each in ledger.records if each.life.is_alive and not each.pid}
    marked = [
        _unrecorded(mark, placed.get(mark.worker_id))
        for mark in marks.find_marked(agent_id, output).values()
        if mark.worker_id not in seen and _is_plausible(mark, placed, output, host_file, is_readable=is_readable)
    ]
    kept = [each for each in ledger.unrecorded if procfs.is_there(each.pid, each.started_ticks)]
    unrecorded = {each.worker_id: each for each in (*marked, *map(_as_unrecorded, foreign), *kept)}
    counted = list(unrecorded.values())[: host_file.workers_max]
    for each in counted:
        log.warning(
            "no record of worker=%s pid=%d pool=%s: it takes a place, and is neither asked to stop nor replaced; "
            "see what it is, and end it if it is not wanted",
            each.worker_id,
            each.pid,
            each.pool or "unknown",
        )
    return replace(ledger, records=found, unrecorded=counted)


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


def _is_its_users(record: Record, host_file: HostFile) -> bool:
    """Whether the process that has the worker's pid is of the user that the worker was started as."""
    if not record.pid or not procfs.is_there(record.pid, record.started_ticks):
        return True  # it has none: that it ended is for whoever adopts it to say
    template = host_file.templates.get(record.template)
    started_as = uid_of(template) if record.uid is None and template is not None else record.uid
    return records.may_run_as(started_as, procfs.uid(record.pid))


def _is_plausible(
    mark: Unrecorded, placed: Iterable[str], output: Output, host_file: HostFile, *, is_readable: bool
) -> bool:
    """Whether the agent may have started it, going by what only the agent can have written.

    It is about to start whatever it starts: a place is recorded and a file for the output made before. So what has
    neither is nobody's worker, unless what was recorded is lost.
    """
    if is_readable and mark.worker_id not in placed and not output.has(mark.worker_id):
        log.warning("pid=%d bears the marks of a worker that this agent never started: it is left out", mark.pid)
        return False
    template = host_file.templates.get(mark.template)
    return template is None or records.may_run_as(uid_of(template), procfs.uid(mark.pid))


def _unrecorded(mark: Unrecorded, record: Record | None) -> Unrecorded:
    """What is known of a process that bears these marks; what a record of its place says counts more."""
    return mark if record is None else _as_unrecorded(replace(record, pid=mark.pid, started_ticks=mark.started_ticks))


def _as_unrecorded(record: Record) -> Unrecorded:
    return Unrecorded(
        worker_id=record.worker_id,
        pid=record.pid,
        started_ticks=record.started_ticks,
        pool=record.pool,
        template=record.template,
        is_burst=record.life.is_burst,
        gpus=record.gpus,
    )


def _kept(folder: StateFolder) -> tuple[Ledger, bool]:
    """What was recorded, and whether that can be read."""
    body = folder.read(WORKERS)
    if body is None:
        return records.EMPTY, False
    try:
        return records.from_json(body, boot_id=procfs.boot_id()), True
    except (ValueError, AttributeError) as error:
        log.warning("unreadable file=%s: %s; workers are taken over by the record of their starts", WORKERS, error)
        return records.EMPTY, False
