"""The checkpoint's list of files that were read, and how far what was read has been committed.

Spark only ever adds to the list, and writes all of it anew now and then. At one file a half second that is 30 MB a day:
written every few seconds it would end by filling the disk. Entries that are older than ``maxFileAge`` mean nothing to
Spark, and are taken out while no query runs.
"""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

KEPT_S = (
    2 * 3600.0
)  # files this much older than the newest are never taken for new ones: their events are too late anyway
SOURCE_LOG_LONG_BYTES = 4 * 1024 * 1024  # some 30,000 files

log = logging.getLogger(__name__)


class Entry(NamedTuple):
    """A file that was read, or is being read."""

    name: str
    number: int
    """Of the list's own growth: it was read with the batch whose offset is this number."""
    written_at_s: float


def is_long(checkpoint: Path) -> bool:
    """Whether trimming is worth a restart of the query."""
    path = _newest(checkpoint)
    return path is not None and path.stat().st_size > SOURCE_LOG_LONG_BYTES


def trim(checkpoint: Path) -> None:
    """Take the entries out of the list that Spark no longer heeds. No query may be running on ``checkpoint``."""
    path = _newest(checkpoint)
    if path is None:
        return
    try:
        version, *lines = path.read_text().splitlines()
        times_ms = [json.loads(line)["timestamp"] for line in lines]
    except (ValueError, KeyError, TypeError):
        return  # damaged, or of another Spark: it is Spark that says so when it reads the list
    since_ms = max(times_ms, default=0) - KEPT_S * 1000
    kept = [line for line, time_ms in zip(lines, times_ms, strict=True) if time_ms >= since_ms]
    if len(kept) == len(lines):
        return
    draft = path.with_name(f".{path.name}.trimmed")
    draft.write_text("\n".join([version, *kept]))
    # The checksum first: without one the file is read as it is, with an old one it is refused.
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    draft.replace(path)
    log.info("trimmed the checkpoint's list of files from=%d to=%d", len(lines), len(kept))


def committed_until(checkpoint: Path) -> int:
    """The number up to which what was listed has been counted for good, state and rows alike; -1: nothing has.

    Raises:
        OSError, ValueError: the checkpoint cannot be read, or not as of now.
    """
    commits = _numbers(checkpoint / "commits")
    if not commits:
        return -1
    *_, offset = (checkpoint / "offsets" / str(max(commits))).read_text().splitlines()
    try:
        return int(json.loads(offset)["logOffset"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"not an offset of files: {offset}") from error


def entries(checkpoint: Path, *, after: int = -1) -> tuple[Entry, ...]:
    """What was listed with a number above ``after``, but for what was trimmed.

    Raises:
        OSError, ValueError: the list cannot be read, or not as of now.
    """
    folder = checkpoint / "sources" / "0"
    single = sorted(number for number in _numbers(folder) if number > after)
    newest = _newest(checkpoint)
    found: dict[str, Entry] = {}
    # The long list is only read where the short ones that it sums up are gone.
    if newest is not None and any(number not in single for number in range(after + 1, int(newest.stem) + 1)):
        found |= {entry.name: entry for entry in _read(newest) if entry.number > after}
    for number in single:
        found |= {entry.name: entry for entry in _read(folder / str(number))}
    return tuple(found.values())


def _read(path: Path) -> Iterator[Entry]:
    for line in path.read_text().splitlines()[1:]:
        each = json.loads(line)
        try:
            name = unquote(urlsplit(each["path"]).path).rpartition("/")[2]
            yield Entry(name, int(each["batchId"]), each["timestamp"] / 1000)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} holds what is no entry: {line[:200]}") from error


def _newest(checkpoint: Path) -> Path | None:
    found = [path for path in (checkpoint / "sources" / "0").glob("*.compact") if path.stem.isdecimal()]
    return max(found, key=lambda path: int(path.stem), default=None)


def _numbers(folder: Path) -> set[int]:
    """The numbers by which files in ``folder`` are named."""
    try:
        return {int(path.name) for path in folder.iterdir() if path.name.isdecimal()}
    except FileNotFoundError:
        return set()
