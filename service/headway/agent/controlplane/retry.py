"""How long the agent waits before it asks the control plane again, and what it logs of that."""

import logging
import random

from headway.errors import HeadwayError, NotFound, Refused, Unavailable
from headway.local.backoff import DoublingPause

PAUSE = DoublingPause(0.2, 4.0)  # with as much until the connection is tried anew, all are back within ten seconds
# What got no answer in time may have met a flood, which whoever asks again at once makes worse. With these pauses a
# host asks no more often than when all is well, and still twice within a lease.
UNANSWERED_RETRY_S = 8.0
REFUSED_RETRY_S = 30.0  # what only a person can cure is not asked for more often

log = logging.getLogger(__name__)


class Unanswered(Unavailable):
    """No answer came in time."""


class RetryState:
    """How one kind of call goes, logged on state change."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._failures = 0
        self._failed_as: type[HeadwayError] | None = None

    def succeeded(self) -> None:
        """Log the recovery, if it failed before."""
        if self._failed_as is not None:
            log.info("%s: the control plane answers again", self.name)
        self._failures, self._failed_as = 0, None

    def failed(self, error: HeadwayError) -> float:
        """How long to wait before the next try."""
        if self._failed_as is not type(error):
            log.warning("%s: %s; workers run on as they are", self.name, error)
        self._failed_as = type(error)
        self._failures += 1
        if isinstance(error, Refused) and not isinstance(error, NotFound):
            return REFUSED_RETRY_S * random.uniform(0.8, 1.2)  # noqa: S311 - no secret
        if isinstance(error, Unanswered):
            return random.uniform(0.0, UNANSWERED_RETRY_S)  # noqa: S311 - no secret
        # Full jitter: agents that were cut off together do not come back together.
        return random.uniform(0.0, PAUSE.after_s(self._failures))  # noqa: S311
