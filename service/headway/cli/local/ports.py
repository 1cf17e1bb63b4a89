"""Whether a server's port can be had, asked before anything is started."""

import socket
from contextlib import closing
from dataclasses import replace

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


def require_free(address: Address, *, flag: str, setting: str) -> None:
    """Refuse an ``address`` that another program holds.

    Raises:
        Misconfigured: naming the port, who has it where that can be seen, and what to change.
    """
    if not is_free(address):
        raise Misconfigured(
            f"port {address.port} on {address.host} cannot be had{holder(address.port)}: "
            f"choose another with {flag} {replace(address, port=address.port + 10)} or {setting}"
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
