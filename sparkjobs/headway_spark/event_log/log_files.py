"""Which files make up the event log, each event in exactly one of them.

    <log>/hot/X.parquet              what the stream reads
    <log>/archive/<part>/X.parquet   what it has read; waits to be merged
    <log>/archive/<part>.parquet     everything of the folder <part> in one file: once it is there the folder is void
    <log>/held/<holder>/             links to files that somebody reads for longer than a moment

A part is named by the hour its files were written in (Unix seconds of its start) and a number. A file's own name begins
with the milliseconds at which it was written.
"""

import fcntl
import math
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from headway.errors import Unavailable
from headway.local.files import closing

HOUR_S = 3600
# Ingest brings every time into [received - 600 s, received + 1 s]. A file is written after its events were received, at
# most so much later as a batch may wait for the disk and for Postgres.
LOG_FILE_EARLY_S = 1.0
LATE_S = 600.0 + 300.0
HOLD_ATTEMPTS = 20

_WRITTEN_MS = re.compile(r"(\d{13})-")
_PART = re.compile(r"(\d{10})-\d{3}")


def files(log_dir: Path, *, from_s: float = -math.inf, until_s: float = math.inf) -> tuple[Path, ...]:
    """Every file that may hold an event with ``from_s <= at_s < until_s``, oldest first. They hold others, too: filter.

    No event is in two of them. While a pipeline runs, a file may move the moment after: read through ``held`` then.
    """
    first_s, last_s = from_s - LOG_FILE_EARLY_S, until_s + LATE_S
    hot = log_dir / "hot"
    # What moves meanwhile is seen on one side at least: from hot/ into the archive, or, at a start, back.
    found = {path.name: path for path in parquets(hot)}
    moved = {path.name: path for path in archived(log_dir, from_s=first_s, until_s=last_s)}
    found |= {path.name: path for path in parquets(hot)}
    recent = {name: path for name, path in found.items() if first_s <= written_s(path) < last_s}
    return tuple(sorted((recent | moved).values(), key=lambda path: (written_s(path), path.name)))


def archived(log_dir: Path, *, from_s: float = -math.inf, until_s: float = math.inf) -> Iterator[Path]:
    """The files of the archive that were written in [from_s, until_s), and merged ones of which a part was."""
    archive = log_dir / "archive"
    for part in sorted({name.removesuffix(".parquet") for name in _names(archive)}):
        hour_s = part_hour_s(part)
        if hour_s is None or hour_s + HOUR_S <= from_s or hour_s >= until_s:
            continue
        merged = archive / f"{part}.parquet"
        pieces = parquets(archive / part)
        # Asked after the folder was listed: while there is no merged file, nothing in the folder is deleted.
        if merged.exists():
            yield merged
        else:
            yield from (path for path in pieces if from_s <= written_s(path) < until_s)


@contextmanager
def held(log_dir: Path, *, from_s: float = -math.inf, until_s: float = math.inf) -> Iterator[tuple[Path, ...]]:
    """``files``, under names at which they stay for as long as the context lasts, whatever is merged or deleted.

    They are hard links inside the log's folder and take no room of their own. A killed holder's are removed by the
    pipeline.

    Raises:
        Unavailable: the folder cannot be written.
    """
    folder = log_dir / "held" / uuid4().hex
    try:
        folder.mkdir(mode=0o700, parents=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise Unavailable(f"the event log at {log_dir} cannot be written: {error}") from error
    with closing(descriptor):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield _linked(log_dir, folder, from_s=from_s, until_s=until_s)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _linked(log_dir: Path, folder: Path, *, from_s: float, until_s: float) -> tuple[Path, ...]:
    for _ in range(HOLD_ATTEMPTS):
        try:
            links = []
            for path in files(log_dir, from_s=from_s, until_s=until_s):
                links.append(folder / path.name)
                # What has been linked by an earlier attempt has only moved since: names are never used twice.
                with suppress(FileExistsError):
                    os.link(path, links[-1])
        except FileNotFoundError:
            # Moved between the scan and the link. Whatever it had become part of, the next scan finds.
            for name in _names(folder):
                (folder / name).unlink(missing_ok=True)
            continue
        except OSError as error:
            raise Unavailable(f"the event log at {log_dir} cannot be linked: {error}") from error
        return tuple(links)
    raise Unavailable(f"the files of the event log at {log_dir} move faster than they can be listed: try again")


def drop_left_holds(log_dir: Path) -> None:
    """Remove the links of holders that are no more."""
    for folder in folders(log_dir / "held"):
        with suppress(OSError), closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY)) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def written_s(path: Path) -> float:
    """When a file was written, Unix seconds, and of a merged one from when on its files were.

    By its name, or by its time on disk where the name does not show it.
    """
    found = _WRITTEN_MS.match(path.name)
    if found:
        return int(found[1]) / 1000
    hour_s = part_hour_s(path.name.removesuffix(".parquet"))
    if hour_s is not None:
        return hour_s
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0  # it has just moved; whoever reads it finds that out


def part_hour_s(name: str) -> float | None:
    """The start of the hour that an archive's part is named by; None of a name that is no part's."""
    found = _PART.fullmatch(name)
    return float(found[1]) if found else None


def parquets(folder: Path) -> list[Path]:
    """The Parquet files right in ``folder``, in no order; none where there is no folder."""
    return [folder / name for name in _names(folder) if name.endswith(".parquet") and not name.startswith(".")]


def folders(folder: Path) -> list[Path]:
    """The folders right in ``folder``, in no order; none where there is no folder."""
    return [folder / name for name in _names(folder) if (folder / name).is_dir()]


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
