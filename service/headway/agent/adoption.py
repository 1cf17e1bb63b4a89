"""What an agent finds that starts where another one ended: the record that was kept, and workers by their marks."""

import logging
from dataclasses import replace

from headway.agent import processes, procfs, records
from headway.agent.folder import StateFolder, read_json
from headway.agent.records import Ledger, Record, unrecorded

log = logging.getLogger(__name__)


def left_behind(folder: StateFolder, agent_id: str) -> Ledger:
    """The orders, the pauses and every worker that the last agent of ``folder`` has left, running or ended since."""
    ledger = _kept(folder)
    marked = processes.find_marked(agent_id, folder.logs)
    found: list[Record] = []
    for record in ledger.records:
        mark = marked.pop(record.worker_id, None)
        if record.pid or not record.life.is_alive:
            found.append(record)
        elif mark is not None:  # the agent died before it could write down what it had started
            found.append(replace(record, pid=mark.pid, started_ticks=mark.started_ticks))
    for left in ledger.remains:  # of a worker that has ended: known, and no worker
        marked.pop(left.worker_id, None)
    for mark in marked.values():
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
