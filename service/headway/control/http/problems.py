"""Errors as the HTTP API returns them: problem details (RFC 9457), with statuses from one table and nowhere else."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route

from headway.errors import (
    Conflict,
    Forbidden,
    HeadwayError,
    Invalid,
    NotFound,
    Overloaded,
    Refused,
    Unauthenticated,
    Unavailable,
    printable,
)
from headway.store.pools.versions import StaleVersion, VersionUnstated

_PARAMETER = re.compile(r"\{[^}]*\}")
MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 2


class TooLarge(Refused):
    """The body is larger than this path takes."""


STATUSES: Mapping[type[HeadwayError], HTTPStatus] = {
    Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    NotFound: HTTPStatus.NOT_FOUND,
    StaleVersion: HTTPStatus.PRECONDITION_FAILED,
    VersionUnstated: HTTPStatus.PRECONDITION_REQUIRED,
    Conflict: HTTPStatus.CONFLICT,
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    Forbidden: HTTPStatus.FORBIDDEN,
    TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Refused: HTTPStatus.BAD_REQUEST,
    Overloaded: HTTPStatus.TOO_MANY_REQUESTS,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    HeadwayError: HTTPStatus.INTERNAL_SERVER_ERROR,
}

HEADERS: Mapping[HTTPStatus, Mapping[str, str]] = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": 'Bearer realm="headway"'},
    HTTPStatus.TOO_MANY_REQUESTS: {"Retry-After": str(RETRY_AFTER_S)},
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": str(RETRY_AFTER_S)},
}


class Problem(BaseModel):
    """What went wrong, as problem details of RFC 9457."""

    type: str = Field(default="about:blank", description="Always about:blank: the status says what kind it is.")
    title: str = Field(description="The status in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="One sentence: what, where, and what to do.")
    breaches: list[str] = Field(default=[], description="Every rule that the request breaks, one sentence each.")


def status_of(error: HeadwayError | type[HeadwayError]) -> HTTPStatus:
    """The status of an error: its own, else that of the nearest error above it in the tree."""
    kind = error if isinstance(error, type) else type(error)
    return next(STATUSES[each] for each in kind.__mro__ if each in STATUSES)


def problem_response(error: HeadwayError) -> Response:
    """The answer that reports ``error``."""
    breaches = list(error.breaches) if isinstance(error, Invalid) else []
    return _response(status_of(error), detail=str(error), breaches=breaches)


def declared(*errors: type[HeadwayError]) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of an operation that may answer with these errors, beside those that any may answer with."""
    by_status: dict[HTTPStatus, list[str]] = {}
    for error in (*errors, Unauthenticated, Forbidden, Unavailable, HeadwayError):
        by_status.setdefault(status_of(error), []).append((error.__doc__ or "").split("\n")[0])
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        int(status): {"description": " Or: ".join(sentences), "content": {MEDIA_TYPE: schema}}
        for status, sentences in by_status.items()
    }


def install(app: FastAPI) -> None:
    """Make ``app`` return every error as a problem."""
    app.add_exception_handler(HeadwayError, _headway_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(Exception, _bug)


async def _headway_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HeadwayError)
    return problem_response(error)


async def _validation_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(Invalid(*breaches_of(error.errors())))


def breaches_of(errors: Any) -> list[str]:
    """One sentence for each of Pydantic's errors: where, and what it expects."""
    return [f"{'.'.join(str(part) for part in each['loc']) or 'body'}: {each['msg']}" for each in errors]


async def _http_exception(request: Request, error: Exception) -> Response:
    # The framework's own: an unknown path, or a path that does not take this method.
    assert isinstance(error, HTTPException)
    detail = {
        HTTPStatus.NOT_FOUND: nothing_at(request.url.path),
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.url.path} does not take {request.method}",
    }.get(HTTPStatus(error.status_code), str(error.detail))
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(sorted(_methods_at(request))) or headers.get("Allow", "")
    return _response(HTTPStatus(error.status_code), detail=detail, headers=headers)


def nothing_at(path: str) -> str:
    """What is said of a path that no operation has."""
    return f"there is nothing at {path}: the API is under /v1, see /v1/openapi.json"


def _methods_at(request: Request) -> set[str]:
    """Every method that what is at the path takes. The framework names those of the first operation there.

    Of two things at one path it is the one whose template says more of it: at `/v1/queues/x/metrics` the metrics of
    `x`, though DELETE there forgets a queue that is named `x/metrics`.
    """
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    there = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    template = max((route.path for route in there), key=lambda path: len(_PARAMETER.sub("", path)), default="")
    return {method for route in there if route.path == template for method in route.methods or ()}


async def _bug(request: Request, _error: Exception) -> Response:
    # The framework raises it again once this is sent, and so it is logged with its trace.
    detail = f"{request.method} {request.url.path} failed by a bug of Headway: its log has the trace"
    return _response(HTTPStatus.INTERNAL_SERVER_ERROR, detail=detail)


def _response(
    status: HTTPStatus, *, detail: str, breaches: list[str] | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    said = [printable(breach) for breach in breaches or ()]  # some name what was sent, and are printed as they come
    problem = Problem(title=status.phrase, status=status, detail=printable(detail), breaches=said)
    return Response(
        problem.model_dump_json(),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers={**HEADERS.get(status, {}), **(headers or {})},
    )
