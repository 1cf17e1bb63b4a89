"""The overview, again and again as it changes: Server-Sent Events for the dashboard."""

from collections.abc import AsyncIterator

from fastapi import APIRouter, Depends
from fastapi.sse import EventSourceResponse, ServerSentEvent

from headway.control.http.dependencies import WithContext
from headway.control.http.problems import declared
from headway.errors import Overloaded

RECONNECT_MS = 2000

router = APIRouter(tags=["overview"])


async def _room_for_one_more(context: WithContext) -> None:
    # Here, because once the stream has begun its status has been sent.
    context.feed.refuse_beyond_bound()


@router.get(
    "/v1/events",
    operation_id="watch_events",
    summary="Watch the overview",
    response_class=EventSourceResponse,
    responses=declared(Overloaded),
    dependencies=[Depends(_room_for_one_more)],
)
async def watch(context: WithContext) -> AsyncIterator[ServerSentEvent]:
    """The overview at once, and again when it changed: at most once a second, at least every five.

    An event `overview` has an Overview as its data; `problem` has a JSON string: why there is none. Each is whole, so a
    client that was away needs only the next one.
    """
    async for snapshot in context.feed.watch(context.overviews.json):
        yield ServerSentEvent(event=snapshot.event, raw_data=snapshot.data, id=str(snapshot.number), retry=RECONNECT_MS)
