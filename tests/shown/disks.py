"""Small disks of a site's own, which a cause fills: of the event log, and of the folders of one host's agent."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from headway.agent.state.state_dir import LOGS
from lab.disks import Disk, unmount

LOG_MB, KEPT_FREE_MB = 300, 256  # ingest refuses where less is free
FILLER = "filler"


@dataclass(frozen=True, slots=True)
class Disks:
    """Where this machine lets us mount them."""

    log: Path
    state: Disk
    """Of what an agent records."""
    output: Disk
    """Of what its workers print."""
    are_small: bool

    def fill_log(self) -> None:
        """Leave less free than ingest wants."""
        with (self.log / FILLER).open("wb") as file:
            file.write(b"\1" * ((LOG_MB - KEPT_FREE_MB + 10) << 20))

    def free_log(self) -> None:
        (self.log / FILLER).unlink()


@contextmanager
def disks(log: Path, *, agent: Path) -> Iterator[Disks]:
    """Mounted until the block ends, at the folder of the event log and below ``agent``, a state folder."""
    with ExitStack() as stack:
        is_small = _is_mounted(log, LOG_MB, stack)
        state = Disk(agent)
        stack.callback(state.remove)
        output = Disk(agent / LOGS)
        stack.callback(output.remove)
        yield Disks(log, state, output, are_small=is_small and state.is_small and output.is_small)


def _is_mounted(folder: Path, size_mb: int, stack: ExitStack) -> bool:
    folder.mkdir(mode=0o700)
    words = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=700", "headway-shown", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(words, capture_output=True, check=False).returncode == 0
    if is_mounted:
        stack.callback(unmount, folder)
    return is_mounted
