"""Where calls come from."""

from typing import Any
from urllib.parse import unquote

import grpc.aio

from headway.control.auth.failed_sign_ins import address_of


def address_of_call(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """The address of whoever makes a call: gRPC writes ipv4:127.0.0.1:1234 and ipv6:%5B::1%5D:1234."""
    place = unquote(context.peer() or "").partition(":")[2].rpartition(":")[0]
    return address_of(place.strip("[]"))
