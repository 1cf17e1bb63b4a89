"""The overview, again and again as it changes: Server-Sent Events for the dashboard."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from headway.control.http.dependencies import WithContext
from headway.control.http.event_stream import EventStream
from headway.control.http.middleware import address_in
from headway.control.http.problems import declared
from headway.errors import Invalid, Overloaded

router = APIRouter(tags=["overview"])


async def _place(context: WithContext, request: Request) -> AsyncIterator[None]:
    # Here, because once the stream has begun its status has been sent. It ends with the answer.
    with context.feed.place(context.caller.paced_as(address_in(request.scope))):
        yield


@router.get(
    "/v1/events",
    operation_id="watch_events",
    summary="Watch the overview",
    response_class=EventStream,
    responses=declared(Invalid, Overloaded),
    dependencies=[Depends(_place)],
)
async def watch(
    context: WithContext,
    request: Request,
    *,
    changes: Annotated[
        bool, Query(description="After the first overview, only what differs from the one before.")
    ] = False,
) -> EventStream:
    """The overview at once, and again when it changed: at most once a second, at least every five.

    An event `overview` has an Overview as its data; `problem` has a JSON string: why there is none. Each is whole, so a
    client that was away needs only the next one. The last one may be `ended`, with the report of a demo that has ended
    for good. With `changes=true` events `change` follow, each with what differs
    from the overview that had the `id` of its `since`. With one token 50 may watch at once, and 200 in all, unless
    settings say otherwise; others get 429.
    """
    snapshots = context.feed.watch(context.overviews.json, by_changes=changes)
    return EventStream.of(snapshots, accepted=request.headers.get("accept-encoding", ""))
