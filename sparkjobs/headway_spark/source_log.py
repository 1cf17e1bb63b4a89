"""The checkpoint's list of files that were read. Spark only ever adds to it, and writes all of it anew now and then.

At one file a half second that is 30 MB a day: written every few seconds it would end by filling the disk. Entries that
are older than ``maxFileAge`` mean nothing to Spark, and are taken out while no query runs.
"""

import json
import logging
from pathlib import Path

KEPT_S = (
    2 * 3600.0
)  # files this much older than the newest are never taken for new ones: their events are too late anyway
LONG_BYTES = 4 * 1024 * 1024  # some 30,000 files

log = logging.getLogger(__name__)


def is_long(checkpoint: Path) -> bool:
    """Whether trimming is worth a restart of the query."""
    path = _newest(checkpoint)
    return path is not None and path.stat().st_size > LONG_BYTES


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


def _newest(checkpoint: Path) -> Path | None:
    found = [path for path in (checkpoint / "sources" / "0").glob("*.compact") if path.stem.isdecimal()]
    return max(found, key=lambda path: int(path.stem), default=None)
