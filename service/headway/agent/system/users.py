"""The users of this machine that workers run as."""

import os
import pwd
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who a process runs as."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    environment: dict[str, str]
    """What a login would set."""


def account(user: str) -> Account | None:
    """The user named so, ``None`` if it is the one that this process runs as already.

    Raises:
        ValueError: there is no such user, or only root may run programs as another one and this process is not root.
    """
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        raise ValueError(f"user {user!r} is not known on this machine: create it, or leave the key out") from None
    if known.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise ValueError(
            f"user {user!r}: only an agent that runs as root can run workers as another user; "
            f"run the agent as {' or '.join(sorted({user, 'root'}))}"
        )
    return Account(
        uid=known.pw_uid,
        gid=known.pw_gid,
        groups=tuple(os.getgrouplist(user, known.pw_gid)),
        environment={"USER": user, "LOGNAME": user, "HOME": known.pw_dir},
    )
