"""The file of what runs and what is to run, written whole at each change, and again while the disk refuses it.

A disk that takes nothing more stops no worker: what could not be written shows by its marks that it is there. But an
agent after this one would follow the assignment from before, so it is tried again, and logged once.
"""

import logging
from collections.abc import Callable

from headway.agent.state.state_dir import WORKERS, StateFolder
from headway.agent.workers import worker_record
from headway.agent.workers.worker_record import Ledger
from headway.local import procfs

WRITE_AGAIN_S = 5.0

log = logging.getLogger(__name__)


class WorkerJournal:
    """Where an agent writes its ledger down for the next one of the folder."""

    def __init__(self, folder: StateFolder, *, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._refused_at_s: float | None = None
        self.error_number: int | None = None
        """The errno with which the disk has refused what there is to write; ``None``: it is written."""

    @property
    def is_behind(self) -> bool:
        """Whether it is time to write again what the disk has refused."""
        return self._refused_at_s is not None and self._clock() >= self._refused_at_s + WRITE_AGAIN_S

    def write(self, ledger: Ledger, *, is_durable: bool) -> None:
        """Write the ledger down. Processes do not survive the machine, so only orders need be durable."""
        was_refused = self._refused_at_s is not None
        file = self._folder.root / WORKERS
        try:
            self._folder.write(
                WORKERS, worker_record.to_json(ledger, boot_id=procfs.boot_id()), is_durable=is_durable or was_refused
            )
        except OSError as error:
            self._refused_at_s = self._clock()
            self.error_number = error.errno or 0
            if not was_refused:
                log.error("not written file=%s: %s; tried again", file, error)  # noqa: TRY400 - its trace adds nothing
            return
        self._refused_at_s = self.error_number = None
        if was_refused:
            log.info("written again file=%s", file)
