"""What people ask of hosts, as the HTTP API takes it."""

from pydantic import Field

from headway.control.http.schemas.requests import HELD_S_MAX, Seconds, Taken, Text, end_if_any_s


class ReasonBody(Taken):
    """Why somebody does what they do: whoever reads the audit log wants to know."""

    reason: Text


class KillBody(Taken):
    """Why a worker is killed, if somebody says so."""

    reason: Text | None = None


class CordonBody(ReasonBody):
    """Why a host gets nothing new, and for how long."""

    for_s: float | None = Field(default=None, gt=0, le=HELD_S_MAX)
    """Seconds from now; or say `until_s`. Without either it holds until somebody ends it."""
    until_s: Seconds | None = None
    """Unix seconds, at most 31 days ahead."""

    def end_s(self, *, now_s: float) -> float | None:
        """When the host serves again by itself. Raises ``Invalid`` where that is not ahead, or too far."""
        return end_if_any_s(self.for_s, self.until_s, now_s=now_s)
