"""Spark's classes as the JVM keeps them in memory, in a file: with it a pipeline starts in two thirds of the time.

The JVM itself compares the file with its own version and with the jars, and goes without it where they differ.
"""

import os
import sys
from pathlib import Path

FILE = Path(sys.prefix) / "share" / "headway" / "spark-classes.jsa"
"""Beside the code: whoever may write there may change that as well."""

# A file that fits no more is passed over; the next start is as slow as the first, and no reason for a word.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def used(file: Path = FILE) -> str:
    """The JVM's options that use ``file``; none where it is not there, or where others may write into it."""
    try:
        found = file.stat()
    except OSError:
        return ""
    # What it holds runs as this user.
    if found.st_uid not in {0, os.geteuid()} or found.st_mode & 0o022:
        return ""
    return f'"-XX:SharedArchiveFile={file}" {_QUIET}'


def made(file: Path) -> str:
    """The JVM's options that write ``file`` as it ends, with every class that it has loaded by then."""
    return f'"-XX:ArchiveClassesAtExit={file}" {_QUIET}'
