"""As whom a server runs. Postgres refuses root, and users that have no name; no user is made and no permission opened.

In this order: a plain user as himself; root and a user without a name inside a user namespace, as ``nobody`` to the
server and as the caller to everybody else; root where that is refused (the default of some containers) as ``nobody``
indeed. A folder that belongs to another user stays his: root runs its server as that user.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.errors import Misconfigured

PYTHON = (sys.executable, "-I", "-S")  # for scripts of their own: neither the environment nor site-packages count
_LAUNCH = Path(__file__).with_name("launch.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """As whom a server runs."""

    mode: str
    """The word for ``launch.py``: ``direct``, ``namespace`` or ``UID:GID``."""
    uid: int
    """Who owns its files, seen from here."""

    def command(self, death_signal: int, *argv: str) -> list[str]:
        """What runs ``argv`` as this user and ends with the thread that started it."""
        return [*PYTHON, str(_LAUNCH), self.mode, str(int(death_signal)), str(os.getpid()), *argv]


def environment() -> dict[str, str]:
    """What servers and their tools may know of this process: no tokens, no PG* settings, no language."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "TZDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C"}


def for_server(root: Path, binary: Path, *, is_root_refused: bool) -> Identity:
    """As whom ``binary`` shall serve the data in ``root``.

    Raises:
        Misconfigured: this machine offers no way.
    """
    uid, owner = os.geteuid(), root.stat()
    if uid == 0 and owner.st_uid != 0:
        return Identity(mode=f"{owner.st_uid}:{owner.st_gid}", uid=owner.st_uid)
    direct, namespace = Identity(mode="direct", uid=uid), Identity(mode="namespace", uid=uid)
    if uid != 0 and (_has_name(uid) or not is_root_refused):
        return direct
    # In a namespace root has no privilege over other people's files; everybody else keeps what he had.
    if (uid != 0 or is_reachable(root, 0, *os.getgroups())) and _runs(namespace, binary):
        return namespace
    if not is_root_refused:
        return direct
    nobody = _nobody()
    if uid == 0 and nobody is not None and is_reachable(root.parent, nobody.pw_uid, nobody.pw_gid):
        for path in (root, *root.rglob("*")):  # empty, or root's from a time when namespaces were allowed
            os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
        return Identity(mode=f"{nobody.pw_uid}:{nobody.pw_gid}", uid=nobody.pw_uid)
    if uid == 0:
        why = f"Postgres refuses root, and neither root without its privileges nor 'nobody' can use {root}"
    else:
        why = f"user {uid} has no name on this machine, and user namespaces are refused here"
    raise Misconfigured(f"the embedded Postgres cannot run ({why}): set HEADWAY_DATABASE_URL to a Postgres of your own")


def is_reachable(path: Path, uid: int, *gids: int) -> bool:
    """Whether ``uid``, of the groups ``gids``, can enter ``path`` and every folder above it."""
    for folder in (path, *path.parents):
        status = folder.stat()
        needed = 0o100 if status.st_uid == uid else 0o010 if status.st_gid in gids else 0o001
        if not status.st_mode & needed:
            return False
    return True


def reachable(folders: Sequence[Path], root: Path, identity: Identity) -> Path:
    """The folder that holds ``folders``: theirs or, where the server's user cannot enter it, a copy in ``root``.

    The copy is his to change, so nothing but his own server may be run from it.
    """
    installed = folders[0].parent
    if identity.uid == os.geteuid() or is_reachable(installed, identity.uid):
        return installed
    copy = root / f"programs-{folders[0].stat().st_mtime_ns:x}"  # another one when another version is installed
    if not copy.exists():
        for old in root.glob("programs*"):
            shutil.rmtree(old)
        new = root / "programs.new"
        for folder in folders:
            shutil.copytree(folder, new / folder.name, ignore=shutil.ignore_patterns("__pycache__", "include"))
        for path in (new, *new.rglob("*")):
            os.chown(path, *(int(number) for number in identity.mode.split(":")))
            path.chmod(path.stat().st_mode & 0o700)
        new.replace(copy)
    return copy


def _runs(identity: Identity, binary: Path) -> bool:
    done = subprocess.run(
        identity.command(signal.SIGKILL, str(binary), "--version"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(),
        check=False,
    )
    return done.returncode == 0


def _has_name(uid: int) -> bool:
    try:
        return bool(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return False


def _nobody() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        return None
