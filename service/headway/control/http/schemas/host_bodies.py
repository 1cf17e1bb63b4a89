"""What people ask of hosts, as the HTTP API takes it."""

from headway.control.http.schemas.requests import Taken, Text


class ReasonBody(Taken):
    """Why somebody does what they do: whoever reads the audit log wants to know."""

    reason: Text
