"""What people ask of hosts, as the HTTP API takes it."""

from headway.control.http.schemas.requests import Held, Taken, Text


class ReasonBody(Taken):
    """Why somebody does what they do: whoever reads the audit log wants to know."""

    reason: Text


class KillBody(Taken):
    """Why a worker is killed, if somebody says so."""

    reason: Text | None = None


class CordonBody(ReasonBody, Held):
    """Why a host gets nothing new, and for how long."""
