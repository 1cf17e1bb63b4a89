"""What workers have shown of their queues and slots, for the agent that takes these workers over.

A worker reports the queues that it consumes now, never those that it has lost: without this record, a restart of the
agent turns workers whose consumers were cancelled into workers that take jobs.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from headway.agent.state.state_dir import StateFolder
from headway.scaling.model import Inability

FILE = "inabilities.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What one worker has shown."""

    slots_max: int
    """The most jobs that it has reported to run at once."""
    had_queues: bool
    """Whether it has reported that it consumes queues."""
    inability: Inability | None
    """Why it takes no jobs; ``None``: it can, as far as is known."""


class InabilityFile:
    """The file of these rows. It is written when they have changed, and may be seconds old."""

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder
        self._written: Mapping[str, Any] = {}

    def read(self) -> dict[str, Shown]:
        """Worker id -> what it has shown. What is not as ``keep`` writes it is left out."""
        found = {}
        for worker_id, row in (self._folder.read(FILE) or {}).items():
            with suppress(ValueError, TypeError, KeyError):
                inability = row["inability"]
                found[worker_id] = Shown(
                    slots_max=int(row["slots_max"]),
                    had_queues=row["had_queues"] is True,
                    inability=None if inability is None else Inability(inability),
                )
        return found

    def keep(self, shown: Mapping[str, Shown]) -> None:
        """Write down what these workers have shown."""
        rows = {worker_id: asdict(each) for worker_id, each in shown.items()}
        if rows == self._written:
            return
        with suppress(OSError):  # a disk that takes nothing: the next agent goes by what it sees itself
            self._folder.write(FILE, rows, is_durable=False)
            self._written = rows
