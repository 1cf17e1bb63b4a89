"""What benchmarks begin with: a Postgres of their own, and a line about the machine that they run on."""

import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headway.store.embedded import ensure_postgres
from headway.store.migrate import upgrade


@contextmanager
def database(*, is_durable: bool = True) -> Iterator[tuple[str, Path]]:
    """The URL of a Postgres with Headway's tables, and the folder that it is in; both end with the block."""
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # for root, whose Postgres runs as nobody
        server = ensure_postgres(folder / "postgres", is_durable=is_durable)
        try:
            upgrade(server.url)
            yield server.url, folder
        finally:
            server.wait_stopped()


def machine() -> str:
    """What figures are printed beside."""
    python = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    return f"{python}, load {os.getloadavg()[0]:.1f}"
