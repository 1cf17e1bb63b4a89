"""What a role does so that other programs of its user learn no credential from it."""

import logging
import os
import sys
from collections.abc import Callable, Mapping

from headway.agent.config.redaction import MASK, USERINFO
from headway.errors import Misconfigured

PR_SET_DUMPABLE = 4
TOKENS = ("HEADWAY_TOKEN", "HEADWAY_JOIN_TOKEN")
CREDENTIALS = (*TOKENS, "HEADWAY_DATABASE_URL", "HEADWAY_BROKERS")

log = logging.getLogger(__name__)


_handed: set[str] = set()
"""Credentials that came by no environment that anybody else can see."""


def take_over(secrets: Mapping[str, str]) -> None:
    """Have settings read these credentials as if they stood in the environment."""
    os.environ.update(secrets)
    _handed.update(secrets)


def make_unreadable() -> bool:
    """Let no other process of this user read this one. Returns whether that can be done here."""
    import ctypes  # 5 ms, which only roles have a use for

    libc = ctypes.CDLL(None, use_errno=True)
    return hasattr(libc, "prctl") and libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0


def keep_private(say: Callable[[str], object] = log.warning) -> None:
    """Let no process of this user read this one, and take credentials out of the environment.

    To be called once they have been read. The kernel shows the environment that a process began with for as long as it
    lives: only who may not read the process at all does not see it. Root does. What is started from here can be read as
    before. ``say`` receives a line where that cannot be, or a password came by the words of the command.

    Raises:
        Misconfigured: a token is in the environment that this process began with, where others have read it by now.
    """
    if not make_unreadable():
        say("this process cannot be made unreadable here: jobs of its user can read what it knows")
    shown = [name for name in TOKENS if os.environ.get(name) and name not in _handed]
    if shown:
        raise Misconfigured(
            "; ".join(
                f"{name} in the environment can be read by other programs: unset it, write the token to a file that "
                f"only this user can read, and name that file in {name}_FILE"
                for name in shown
            )
        )
    logins = (login for word in sys.argv[1:] for login in USERINFO.findall(word))
    if any(":" in login and login != MASK for login in logins):  # a password, and not the user alone
        say(
            "every user of this machine can read the password among the words of this command: write the URL to a "
            "file that only this user can read, and name that file in HEADWAY_DATABASE_URL_FILE or HEADWAY_BROKERS_FILE"
        )
    for name in CREDENTIALS:
        os.environ.pop(name, None)
