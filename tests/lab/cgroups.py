"""A cgroup for each host of a lab, so that it can be frozen whole and its memory taken. Version 1 and 2."""

import contextlib
import os
import time
from pathlib import Path

import psutil

ROOT = Path("/sys/fs/cgroup")
PREFIX = "headway-lab-"
EMPTY_WITHIN_S = 30.0


class Cgroup:
    """One host's. ``is_there`` says whether this machine lets us make it."""

    def __init__(self, name: str) -> None:
        remove_leftovers()
        own = f"{PREFIX}{os.getpid()}-{name}"
        self._is_v2 = (ROOT / "cgroup.controllers").exists()
        bases = [ROOT] if self._is_v2 else [ROOT / "memory", ROOT / "freezer"]
        self._folders: list[Path] = []
        try:
            if self._is_v2:
                with contextlib.suppress(OSError):  # it may be on already
                    (ROOT / "cgroup.subtree_control").write_text("+memory")
            for base in bases:
                (base / own).mkdir()
                self._folders.append(base / own)
        except OSError:
            self.remove()
        self.is_there = bool(self._folders)

    def words(self) -> list[str]:
        """What is written before a command line so that it runs in here, with all that it starts."""
        if not self.is_there:
            return []
        enter = "".join(f"echo $$ > {folder}/cgroup.procs && " for folder in self._folders)
        return ["sh", "-c", f'{enter}exec "$@"', "sh"]

    def freeze(self) -> None:
        """Stop everything in here, as the pause of a virtual machine does."""
        self._set_frozen(is_frozen=True)

    def thaw(self) -> None:
        """Let it go on; harmless where nothing is frozen, or there is no cgroup."""
        if self.is_there:
            self._set_frozen(is_frozen=False)

    @property
    def used_bytes(self) -> int:
        name = "memory.current" if self._is_v2 else "memory.usage_in_bytes"
        return int((self._folders[0] / name).read_text())

    def limit(self, memory_bytes: int | None) -> None:
        """Let what is in here take no more; ``None``: as much as there is. A limit below what is used is refused."""
        if self._is_v2:
            (self._folders[0] / "memory.max").write_text("max" if memory_bytes is None else str(memory_bytes))
        else:
            text = "-1" if memory_bytes is None else str(memory_bytes)
            (self._folders[0] / "memory.limit_in_bytes").write_text(text)

    def remove(self) -> None:
        """Take it away once what was in here has ended."""
        for folder in self._folders:
            _remove(folder)
        self._folders = []

    def _set_frozen(self, *, is_frozen: bool) -> None:
        if self._is_v2:
            (self._folders[0] / "cgroup.freeze").write_text("1" if is_frozen else "0")
        else:
            (self._folders[1] / "freezer.state").write_text("FROZEN" if is_frozen else "THAWED")


def remove_leftovers() -> None:
    """Remove what runs have left whose test is no more; their processes are the network's to end."""
    for base in (ROOT, ROOT / "memory", ROOT / "freezer"):
        for folder in base.glob(f"{PREFIX}*") if base.exists() else ():
            if not psutil.pid_exists(int(folder.name.removeprefix(PREFIX).partition("-")[0])):
                _remove(folder)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder / "freezer.state").write_text("THAWED")
    until_s = time.monotonic() + EMPTY_WITHIN_S
    while folder.exists() and time.monotonic() < until_s:
        with contextlib.suppress(OSError):  # gone: another process of the same run clears up, too
            for line in (folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(line), 9)
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.02)
