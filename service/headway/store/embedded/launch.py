"""Becomes the user that a server shall run as, then the server itself. A script of its own, never imported.

    python -I -S launch.py MODE DEATH_SIGNAL PARENT_PID BINARY ARGUMENT...

MODE is ``direct``; ``namespace``: a user namespace in which the caller is ``nobody``, so that Postgres, which refuses
root and users without a name, sees a plain user while every file stays the caller's; or ``UID:GID``. DEATH_SIGNAL is
what the server gets when its parent is gone, also by ``kill -9``. This needs a process of its own because only one with
a single thread can enter a user namespace, and because ``preexec_fn`` is slow, and unsafe beside threads.
"""

import ctypes
import os
import pwd
import signal
import sys
from pathlib import Path

CANNOT_LAUNCH_SERVER = 126  # what a shell answers for "found, but cannot be run"
CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1


def main(words: list[str]) -> None:
    """Replace this process by the server."""
    mode, death_signal, parent_pid, *argv = words
    try:
        if mode == "namespace":
            _enter_namespace()
        elif mode != "direct":
            uid, gid = (int(number) for number in mode.split(":"))
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        # After the change of user, which clears it; it outlives execv.
        _checked(_libc().prctl(PR_SET_PDEATHSIG, int(death_signal)), "prctl")
        if os.getppid() != int(parent_pid):  # gone before the signal was asked for
            sys.exit(CANNOT_LAUNCH_SERVER)
        _restore_signals()
        os.execv(argv[0], argv)  # noqa: S606 - no shell is wanted
    except OSError as error:
        print(f"cannot run {argv[0]} ({mode}): {error}", file=sys.stderr)  # noqa: T201 - stderr is the server's log
        sys.exit(CANNOT_LAUNCH_SERVER)


def _restore_signals() -> None:
    """As a program expects them. The parent had blocked those that stop a server, so none was lost until here.

    Python's handler would swallow the one that arrives just before execv: the server would start and nobody stop it.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _enter_namespace() -> None:
    uid, gid, named_uid = os.geteuid(), os.getegid(), _named_uid()
    _checked(_libc().unshare(CLONE_NEWUSER), "unshare")
    Path("/proc/self/setgroups").write_text("deny")  # the kernel's condition for mapping a group without privileges
    Path("/proc/self/uid_map").write_text(f"{named_uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{named_uid} {gid} 1")


def _named_uid() -> int:
    """A user that is not root and has a name on this machine: initdb looks up its own name."""
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        return next((entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid != 0), 65534)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(status: int, what: str) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1:])
