"""Whether a stream can go on from its checkpoint without losing or repeating what the log holds.

The archive notes for which checkpoint, and how far of it, files were taken out of the stream's sight. A checkpoint that
knows less would never see them again.
"""

import json
import logging
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from headway.errors import Misconfigured
from headway.local.files import closing, write_whole
from headway_spark.event_log.log_files import archived
from headway_spark.stream import source_log

log = logging.getLogger(__name__)

CHECKPOINT_HORIZON_S = 2 * 3_600.0  # how long a row of 5 s lives


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Up to which number of which query's list files were moved to the archive."""

    query: str
    number: int


def query_of(checkpoint: Path) -> str | None:
    """The name Spark gave the query of ``checkpoint``; None where there is none, or none that can be read."""
    try:
        return str(json.loads((checkpoint / "metadata").read_text())["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def note_taken(log_dir: Path, taken: Taken) -> None:
    """Write down what is about to be moved, before it is."""
    path = _note(log_dir)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(path, json.dumps({"query": taken.query, "number": taken.number}), is_durable=False)


def read_taken(log_dir: Path) -> Taken | None:
    """What was noted last; None where nothing was, or a power cut left it torn."""
    try:
        noted = json.loads(_note(log_dir).read_text())
        return Taken(query=noted["query"], number=noted["number"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_private(checkpoint: Path, *, is_shared: bool = False) -> None:
    """Have the folder, made if need be, to this user alone; with ``is_shared`` to its group, too, as executors may be.

    Raises:
        Misconfigured: it is another user's, who would decide what is counted.
    """
    checkpoint.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = checkpoint.stat()
    if found.st_uid != os.geteuid():
        raise Misconfigured(
            f"HEADWAY_CHECKPOINT={checkpoint} belongs to user id {found.st_uid}, and the pipeline runs as "
            f"{os.geteuid()}: who owns it decides what is counted; chown it, or name another folder"
        )
    mode = stat.S_IMODE(found.st_mode)
    private = mode & ~(0o007 if is_shared else 0o077)
    if mode != private:
        checkpoint.chmod(private)
        log.warning("the checkpoint %s was open to other users: its mode is %o now, was %o", checkpoint, private, mode)


def is_missing(checkpoint: Path) -> bool:
    """Whether nothing was read with it: there is no checkpoint, or a start was killed while making one."""
    folders = ("offsets", "commits", "sources/0")
    return not any(path.name[:1].isdecimal() for folder in folders for path in checkpoint.joinpath(folder).glob("*"))


def why_unfit(checkpoint: Path, log_dir: Path) -> str | None:
    """Why a stream from ``checkpoint`` would count too little, as half a sentence; None where nothing says so.

    Spark itself reads no further than its own folder: a part of one that is gone, it begins anew.
    """
    if (mark := rebuilding(checkpoint)).exists():
        return f"a rebuild has begun and not ended ({mark})"
    if is_missing(checkpoint):
        if any(archived(log_dir, from_s=time.time() - CHECKPOINT_HORIZON_S)):
            return "it is not there, and the log's archive holds events of the last two hours"
        return None
    query = query_of(checkpoint)
    if query is None or not (checkpoint / "offsets").is_dir():
        return "a part of it is missing or cannot be read"
    taken = read_taken(log_dir)
    if taken is None:
        return None
    if taken.query != query:
        recent = any(archived(log_dir, from_s=time.time() - CHECKPOINT_HORIZON_S))
        return "the archive holds what another checkpoint has read" if recent else None
    try:
        known = max((entry.number for entry in source_log.entries(checkpoint)), default=-1)
    except (OSError, ValueError) as error:
        return f"its list of files cannot be read ({error})"
    return "it is older than the archive" if taken.number > known else None


def rebuilding(checkpoint: Path) -> Path:
    """The mark of a rebuild that has begun: beside the folder, which somebody might delete."""
    return checkpoint.with_name(f"{checkpoint.name}.rebuilding")


def order(checkpoint: Path) -> None:
    """Let the next start begin with a rebuild."""
    rebuilding(checkpoint).write_text("from the beginning")


def sync_tree(folder: Path) -> None:
    """Make everything in ``folder`` outlive a power cut."""
    for path in [*folder.rglob("*"), folder]:
        with closing(os.open(path, os.O_RDONLY)) as opened:
            os.fsync(opened)


def _note(log_dir: Path) -> Path:
    return log_dir / "archive" / ".taken"
