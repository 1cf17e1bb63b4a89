"""A call whose refusal waits for its turn."""

import time
from typing import Any

import grpc
import grpc.aio

from headway.control.refusal_throttle import RefusalThrottle

HELD_BACK = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
"""Whoever is answered so is refused by its own doing."""


class PacedCall:
    """The context of a call, for its servicer."""

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any], *, throttle: RefusalThrottle, who: str) -> None:
        self._context = context
        self._throttle = throttle
        self._began_s = time.monotonic()
        self.who = who
        """With whose its refusal is counted together."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing: tuple[Any, ...] = ()) -> Any:
        """End the call with ``code``; of a refusal, when the caller's earlier ones have been paid for."""
        if code in HELD_BACK:
            took_s = time.monotonic() - self._began_s
            await self._throttle.hold(self.who, took_s=took_s, port="grpc", status=code.name)
        await self._context.abort(code, details, trailing)
