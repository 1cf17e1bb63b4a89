"""Small disks of a site's own, which a cause fills."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.disks import unmount

LOG_MB, KEPT_FREE_MB = 300, 256  # ingest refuses where less is free
FILLER = "filler"


@dataclass(frozen=True, slots=True)
class Disks:
    """One for the event log, where this machine lets us mount it."""

    log: Path
    are_small: bool

    def fill_log(self) -> None:
        """Leave less free than ingest wants."""
        with (self.log / FILLER).open("wb") as file:
            file.write(b"\1" * ((LOG_MB - KEPT_FREE_MB + 10) << 20))

    def free_log(self) -> None:
        (self.log / FILLER).unlink()


@contextmanager
def disks(log: Path) -> Iterator[Disks]:
    """Mounted there until the block ends."""
    with ExitStack() as stack:
        yield Disks(log, are_small=_is_mounted(log, LOG_MB, stack))


def _is_mounted(folder: Path, size_mb: int, stack: ExitStack) -> bool:
    folder.mkdir(mode=0o700)
    words = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=700", "headway-shown", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(words, capture_output=True, check=False).returncode == 0
    if is_mounted:
        stack.callback(unmount, folder)
    return is_mounted
