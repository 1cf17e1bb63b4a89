"""Errors as gRPC answers them, by the table of ``headway.wire.statuses``. No servicer chooses a status."""

import logging
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

import grpc
import grpc.aio

from headway.errors import HeadwayError
from headway.local.throttle import Throttle
from headway.wire.channel import ANSWERED
from headway.wire.statuses import STATUSES

log = logging.getLogger(__name__)

DETAILS_CHARS_MAX = 1_000  # details travel in a header, of which clients take 8 KiB by default

_failures = Throttle()

_Servicer = TypeVar("_Servicer")
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
# The generated classes want a context that is at once of grpc and of grpc.aio; nothing is, hence Any.
_Method = Callable[[_Servicer, _Request, Any], Awaitable[_Response]]


def status_of(error: HeadwayError) -> grpc.StatusCode:
    """The status that shows a client what it can do about ``error``."""
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), grpc.StatusCode.INTERNAL)


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
            if (left_out := _failures.due(method.__qualname__)) is not None:
                log.exception("rpc failed method=%s left_out=%d", method.__qualname__, left_out)
            await context.abort(
                grpc.StatusCode.INTERNAL, "an error of the control plane's own; its log has more", (ANSWERED,)
            )
        raise AssertionError("abort never returns")

    return answered
