"""A line for each worker that was started, written at once: what the file of all workers records only a moment later.

An agent that is killed between the two has a record of what it started all the same, and so has one that cannot read
the other file. It is the same record.
"""

import json
import os
from collections.abc import Iterable

from headway.agent.state.state_dir import StateFolder
from headway.agent.workers import worker_record
from headway.agent.workers.worker_record import Record
from headway.errors import Invalid
from headway.local import procfs

FILE = "starts.jsonl"
START_LOG_LINES_MAX = 4096  # with those that ended; then it is written anew


class StartLog:
    """The starts of one agent's workers."""

    def __init__(self, folder: StateFolder, *, boot_id: str) -> None:
        self._folder = folder
        self._boot_id = boot_id
        self._lines = 0

    @property
    def is_long(self) -> bool:
        """Whether it is time to write it anew."""
        return self._lines >= START_LOG_LINES_MAX

    def note(self, record: Record) -> None:
        """Add a worker whose process is there. Raises ``OSError``."""
        self._folder.append(FILE, self._line(record))
        self._lines += 1

    def renew(self, held: Iterable[Record]) -> None:
        """Leave none but these workers in it. Raises ``OSError``."""
        lines = [self._line(record) for record in held if record.pid]
        self._folder.replace(FILE, "".join(lines), is_durable=False)
        self._lines = 0

    def read(self) -> dict[str, Record]:
        """Worker id -> the record of its start, of this boot. What is no whole line of this version is left out."""
        found: dict[str, Record] = {}
        try:
            lines = self._folder.text(FILE).splitlines()
        except (OSError, ValueError):
            return {}
        for line in lines:
            try:
                body = json.loads(line)
                record = worker_record.record_of(body, body["worker"])
            except (ValueError, TypeError, KeyError, RecursionError, Invalid):
                continue
            moved_s = procfs.moved_s(str(body.get("boot_id")), self._boot_id)
            if moved_s is not None:
                found[record.worker_id] = worker_record.moved(record, moved_s)
        return found

    def _line(self, record: Record) -> str:
        body = {"boot_id": self._boot_id, worker_record.DEADLINES: True, "worker": worker_record.row_of(record)}
        return json.dumps(body, separators=(",", ":")) + os.linesep
