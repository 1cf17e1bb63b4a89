"""The overview, again and again as it changes: Server-Sent Events for the dashboard."""

from collections.abc import AsyncIterator

from fastapi import APIRouter, Depends, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from headway.control.auth.failed_sign_ins import address_of
from headway.control.http.dependencies import WithContext
from headway.control.http.problems import declared
from headway.errors import Overloaded

RECONNECT_MS = 2000

router = APIRouter(tags=["overview"])


async def _place(context: WithContext, request: Request) -> AsyncIterator[None]:
    # Here, because once the stream has begun its status has been sent. It ends with the answer.
    address = address_of(request.client.host if request.client else "")
    with context.feed.place(context.caller.paced_as(address)):
        yield


@router.get(
    "/v1/events",
    operation_id="watch_events",
    summary="Watch the overview",
    response_class=EventSourceResponse,
    responses=declared(Overloaded),
    dependencies=[Depends(_place)],
)
async def watch(context: WithContext) -> AsyncIterator[ServerSentEvent]:
    """The overview at once, and again when it changed: at most once a second, at least every five.

    An event `overview` has an Overview as its data; `problem` has a JSON string: why there is none. Each is whole, so a
    client that was away needs only the next one. With one token 50 may watch at once, and 200 in all, unless settings
    say otherwise; others get 429.
    """
    async for snapshot in context.feed.watch(context.overviews.json):
        yield ServerSentEvent(event=snapshot.event, raw_data=snapshot.data, id=str(snapshot.number), retry=RECONNECT_MS)
