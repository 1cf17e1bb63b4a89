"""Snapshots as Server-Sent Events: plain, or as one gzip stream of parts that are compressed once for all viewers."""

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cached_property

from starlette.responses import StreamingResponse

from headway.control.bounds import THREAD_BYTES

RECONNECT_MS = 2000
DEFLATE_LEVEL = 6  # of a thousand pools whole: 60 ms for 90 kB, where level 1 takes 25 for 170
RAW_DEFLATE = -zlib.MAX_WBITS
GZIP_HEADER = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
LAST_BLOCK = b"\x03\x00"  # an empty one: whoever reads knows that the stream is whole


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What everybody sees. ``event`` is one of these.

    - ``overview``: ``data`` is the whole of it.
    - ``change``: what differs from the overview that has the number ``since``.
    - ``problem``: none could be made, and ``data`` says why.
    - ``ended``: the last one of what has ended for good, and ``data`` is its report.
    - empty: a comment, which says only that the connection stands.
    """

    number: int = 0
    event: str = ""
    data: str = ""
    since: int | None = None

    @cached_property
    def block(self) -> bytes:
        """The event as it is sent."""
        if not self.event:
            return b": still here\n\n"
        fields = f"event: {self.event}\ndata: {self.data}\nid: {self.number}\nretry: {RECONNECT_MS}\n\n"
        return fields.encode()

    @cached_property
    def deflated(self) -> bytes:
        """The same, as a part of a raw deflate stream that needs nothing before it: made once for all viewers."""
        compressor = zlib.compressobj(DEFLATE_LEVEL, zlib.DEFLATED, RAW_DEFLATE)
        return compressor.compress(self.block) + compressor.flush(zlib.Z_SYNC_FLUSH)


STILL_HERE = Snapshot()


class EventStream(StreamingResponse):
    """Server-Sent Events as bytes. The framework's own class encodes anew for each viewer."""

    media_type = "text/event-stream"

    @classmethod
    def of(cls, snapshots: AsyncIterator[Snapshot], *, accepted: str) -> "EventStream":
        """The answer to who sends ``accepted`` as its ``Accept-Encoding``."""
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Vary": "Accept-Encoding"}
        if not _takes_gzip(accepted):
            return cls((snapshot.block async for snapshot in snapshots), headers=headers)
        return cls(_gzipped(snapshots), headers={**headers, "Content-Encoding": "gzip"})


def _takes_gzip(accepted: str) -> bool:
    codings = [coding.replace(" ", "").lower() for coding in accepted.split(",")]
    return "gzip" in codings or any(coding.startswith("gzip;") and coding != "gzip;q=0" for coding in codings)


async def _gzipped(snapshots: AsyncIterator[Snapshot]) -> AsyncIterator[bytes]:
    """One gzip stream of parts that were compressed once for all."""
    yield GZIP_HEADER
    checksum = size = 0
    async for snapshot in snapshots:
        checksum, size = zlib.crc32(snapshot.block, checksum), size + len(snapshot.block)
        is_large = len(snapshot.block) > THREAD_BYTES
        yield await asyncio.to_thread(lambda part: part.deflated, snapshot) if is_large else snapshot.deflated
    yield LAST_BLOCK + struct.pack("<II", checksum, size & 0xFFFFFFFF)
