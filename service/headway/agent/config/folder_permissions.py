"""Whether jobs that run as other users can move a folder of the agent's away, or put another in its place.

A folder's own rights do not show that: whoever may change a folder above it decides what its path leads to.
"""

import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from headway.agent.config.templates import Template
from headway.agent.system.users import Account, account


def movers(path: Path, templates: Iterable[Template]) -> list[tuple[str, Path]]:
    """The users of ``templates`` who may move ``path``, each with the nearest folder that lets them."""
    found = {}
    for user in sorted({each.user for each in templates if each.user}):
        with suppress(ValueError):  # nobody here by that name: nothing runs as that user
            known = account(user)
            reached = next(_reached(path, known), None) if known else None
            if reached is not None:
                found[user] = reached
    return list(found.items())


def _reached(path: Path, user: Account) -> Iterator[Path]:
    """The folders above ``path`` in which the user may give a name to something else."""
    for way in dict.fromkeys((path.absolute(), path.resolve())):  # a link in the path is a name like others
        for entry in (way, *way.parents[:-1]):
            if _may_rename(entry, user):
                yield entry.parent


def _may_rename(entry: Path, user: Account) -> bool:
    try:
        above, own = entry.parent.stat(), entry.lstat()
    except FileNotFoundError:
        return False
    if above.st_uid == user.uid:
        return True
    is_writable = above.st_mode & stat.S_IWOTH or (above.st_mode & stat.S_IWGRP and above.st_gid in _groups(user))
    is_sticky = bool(above.st_mode & stat.S_ISVTX) and own.st_uid != user.uid
    return bool(is_writable) and not is_sticky


def _groups(user: Account) -> frozenset[int]:
    return frozenset({user.gid, *user.groups})
