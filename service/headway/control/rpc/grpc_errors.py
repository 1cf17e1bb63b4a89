"""The one table from Headway's errors to gRPC's statuses. No servicer chooses a status."""

import logging
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

import grpc
import grpc.aio

from headway.control.log_throttle import LogThrottle
from headway.errors import (
    Conflict,
    Forbidden,
    HeadwayError,
    Invalid,
    Misconfigured,
    NotFound,
    Overloaded,
    Refused,
    Unauthenticated,
    Unavailable,
)
from headway.wire.channel import ANSWERED

log = logging.getLogger(__name__)

STATUSES: dict[type[HeadwayError], grpc.StatusCode] = {
    Invalid: grpc.StatusCode.INVALID_ARGUMENT,
    NotFound: grpc.StatusCode.NOT_FOUND,
    Conflict: grpc.StatusCode.ABORTED,
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    Forbidden: grpc.StatusCode.PERMISSION_DENIED,
    Misconfigured: grpc.StatusCode.FAILED_PRECONDITION,
    Refused: grpc.StatusCode.INVALID_ARGUMENT,
    Overloaded: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
}
DETAILS_CHARS_MAX = 1_000  # details travel in a header, of which clients take 8 KiB by default

_log_throttle = LogThrottle()

_Servicer = TypeVar("_Servicer")
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
# The generated classes want a context that is at once of grpc and of grpc.aio; nothing is, hence Any.
_Method = Callable[[_Servicer, _Request, Any], Awaitable[_Response]]


def status_of(error: HeadwayError) -> grpc.StatusCode:
    """The status that shows a client what it can do about ``error``."""
    for kind in type(error).__mro__:
        if kind in STATUSES:
            return STATUSES[kind]
    return grpc.StatusCode.INTERNAL


def with_status(method: _Method[_Servicer, _Request, _Response]) -> _Method[_Servicer, _Request, _Response]:
    """``method`` of a servicer, its errors answered as statuses.

    An unexpected exception is a line in our log and ``INTERNAL`` to the client, who learns nothing of our insides.
    """

    @wraps(method)
    async def answered(self: _Servicer, request: _Request, context: Any) -> _Response:
        try:
            return await method(self, request, context)
        except HeadwayError as error:
            details = str(error)
            if len(details) > DETAILS_CHARS_MAX:
                details = details[:DETAILS_CHARS_MAX] + "…"
            await context.abort(status_of(error), details, (ANSWERED,))
        except grpc.aio.AbortError:
            raise
        except Exception:
            # A trace a minute shows what is wrong; whoever can bring it out shall not fill the disk with it.
            if (left_out := _log_throttle.due(method.__qualname__)) is not None:
                log.exception("rpc failed method=%s left_out=%d", method.__qualname__, left_out)
            await context.abort(
                grpc.StatusCode.INTERNAL, "an error of the control plane's own; its log has more", (ANSWERED,)
            )
        raise AssertionError("abort never returns")

    return answered
