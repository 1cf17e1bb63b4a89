"""The file of a backup: a tar of the database's dump, the event log's files and who the agent is.

about.json                     who wrote it, and when; the first of all
database.dump                  of pg_dump
agent/identity.json            the host's credential
events/marker
events/hot/X.parquet           what the pipeline had not read
events/read/X.parquet          what it had, in files as they were written
events/archive/H-N.parquet     what it had, merged by the hour
contents.json                  the SHA-256 of each of these; the last of all, so that a file without it is a part
"""

import hashlib
import json
import os
import re
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

from headway.errors import Conflict, Invalid, Misconfigured, Unavailable

FORMAT = 1
ABOUT, CONTENTS = "about.json", "contents.json"
DUMP, IDENTITY, MARKER = "database.dump", "agent/identity.json", "events/marker"
HOT, READ, ARCHIVE = "events/hot", "events/read", "events/archive"
PIECE_BYTES = 1 << 20
BACKUP_CONTENTS_BYTES_MAX = 64 << 20  # of contents.json: some 400,000 files
TAKEN_AT_S_MAX = 1e11

_MAJOR = re.compile(r"[0-9]{1,3}")
_HELD = re.compile(rf"({re.escape(DUMP)}|{IDENTITY}|{MARKER}|({HOT}|{READ}|{ARCHIVE})/[0-9A-Za-z_-]+\.parquet)")

Add = Callable[[str, IO[bytes]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a backup is of."""

    headway: str
    """The version that wrote it."""
    revision: str
    """Of the database's tables."""
    postgres: str
    """The major version that wrote the dump, as "18"."""
    taken_at_s: float
    format: int = FORMAT

    @property
    def taken_at(self) -> str:
        """When, in words."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.taken_at_s))


@contextmanager
def written(path: Path, about: About) -> Iterator[Add]:
    """The new backup at ``path``, which appears when the block ends well: whole, or not at all.

    The block adds to it what is to be in it, each by its name and open, to be copied from its beginning.

    Raises:
        Conflict: the file is there.
        Misconfigured: it cannot be made there.
        Unavailable: the disk takes no more.
    """
    if path.exists():
        raise Conflict(f"{path} is there already: name a new file")
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    digests: dict[str, str] = {}
    try:
        opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Misconfigured(f"{path} cannot be written: {error.strerror}; name a file elsewhere") from error
    try:
        with os.fdopen(opened, "wb") as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                _add_words(tar, ABOUT, asdict(about))

                def add(name: str, source: IO[bytes]) -> None:
                    digests[name] = _add_file(tar, name, source)

                yield add
                _add_words(tar, CONTENTS, digests)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)


def unpacked(path: Path, into: Path, *, check: Callable[[About], None]) -> About:
    """What the backup at ``path`` is of; everything else that it holds is in the folder ``into`` then.

    ``check`` is called before anything is unpacked, and raises where the backup does not fit.

    Raises:
        Invalid: it is no backup, cut short or damaged.
        Misconfigured: it cannot be read.
        Unavailable: the disk takes no more.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}") from error
    with file:
        try:
            with tarfile.open(fileobj=file, mode="r:") as tar:
                return _unpacked(path, tar, into, check)
        except (tarfile.TarError, EOFError) as error:
            file.seek(0)
            is_part = file.read(len(ABOUT)) == ABOUT.encode()  # it was a backup before it was cut or damaged
            said = "is cut short or damaged" if is_part else "is no backup that `headway backup` wrote"
            raise Invalid(f"{path} {said}: nothing was changed; name another") from error
        except OSError as error:
            raise Unavailable(f"{path} cannot be unpacked into {into}: {error.strerror or error}") from error


def _unpacked(path: Path, tar: tarfile.TarFile, into: Path, check: Callable[[About], None]) -> About:
    first = tar.next()
    if first is None or first.name != ABOUT:
        raise Invalid(f"{path} is no backup that `headway backup` wrote: nothing was changed; name another")
    about = _about(path, _words(tar, first))
    check(about)
    found: dict[str, str] = {}
    while (member := tar.next()) is not None:
        if member.name == CONTENTS:
            if _words(tar, member) != found:
                raise Invalid(f"{path} is damaged: its contents are not as they were written; name another")
            return about
        # A sparse one may be larger than all disks, in a file of a few bytes.
        is_plain = member.isreg() and not member.issparse()
        if not is_plain or not _HELD.fullmatch(member.name) or member.name in found:
            raise Invalid(f"{path} holds {member.name!r}, which no backup does: nothing was changed; name another")
        found[member.name] = _copied(tar, member, into / member.name)
    raise Invalid(f"{path} is cut short: its end is missing, nothing was changed; name another")


def _about(path: Path, body: object) -> About:
    if isinstance(body, dict) and body.get("format") != FORMAT:
        raise Invalid(
            f"{path} is of format {body.get('format')!r}, and this Headway reads {FORMAT}: restore it with Headway "
            f"{body.get('headway')} or later"
        )
    damaged = Invalid(f"{path} is damaged: {ABOUT} is not as it was written; name another")
    try:
        about = About(**body)  # type: ignore[arg-type]
    except TypeError as error:
        raise damaged from error
    is_as_written = (
        all(isinstance(each, str) and each.isprintable() for each in (about.headway, about.revision, about.postgres))
        and _MAJOR.fullmatch(about.postgres)
        and isinstance(about.taken_at_s, int | float)
        and 0 <= about.taken_at_s < TAKEN_AT_S_MAX
    )
    if not is_as_written:
        raise damaged
    return about


def _add_words(tar: tarfile.TarFile, name: str, body: object) -> None:
    text = json.dumps(body, separators=(",", ":")).encode()
    tar.addfile(_header(name, len(text)), BytesIO(text))


def _add_file(tar: tarfile.TarFile, name: str, source: IO[bytes]) -> str:
    reading = _Digested(source)
    source.seek(0)
    tar.addfile(_header(name, os.fstat(source.fileno()).st_size), reading)
    return reading.digest.hexdigest()


def _header(name: str, size_bytes: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mode, header.mtime = size_bytes, 0o600, int(time.time())
    return header


def _words(tar: tarfile.TarFile, member: tarfile.TarInfo) -> object:
    file = tar.extractfile(member)
    if file is None or member.size > BACKUP_CONTENTS_BYTES_MAX:
        raise tarfile.ReadError(member.name)
    try:
        return json.loads(file.read())
    except (ValueError, RecursionError) as error:
        raise tarfile.ReadError(member.name) from error


def _copied(tar: tarfile.TarFile, member: tarfile.TarInfo, to: Path) -> str:
    """Write the member to a new file. Returns its digest."""
    to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = tar.extractfile(member)
    assert file is not None, "a regular one"
    reading = _Digested(file)
    with os.fdopen(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as writing:
        while piece := reading.read(PIECE_BYTES):
            writing.write(piece)
        writing.flush()
        os.fsync(writing.fileno())
    return reading.digest.hexdigest()


class _Digested:
    """A file that is read once, and the digest of what was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size_bytes: int = -1) -> bytes:
        piece = self._file.read(size_bytes)
        self.digest.update(piece)
        return piece
