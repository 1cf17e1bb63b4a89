"""HTTP/1.1 as a proxy in front understands it: where lines end, and what may follow an answer.

H11 takes a bare LF for the end of a line, as RFC 9112 allows. A proxy that takes it for a part of a header's value, and
passes it on, would see one request where this server sees two.
"""

import asyncio
import re
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer

_BARE_LF = re.compile(rb"(?<!\r)\n")
_CAN_ANSWER = frozenset({h11.IDLE, h11.SEND_RESPONSE})


class _CrlfLines(ReceiveBuffer):
    """What has come and was not read yet: a head or trailers of it end each line in CRLF, or are refused."""

    _extracted = bytearray()

    def maybe_extract_lines(self) -> list[bytearray] | None:
        lines = super().maybe_extract_lines()
        if lines is not None and _BARE_LF.search(self._extracted):
            raise h11.RemoteProtocolError("a line ends in LF without CR")
        return lines

    def _extract(self, count: int) -> bytearray:
        self._extracted = super()._extract(count)
        return self._extracted


def strict(protocol: type[asyncio.Protocol]) -> type[asyncio.Protocol]:
    """Uvicorn's ``protocol`` of h11: lines end in CRLF, and what is no HTTP is answered only where that can be."""

    class Strict(protocol):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.conn._receive_buffer = _CrlfLines()  # noqa: SLF001  h11 has no option for it

        def send_400_response(self, message: str) -> None:
            # Once an answer has begun there is no other: h11 would raise, and asyncio log that with a trace.
            if self.conn.our_state in _CAN_ANSWER:
                super().send_400_response(message)
            else:
                self.transport.close()

    return Strict
