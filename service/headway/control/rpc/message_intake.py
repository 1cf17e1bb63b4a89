"""How the message of a call comes in: in its time, no more at once than there is room for, and as what it should be.

gRPC waits for a unary call's message before it calls anybody, for as long as the caller likes. So to gRPC each method
takes a stream, of which the first message is read here.
"""

import asyncio
from collections import Counter
from typing import Any

import grpc.aio
from google.protobuf.message import DecodeError

from headway.control.auth.authenticator import Caller
from headway.control.held_counts import one_more
from headway.control.rpc.paced_call import PacedCall
from headway.errors import Invalid, Overloaded
from headway.store.access.credentials import Role

Context = grpc.aio.ServicerContext[Any, Any] | PacedCall

INTAKE_MESSAGE_S = 10.0  # for the way of 8 MB over a slow line
INTAKE_UNREAD_MAX = 20_000  # calls that wait for their message: as many agents may connect anew at once
STRANGERS_MAX = 2_000
UNREAD_PER_TOKEN_MAX = 32
STRANGERS = "strangers"
INTAKE_STRANGERS_AT_ONCE = 32  # each may bring 8 MB before its size is known
INTAKE_STRANGER_MESSAGE_S = 1.0  # an enrolment is a packet
STRANGER_TURN_S = 10.0
STRANGER_BYTES_MAX = 16_384
TOO_MANY = "too many calls wait for their messages: call again after a pause"


class Intake:
    """Reads the messages of calls."""

    def __init__(self) -> None:
        self._unread: Counter[str] = Counter()
        self._reading_strangers = asyncio.Semaphore(INTAKE_STRANGERS_AT_ONCE)

    async def read(self, handler: Any, context: Context, caller: Caller) -> Any:
        """The request of a call for ``handler``, by the rules that hold for ``caller``.

        Raises:
            Invalid: no message came in time, or it is not what the method takes.
            Overloaded: too many calls wait for theirs.
        """
        message = await self._read(context, caller)
        try:
            # Here, not by gRPC, which would log the caller's mistake as ours, with a trace.
            return handler.request_deserializer(message)
        except DecodeError as error:
            raise Invalid(f"the message is not what this method takes: {error}") from error

    async def _read(self, context: Context, caller: Caller) -> bytes:
        if caller.role is Role.JOIN:
            message = await self._strangers(context)
        else:
            own_max = UNREAD_PER_TOKEN_MAX if caller.sha256 else INTAKE_UNREAD_MAX
            with one_more(self._unread, caller.sha256, most=own_max, why=TOO_MANY):
                message = await _first(context, wait_s=INTAKE_MESSAGE_S)
        if message is grpc.aio.EOF:
            raise Invalid("the call brought no message")
        return bytes(message)

    async def _strangers(self, context: Context) -> Any:
        """The message of somebody without a credential: a few are read at once, and others wait for their turn."""
        with one_more(self._unread, STRANGERS, most=STRANGERS_MAX, why=TOO_MANY):
            try:
                async with asyncio.timeout(STRANGER_TURN_S):
                    await self._reading_strangers.acquire()
            except TimeoutError:
                raise Overloaded("too many calls without a credential wait: call again after a pause") from None
            try:
                message = await _first(context, wait_s=INTAKE_STRANGER_MESSAGE_S)
            finally:
                self._reading_strangers.release()
        if message is not grpc.aio.EOF and len(message) > STRANGER_BYTES_MAX:
            raise Invalid(f"the message has {len(message)} bytes: without a credential {STRANGER_BYTES_MAX} are taken")
        return message


async def _first(context: Context, *, wait_s: float) -> Any:
    try:
        async with asyncio.timeout(wait_s):
            return await context.read()
    except TimeoutError:
        raise Invalid(f"the call brought no message within {wait_s:g} s: send it with the call") from None
