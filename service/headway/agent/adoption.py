"""What an agent finds that starts where another one ended: the record that was kept, and workers by their marks."""

import logging
from dataclasses import replace

from headway.agent import processes, procfs, records
from headway.agent.folder import StateFolder, read_json
from headway.agent.output import Output
from headway.agent.records import Ledger, Record, unrecorded

log = logging.getLogger(__name__)


def left_behind(folder: StateFolder, agent_id: str) -> Ledger:
    """The orders, the pauses and every worker that the last agent of ``folder`` has left, running or ended since."""
    ledger = _kept(folder)
    is_kept, output = ledger is not records.EMPTY, Output(folder.logs)
    marked = processes.find_marked(agent_id, folder.logs)
    found: list[Record] = []
    for record in ledger.records:
        mark = marked.pop(record.worker_id, None)
        if record.pid or not record.life.is_alive:
            found.append(record)
        elif mark is not None:  # the agent died before it could write down what it had started
            found.append(replace(record, pid=mark.pid, started_ticks=mark.started_ticks))
    over = {*ledger.ended, *(left.worker_id for left in ledger.remains)}
    for mark in marked.values():
        # What a worker has left that has ended is known, and no worker. Nor is it if its log was cleared away.
        if mark.worker_id in over or (is_kept and not output.log(mark.worker_id).exists()):
            continue
        lone = unrecorded(
            mark.worker_id, pid=mark.pid, started_ticks=mark.started_ticks, pool=mark.pool, started_as=mark.started_as
        )
        found.append(replace(lone, gpus=mark.gpus))
    return replace(ledger, records=found)


def _kept(folder: StateFolder) -> Ledger:
    body = read_json(folder.workers)
    if body is None:
        return records.EMPTY
    try:
        return records.from_json(body, boot_id=procfs.boot_id())
    except ValueError as error:
        log.warning("unreadable file=%s: %s; its workers are looked for by marks", folder.workers, error)
        return records.EMPTY
