"""Who makes a call of the gRPC server, from where, and whether that may."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import unquote

import grpc.aio

from headway.control.auth.authenticator import LOCAL, Caller
from headway.control.auth.failed_sign_ins import address_of
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


def address_of_call(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """The address of whoever makes a call: gRPC writes ipv4:127.0.0.1:1234 and ipv6:%5B::1%5D:1234."""
    place = unquote(context.peer() or "").partition(":")[2].rpartition(":")[0]
    return address_of(place.strip("[]"))
