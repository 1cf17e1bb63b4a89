"""What workers have shown of their queues and slots, for the agent that takes these workers over.

A worker reports the queues that it consumes now, never those that it has lost: without this record, a restart of the
agent turns workers whose consumers were cancelled into workers that take jobs.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headway.agent.state.state_dir import StateFolder
from headway.agent.state.worker_rows import WorkerRows
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


def inability_file(folder: StateFolder) -> WorkerRows[Shown]:
    """The file of these rows."""
    return WorkerRows(folder, FILE, to_json=asdict, from_json=_from_json)


def _from_json(row: Mapping[str, Any]) -> Shown:
    inability = row["inability"]
    return Shown(
        slots_max=int(row["slots_max"]),
        had_queues=row["had_queues"] is True,
        inability=None if inability is None else Inability(inability),
    )
