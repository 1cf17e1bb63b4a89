"""A disk of its own, and a small one, for each host of a lab, so that it can be full: a tmpfs if we may mount one."""

import subprocess
from pathlib import Path

SIZE = "4m"  # room for the state of an agent and what a few workers print
FILLER, PIECE_BYTES = "filler", 4096


class Disk:
    """One host's. ``is_small`` says whether this machine lets us make it; otherwise ``folder`` is on everybody's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700)
        try:
            words = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "headway-lab", str(folder)]
            self.is_small = subprocess.run(words, capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            self.is_small = False

    def fill(self) -> None:
        """Leave room for nothing more."""
        with (self._folder / FILLER).open("ab", buffering=0) as file:
            try:
                while file.write(b"\0" * PIECE_BYTES):
                    continue
            except OSError:
                return

    def free(self) -> None:
        (self._folder / FILLER).unlink(missing_ok=True)

    def remove(self) -> None:
        if self.is_small:
            unmount(self._folder)


def remove_leftovers(folder: Path) -> None:
    """Unmount what a run has left below ``folder`` whose test is no more."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        if (where := Path(line.split()[1])).is_relative_to(folder):
            unmount(where)


def unmount(folder: Path) -> None:
    # Lazily: what still runs there has its files until it ends.
    subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)
