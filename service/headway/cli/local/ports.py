"""Whether a server's port can be had, asked before anything is started."""

import socket
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import psutil

from headway.errors import Misconfigured
from headway.settings import Address


def is_free(address: Address) -> bool:
    """Whether a server could bind ``address`` now. Port 0 is always free."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        # As servers do: a port whose last connections are still fading away counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
        except OSError:
            return False
    return True


class Endpoint(NamedTuple):
    """Where a server is to listen, and the flag and the variable that say so."""

    address: Address
    flag: str
    setting: str


def require_free(*endpoints: Endpoint) -> None:
    """Refuse endpoints whose ports other programs hold, all of them together.

    Raises:
        Misconfigured: naming each port, who has it where that can be seen, and what to change.
    """
    taken = [each for each in endpoints if not is_free(each.address)]
    if taken:
        raise Misconfigured("; ".join(map(_refusal, taken)))


def _refusal(taken: Endpoint) -> str:
    address = taken.address
    return (
        f"port {address.port} on {address.host} cannot be had{holder(address.port)}: "
        f"choose another with {taken.flag} {replace(address, port=address.port + 10)} or {taken.setting}"
    )


def free_address(wanted: Address) -> Address:
    """``wanted``, or the same host with a port that is free where ``wanted`` is taken or asks for any."""
    if wanted.port and is_free(wanted):
        return wanted
    with closing(socket.socket(socket.AF_INET6 if ":" in wanted.host else socket.AF_INET)) as probe:
        probe.bind((wanted.host, 0))
        port: int = probe.getsockname()[1]
    return replace(wanted, port=port)


def holder(port: int) -> str:
    """Which process listens there, as far as this user may see."""
    try:
        listening = [each for each in psutil.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
        pid = next((each.pid for each in listening if each.laddr and each.laddr.port == port and each.pid), None)
        return f" (process {pid}, {psutil.Process(pid).name()}, has it)" if pid else ""
    except (psutil.Error, OSError):
        return ""
