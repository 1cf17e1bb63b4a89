"""Who may act as the agent: one in a state folder, and one as a host of a control plane.

Two agents that are the same host would each start what the host was assigned.
"""

import errno
import hashlib
import logging
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from headway.errors import Refused
from headway.local.files import closing
from headway.local.locks import holder_of, sign, try_lock

KILL_BOUND_S = 5.0
LISTENS_WITHIN_S = 0.2
INSTANCE_LOCK_BACKLOG = 128  # of those who ask who has a name; nobody is answered

log = logging.getLogger(__name__)


def hold(lock: int, path: Path, *, takes_over: bool) -> None:
    """Hold the file ``path``, open as ``lock``, until it is closed.

    With ``takes_over`` the agent that holds it is ended: killed, for one that hangs reacts to nothing else, and one
    that is asked to stop may end its workers. They run on, and whoever holds the file next takes them over.

    Raises:
        Refused: another agent holds it.
    """
    if not try_lock(lock):
        pid = holder_of(lock)
        if takes_over and pid is not None:
            _end(pid, path)
        until_s = time.monotonic() + (KILL_BOUND_S if takes_over else 0.0)
        while not try_lock(lock):
            if time.monotonic() >= until_s:
                raise Refused(_refusal(pid, path.parent, takes_over=takes_over))
            time.sleep(0.01)
    sign(lock)


@contextmanager
def as_host(control: Sequence[str], host_name: str, *, waits: bool = False) -> Iterator[None]:
    """Be this host of the control planes for the block; with ``waits`` also if another one is only just ending.

    The names are the kernel's own, within our network: free as soon as their owner has ended, however that was.

    Raises:
        Refused: another agent of this machine is this host already, in another state folder.
    """
    until_s = time.monotonic() + (KILL_BOUND_S if waits else 0.0)
    with ExitStack() as held:
        for address in sorted(set(control)):
            _hold_name(held.enter_context(socket.socket(socket.AF_UNIX)), address, host_name, until_s=until_s)
        yield


def _hold_name(held: socket.socket, control: str, host_name: str, *, until_s: float) -> None:
    name = hashlib.sha256(f"{control}\n{host_name}".encode()).hexdigest()[:32]
    # One that has taken the name listens a moment later, and can be asked who it is only then.
    asked_until_s = max(until_s, time.monotonic() + LISTENS_WITHIN_S)
    while not _bind(held, f"\0headway-agent-{name}"):
        owner = _owner(name)
        if owner is None and time.monotonic() < asked_until_s:
            time.sleep(0.01)
            continue
        pid, uid = owner or (None, None)
        if uid not in {0, os.geteuid()}:
            # Anybody may take the name. Who is neither root nor this user is no agent that this one goes by.
            log.warning(
                "uid=%s holds the name by which agents of host %r avoid being the same: it is left out of account",
                "unknown" if uid is None else uid,
                host_name,
            )
            return
        if time.monotonic() >= until_s:
            raise Refused(
                f"an agent (process {pid}) is host {host_name!r} of the control plane {control} already, "
                "in another state folder: end it, or give this one a name of its own with --host-name"
            )
        time.sleep(0.01)


def _bind(held: socket.socket, address: str) -> bool:
    try:
        held.bind(address)
        held.listen(INSTANCE_LOCK_BACKLOG)
    except OSError as error:
        # Where there are no such names, the state folder alone keeps agents apart.
        return error.errno != errno.EADDRINUSE
    return True


def _owner(name: str) -> tuple[int, int] | None:
    """Process and user that have the name, by the kernel; ``None`` where it does not show them."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        asked.settimeout(0)
        asked.connect(f"\0headway-agent-{name}")
        pid, uid, _ = struct.unpack("3i", asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return pid, uid
    return None


def _end(pid: int, path: Path) -> None:
    """Kill the process if it is the one that has the file open: a pid alone may be another process's by now."""
    with suppress(OSError), closing(os.pidfd_open(pid)) as process:
        if _holds_lock(pid, path) or _has_open(pid, path):
            log.warning("taking over from process %d, which is killed; its workers run on", pid)
            signal.pidfd_send_signal(process, signal.SIGKILL)
            poll = select.poll()
            poll.register(process, select.POLLIN)
            poll.poll(KILL_BOUND_S * 1000)


def _holds_lock(pid: int, path: Path) -> bool:
    """Whether the kernel lists a lock of the process on the file. An agent lets nobody see what it has open."""
    with suppress(OSError, ValueError, IndexError):
        inode = path.stat().st_ino
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK" and int(words[4]) == pid and int(words[5].rpartition(":")[2]) == inode:
                return True
    return False


def _has_open(pid: int, path: Path) -> bool:
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if each.samefile(path):
                    return True
    return False


def _refusal(pid: int | None, folder: Path, *, takes_over: bool) -> str:
    message = f"an agent (process {pid or 'unknown'}) works in the state folder {folder}"
    if takes_over:
        return f"{message} and could not be ended: end it as its user or as root, then start this one"
    return (
        f"{message}: end it first, or give this one a folder of its own with --state-dir; if it hangs, add --take-over"
    )
