"""How much tasks of this host wait for the processor or for memory: the kernel's pressure stall information.

Pressure shows what neither load nor use does: a host can be full at 100 % and well, or at 60 % and waiting.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def pressure(resource: str, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """The share of the time, 0 to 1, in which some task waited for ``resource`` (``cpu`` or ``memory``).

    The worst of the machine's and of our cgroup's, where a limit makes tasks wait of which the machine knows nothing.
    ``None`` where the kernel does not measure it.
    """
    found = [share for path in _paths(resource, proc, cgroups) if (share := _some(path)) is not None]
    return max(found, default=None)


def _paths(resource: str, proc: Path, cgroups: Path) -> Iterator[Path]:
    yield proc / "pressure" / resource
    with suppress(OSError):
        for line in (proc / "self/cgroup").read_text().splitlines():
            number, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if number == "0" and not controllers:
                for root in (cgroups, cgroups / "unified"):
                    yield root / path.lstrip("/") / f"{resource}.pressure"


def _some(path: Path) -> float | None:
    """The average of the line ``some avg10=1.53 avg60=…``, as a share."""
    with suppress(OSError, ValueError, KeyError):
        for line in path.read_text().splitlines():
            kind, *words = line.split()
            if kind == "some":
                fields = dict(word.partition("=")[::2] for word in words)
                return float(fields["avg10"]) / 100  # over the last ten seconds
    return None
