"""Who may make which call of the gRPC server."""

from collections.abc import Mapping
from contextvars import ContextVar

from headway.control.auth.authenticator import LOCAL, Caller
from headway.store.access.credentials import Role

_AGENTS = "/headway.wire.v1.AgentService/"
ENROL = f"{_AGENTS}Enrol"

# The shared token and, on loopback without one, everybody may make every call.
RIGHTS: Mapping[str, frozenset[Role]] = {
    # A join token is in the message: who shows nothing else is let in to show that.
    ENROL: frozenset({Role.HOST, Role.JOIN}),
    f"{_AGENTS}Report": frozenset({Role.HOST}),
    f"{_AGENTS}Poll": frozenset({Role.HOST}),
    # A host sends the events of its own pools: control/ingest/host_events.py.
    "/headway.wire.v1.TelemetryService/Ingest": frozenset({Role.INGEST, Role.ADMIN, Role.HOST}),
}

NOBODY = Caller(role=Role.JOIN, name="a host without a credential")
CALLER: ContextVar[Caller] = ContextVar("CALLER", default=NOBODY)
"""Who makes the call that is being answered."""


def may_call(caller: Caller, method: str) -> bool:
    """Whether ``caller`` may make the call ``method``, by its path. Nobody may make one that has no row."""
    if caller is LOCAL:
        return True
    return method in RIGHTS and (caller.is_shared or caller.role in RIGHTS[method])
