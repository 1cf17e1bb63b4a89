"""What waits in the event log for the pipeline, and how much of it may. See docs/decisions/0013.

The bound is of amounts, not of seconds: while the pipeline is away for an hour the log takes what comes, and when it is
back, an hour behind, nobody is refused for what it has yet to read.
"""

import asyncio
import logging
import time
from dataclasses import dataclass

from headway.errors import Overloaded
from headway.store.events.event_log import EventLog, Waiting

BACKPRESSURE_FILES_MAX = 100_000  # a day at a file a second; Spark lists them in its memory
BYTES_MAX = 2_000_000_000
BACKPRESSURE_AGAIN_FRACTION = 0.9  # of a bound: from there on telemetry is taken again
POLL_S = 2.0
BACKPRESSURE_POLL_SHARE = 0.05  # of the time: a hundred thousand files take a third of a second to count

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadBound:
    """How much may wait to be read before telemetry is refused."""

    files_max: int = BACKPRESSURE_FILES_MAX
    bytes_max: int = BYTES_MAX


DEFAULT = UnreadBound()


class Backpressure:
    """The files that wait, as of the last count."""

    def __init__(self, event_log: EventLog, bound: UnreadBound) -> None:
        self._event_log = event_log
        self._bound = bound
        self._due_at_s = float("-inf")
        self.waiting = Waiting()
        self.problem: str | None = None
        """Why telemetry is refused for what waits; None while it is not."""

    async def poll(self) -> None:
        """Count again, if that is due. A log that is not there holds nothing: others say so."""
        began_s = time.monotonic()
        if began_s < self._due_at_s:
            return
        self.waiting = await asyncio.to_thread(self._event_log.waiting)
        now_s = time.monotonic()
        self._due_at_s = now_s + max(POLL_S, (now_s - began_s) / BACKPRESSURE_POLL_SHARE)
        self._judge()

    def require_room(self) -> None:
        """Raise ``Overloaded`` while too much waits."""
        if self.problem is not None:
            raise Overloaded(self.problem)

    def _judge(self) -> None:
        waiting, bound = self.waiting, self._bound
        fraction = max(waiting.files / bound.files_max, waiting.size_bytes / bound.bytes_max)
        if fraction >= 1.0:
            if self.problem is None:
                log.warning("telemetry refused: the pipeline is behind files=%d", waiting.files)
            self.problem = (
                f"{waiting.files} files with {waiting.size_bytes >> 20} MiB wait in the event log for the pipeline, "
                f"and {bound.files_max} with {bound.bytes_max >> 20} may: start `headway pipeline`, or see why it is "
                "behind; telemetry is refused until it has caught up"
            )
        elif fraction < BACKPRESSURE_AGAIN_FRACTION and self.problem is not None:
            log.info("telemetry accepted again: the pipeline has caught up files=%d", waiting.files)
            self.problem = None
