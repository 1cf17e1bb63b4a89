"""The overview, again and again as it changes: Server-Sent Events for the dashboard."""

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import StreamingResponse

from headway.control.auth.failed_sign_ins import address_of
from headway.control.http.dependencies import THREAD_BYTES, WithContext
from headway.control.http.overview.broadcaster import Snapshot
from headway.control.http.problems import declared
from headway.errors import Invalid, Overloaded

GZIP_HEADER = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
LAST_BLOCK = b"\x03\x00"  # an empty one: whoever reads knows that the stream is whole

router = APIRouter(tags=["overview"])


class EventStream(StreamingResponse):
    """Server-Sent Events as bytes. The framework's own class encodes anew for each viewer."""

    media_type = "text/event-stream"


async def _place(context: WithContext, request: Request) -> AsyncIterator[None]:
    # Here, because once the stream has begun its status has been sent. It ends with the answer.
    address = address_of(request.client.host if request.client else "")
    with context.feed.place(context.caller.paced_as(address)):
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
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Vary": "Accept-Encoding"}
    if not _takes_gzip(request.headers.get("accept-encoding", "")):
        return EventStream(_plain(snapshots), headers=headers)
    return EventStream(_gzipped(snapshots), headers={**headers, "Content-Encoding": "gzip"})


def _takes_gzip(accepted: str) -> bool:
    codings = [coding.replace(" ", "").lower() for coding in accepted.split(",")]
    return "gzip" in codings or any(coding.startswith("gzip;") and coding != "gzip;q=0" for coding in codings)


async def _plain(snapshots: AsyncIterator[Snapshot]) -> AsyncIterator[bytes]:
    async for snapshot in snapshots:
        yield snapshot.block


async def _gzipped(snapshots: AsyncIterator[Snapshot]) -> AsyncIterator[bytes]:
    """One gzip stream of parts that were compressed once for all."""
    yield GZIP_HEADER
    checksum = size = 0
    async for snapshot in snapshots:
        checksum, size = zlib.crc32(snapshot.block, checksum), size + len(snapshot.block)
        is_large = len(snapshot.block) > THREAD_BYTES
        yield await asyncio.to_thread(_deflated, snapshot) if is_large else snapshot.deflated
    yield LAST_BLOCK + struct.pack("<II", checksum, size & 0xFFFFFFFF)


def _deflated(snapshot: Snapshot) -> bytes:
    return snapshot.deflated
