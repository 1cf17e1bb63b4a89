"""The one table between Headway's errors and gRPC's statuses, for those who answer calls and those who make them."""

import grpc

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

STATUSES: dict[type[HeadwayError], grpc.StatusCode] = {
    Refused: grpc.StatusCode.INVALID_ARGUMENT,
    Invalid: grpc.StatusCode.INVALID_ARGUMENT,
    NotFound: grpc.StatusCode.NOT_FOUND,
    Conflict: grpc.StatusCode.ABORTED,
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    Forbidden: grpc.StatusCode.PERMISSION_DENIED,
    Misconfigured: grpc.StatusCode.FAILED_PRECONDITION,
    Overloaded: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
}
ERRORS = {status: kind for kind, status in STATUSES.items()} | {grpc.StatusCode.UNIMPLEMENTED: Misconfigured}
"""What a client makes of a status; of the two that share one it is ``Invalid``. Others are for the client to judge."""
