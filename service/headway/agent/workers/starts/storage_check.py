"""Whether the agent can write down what it starts, and what workers print: both are on disks that fill up.

No worker is started without a record: an agent after this one would not know it for its own, and could neither stop nor
replace it. What runs already goes on, and is asked to stop when it shall.
"""

import logging
import os
from collections.abc import Callable, Mapping

from headway.agent.state import folder_probe
from headway.agent.state.state_dir import StateFolder
from headway.agent.workers.journal import WorkerJournal
from headway.local.throttle import Throttle
from headway.scaling.model import HostProblem, HostProblemKind

CHECK_EVERY_S = 5.0
NAMES: Mapping[HostProblemKind, str] = {
    HostProblemKind.STATE_FOLDER: "state folder",
    HostProblemKind.LOG_FOLDER: "log folder",
}

log = logging.getLogger(__name__)


class StorageCheck:
    """What the state folder and the folder of workers' logs refuse."""

    def __init__(self, folder: StateFolder, logs: int, journal: WorkerJournal, *, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._logs = logs
        """The open folder of what workers print."""
        self._journal = journal
        self._checks = Throttle(CHECK_EVERY_S, clock=clock)
        self._refused: dict[HostProblemKind, int] = {}
        self._logged: dict[HostProblemKind, int] = {}
        self._has_no_log = False
        """Whether no log could be made since the last check."""

    @property
    def problems(self) -> tuple[HostProblem, ...]:
        """What is refused at present."""
        found = dict(self._refused)
        if self._journal.error_number is not None:
            found[HostProblemKind.STATE_FOLDER] = self._journal.error_number
        return tuple(HostProblem(kind=kind, error_number=number) for kind, number in sorted(found.items()))

    @property
    def allows_starts(self) -> bool:
        """Whether a worker that is started now can be recorded, and has a file to print to."""
        is_recorded = all(each.kind is not HostProblemKind.STATE_FOLDER for each in self.problems)
        return is_recorded and not self._has_no_log

    def scan(self) -> None:
        """Try the folders, where it is time to and something speaks for a refusal."""
        if self._checks.due() is not None:
            self._has_no_log = False
            with self._folder.opened() as state:
                self._try(HostProblemKind.STATE_FOLDER, state)
            self._try(HostProblemKind.LOG_FOLDER, self._logs)
        self._log()

    def note_no_log(self, error: OSError) -> None:
        """No log could be made: no worker is started until the next check."""
        self._has_no_log = True
        self._refused[HostProblemKind.LOG_FOLDER] = error.errno or 0
        self._log()

    def _try(self, kind: HostProblemKind, folder: int) -> None:
        refused = None
        if kind in self._refused or folder_probe.may_refuse(folder):
            refused = folder_probe.refusal(folder)
        if refused is None:
            self._refused.pop(kind, None)
        else:
            self._refused[kind] = refused

    def _log(self) -> None:
        found = {each.kind: each.error_number for each in self.problems}
        for kind, number in found.items():
            if kind not in self._logged:
                log.error("the %s takes nothing more: %s; tried again", NAMES[kind], os.strerror(number))
        for kind in self._logged.keys() - found.keys():
            log.info("the %s takes what is written again", NAMES[kind])
        self._logged = found
