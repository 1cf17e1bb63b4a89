"""What a demo needs of its jobs in their broker, whichever library they are of."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from headway.cli.demo.demo_report import JobRecord
from headway.simulate.replay import RecordedJob

SEND_AGAIN_S = 0.5
STARTS = "demo:starts"
"""Hash in the demo's broker: how often each job was begun, by the demo's workers, which no library records."""


class DemoJobs(Protocol):
    """The jobs that one demo sends. Everything is asked of the broker; nothing is remembered but what was sent."""

    def clear(self) -> None:
        """Forget what an earlier demo left in this broker, which is the demo's own."""

    @property
    def sent(self) -> int:
        """How many jobs were sent."""

    def send(self, queue: str, index: int, job: RecordedJob) -> None:
        """Enqueue ``job``; while the broker cannot be reached, try again until the demo ends. Any thread may."""

    def waiting(self) -> int | None:
        """How many jobs wait, None while the broker cannot be reached."""

    def ended(self) -> int | None:
        """How many jobs have ended, well or not; None while the broker cannot be reached."""

    def records(self) -> list[JobRecord]:
        """Every job that was sent, as it is now; one that is not known, or cannot be asked for, is ``gone``."""

    def close(self) -> None:
        """Let the broker go."""


OpenJobs = Callable[[str, Sequence[str], Callable[[float], bool], Mapping[str, str]], DemoJobs]
"""Given the broker's URL, the names of the queues, a wait that says whether the demo ends, and the settings with which
the control plane is reached.
"""
