"""The logs of child processes: bounded, and asked for the last words of one that failed."""

import os
from pathlib import Path

LOG_BYTES_MAX = 10 * 1024 * 1024
LAST_WORDS_BYTES = 64 * 1024


def rotate(log: Path) -> None:
    """Rotate a log that has grown too large; the one rotated before is forgotten."""
    if log.exists() and log.stat().st_size > LOG_BYTES_MAX:
        log.replace(log.with_suffix(".log.1"))


def last_words(log: Path, begins: int) -> str:
    """The last line that a child said as `headway: …` since it started, else its last line at all."""
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(begins, size - LAST_WORDS_BYTES))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    messages = [line.removeprefix("headway: ") for line in lines if line.startswith("headway: ")]
    return (messages or lines or ["it said nothing"])[-1]
