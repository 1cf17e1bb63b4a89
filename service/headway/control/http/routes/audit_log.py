"""The audit log, a page at a time or as a whole. For administrators and auditors."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Depends, Query, Response
from pydantic import AfterValidator
from starlette.responses import StreamingResponse

from headway.control.http.dependencies import ApiContext, WithContext, operations
from headway.control.http.problems import declared
from headway.control.http.schemas.requests import TEXT_LENGTH_MAX, storable_text
from headway.control.http.schemas.schema_base import Given, in_a_thread
from headway.errors import Invalid
from headway.store.audit import Act, AuditQuery, list_acts
from headway.store.engine import snapshot

PAGE_MAX = 1_000
NDJSON = "application/x-ndjson"

router = operations(prefix="/v1/audit", tags=["audit"])

Wanted = Annotated[
    str | None,
    Query(max_length=TEXT_LENGTH_MAX, description="Only these; `*` stands for anything."),
    AfterValidator(lambda value: None if value is None else storable_text(value)),
]
Moment = Annotated[float | None, Query(description="Unix seconds.")]


def _asked(
    *,
    actor: Wanted = None,
    action: Wanted = None,
    subject: Wanted = None,
    address: Wanted = None,
    from_s: Moment = None,
    until_s: Moment = None,
) -> AuditQuery:
    return AuditQuery(actor=actor, action=action, subject=subject, address=address, from_s=from_s, until_s=until_s)


WhatIsAsked = Annotated[AuditQuery, Depends(_asked)]


class ActOut(Given):
    """A line of the audit log. What cannot be printed in a name is escaped."""

    at_s: float
    actor: str
    """`token NAME`, `host NAME`, `HEADWAY_TOKEN`, `join token NAME`, `address ADDRESS`, or `local` without tokens."""
    action: str
    subject: str
    before: Any
    after: Any
    address: str | None
    """From where it was done, of IPv6 the network; null: nobody called, or an earlier version wrote the line."""

    @classmethod
    def of(cls, act: Act) -> "ActOut":
        """``act`` as it is given."""
        return cls.taken_from(act, at_s=act.acted_at.timestamp())


class AuditOut(Given):
    """Lines of the audit log, newest first."""

    acts: list[ActOut]
    next: str | None
    """Where the next page goes on; null: there is none."""


@router.get("", summary="Read the audit log", response_model=AuditOut, responses=declared(Invalid))
async def list_audit(
    context: WithContext,
    asked: WhatIsAsked,
    *,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = 100,
    before: Annotated[str | None, Query(max_length=100, description="The `next` of an earlier answer.")] = None,
) -> Response:
    """Who did what, newest first, a page at a time: changes, refused calls and failed sign-ins."""
    acts = await _page(context, asked, limit=limit, before=before)
    return await in_a_thread(
        lambda: AuditOut(acts=[ActOut.of(act) for act in acts], next=acts[-1].cursor if len(acts) == limit else None)
    )


@router.get(
    "/export",
    summary="Export the audit log",
    response_class=Response,
    responses={200: {"content": {NDJSON: {"schema": {"type": "string"}}}}, **declared(Invalid)},
)
async def export_audit(
    context: WithContext,
    asked: WhatIsAsked,
) -> Response:
    """All of it that is asked for, newest first: a line of JSON each."""
    first = await _page(context, asked, limit=PAGE_MAX, before=None)  # a mistake is refused before anything is answered
    return StreamingResponse(_lines(context, asked, first), media_type=NDJSON)


async def _lines(context: ApiContext, asked: AuditQuery, acts: list[Act]) -> AsyncIterator[str]:
    while acts:
        yield "".join(f"{ActOut.of(act).model_dump_json()}\n" for act in acts)
        if len(acts) < PAGE_MAX:
            return
        acts = await _page(context, asked, limit=PAGE_MAX, before=acts[-1].cursor)


async def _page(context: ApiContext, asked: AuditQuery, *, limit: int, before: str | None) -> list[Act]:
    # A transaction for each: whoever reads slowly must not keep one open.
    async with snapshot(context.engine) as conn:
        return await list_acts(conn, asked, limit=limit, before=before)
