"""What every operation is given, and how a body becomes a value."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import AfterValidator, BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect

from headway.control.auth.authenticator import LOCAL, Authenticator, Caller
from headway.control.bounds import THREAD_BYTES, Bounds
from headway.control.http.connections import Connections
from headway.control.http.middleware import CALLER, address_in
from headway.control.http.overview.broadcaster import Feed
from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.control.http.overview.totals_cache import TotalsCache
from headway.control.http.problems import TooLarge, breaches_of, declared
from headway.control.http.schemas.requests import TEXT_LENGTH_MAX, storable, storable_text
from headway.control.ingest.ingest import Ingest
from headway.errors import HeadwayError, Invalid, Refused
from headway.scaling.profile import NAME_LENGTH_MAX
from headway.scaling.strategy import Strategy
from headway.store.audit import Actor
from headway.store.engine import Engine

MODEL_ERRORS_MAX = 1_000

TAKEN: list[type[BaseModel]] = []
"""The models of bodies that operations read by themselves: the framework does not describe them."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiContext:
    """What operations work with."""

    engine: Engine
    ingest: Ingest
    feed: Feed
    overviews: OverviewBuilder
    totals: TotalsCache
    clock: Callable[[], float]
    caller: Caller
    """Who asks."""
    bounds: Bounds
    strategies: Mapping[str, Strategy]
    """Those a profile may name."""
    callers: Authenticator
    """Who may ask, and who was refused."""
    connections: Connections
    ended_strangers: Callable[[], int]
    """How many connections of the gRPC port were ended."""
    recommends_only: bool = False
    """Whether this control plane starts and stops nothing."""

    @property
    def actor(self) -> Actor:
        """Whom the audit log names."""
        return self.caller.actor


async def _context(request: Request) -> ApiContext:
    context: ApiContext = request.app.state.context
    return replace(
        context, caller=request.scope.get(CALLER) or replace(LOCAL, address=address_in(request.scope) or None)
    )


WithContext = Annotated[ApiContext, Depends(_context)]
NamePath = Annotated[str, Path(min_length=1, max_length=NAME_LENGTH_MAX), AfterValidator(storable_text)]
NameQuery = Annotated[str | None, Query(min_length=1, max_length=TEXT_LENGTH_MAX), AfterValidator(storable_text)]
PoolPath = NamePath
PoolQuery = Annotated[
    str | None,
    Query(min_length=1, max_length=NAME_LENGTH_MAX, description="Only this pool."),
    AfterValidator(storable_text),
]
QueuePath = Annotated[str, Path(min_length=1, max_length=TEXT_LENGTH_MAX), AfterValidator(storable_text)]


async def body_of(request: Request, read: Callable[[bytes], Value]) -> Value:
    """What ``read`` makes of the request's body; a large one is read in a thread.

    Raises:
        Refused: the connection ended before the whole body had come. Nobody gets that answer.
    """
    try:
        body = await request.body()
    except ClientDisconnect as error:  # which the framework would log as our failure, with a trace
        raise Refused("the connection ended before the whole body had come") from error
    return await asyncio.to_thread(read, body) if len(body) > THREAD_BYTES else read(body)


def mapping_of(body: bytes) -> dict[str, Any]:
    """The JSON object in ``body``. Raises ``Invalid`` where it is none, or holds what Postgres cannot keep."""
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise Invalid(f"body: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Invalid(f"body: expected an object, got {type(value).__name__}")
    if breaches := storable(value):
        raise Invalid(*breaches)
    return value


def model_of(model: type[Value], body: bytes) -> Value:
    """The Pydantic ``model`` in ``body``. Raises ``Invalid`` with every breach, as long as they can be listed."""
    assert issubclass(model, BaseModel)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        if error.error_count() > MODEL_ERRORS_MAX:  # of each Pydantic makes a kilobyte, and of a large body a million
            raise Invalid(f"body: {error.error_count()} values break rules, too many to list") from None
        raise Invalid(
            *breaches_of(error.errors(include_url=False, include_context=False, include_input=False))
        ) from error


def operations(**options: Any) -> APIRouter:
    """A router whose operations go by the names of their functions, unless they say otherwise."""
    return APIRouter(generate_unique_id_function=lambda route: route.name, **options)


def taking(model: type[BaseModel], *errors: type[HeadwayError]) -> dict[str, Any]:
    """What is declared of an operation that reads a body of ``model``, which may be invalid or too large."""
    return {"responses": declared(Invalid, *errors, TooLarge), "openapi_extra": takes(model)}


def takes(model: type[BaseModel]) -> dict[str, Any]:
    """The OpenAPI of an operation that reads a body of ``model`` by itself."""
    TAKEN.append(model)
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
