"""A folder that one process owns, and files in it that are whole at any moment."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headway.errors import Misconfigured
from headway.local.files import sync_folder, write_whole
from headway.local.locks import only_process

LOCK = "lock"
BEGIN_ANEW = "delete it to begin anew: jobs of the last minutes may then not count"

_encoded = json.JSONEncoder(separators=(",", ":")).encode


@contextmanager
def state_folder(path: Path) -> Iterator[Path]:
    """Where a process keeps what it must remember across restarts, for one process alone; made if it is missing.

    Raises:
        Misconfigured: another process has it, or it cannot be made or written to.
    """
    with only_process(
        path / LOCK,
        held_by=lambda owner: Misconfigured(
            f"state folder {path} is in use by process {owner or '(unknown)'}: end that one, "
            "or give this one a folder of its own with HEADWAY_STATE_DIR"
        ),
        unusable=lambda why: Misconfigured(
            f"state folder {path} cannot be used: {why}; choose another with HEADWAY_STATE_DIR"
        ),
    ):
        yield path


def read_json(file: Path) -> dict[str, Any] | None:
    """What ``file`` holds, None where there is none.

    Raises:
        Misconfigured: it cannot be read, or does not hold what ``write_json`` wrote.
    """
    try:
        held = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Misconfigured(f"state file {file} cannot be read: {error}; {BEGIN_ANEW}") from error
    if not isinstance(held, dict):
        raise Misconfigured(f"state file {file} does not hold a state; {BEGIN_ANEW}")
    return held


def write_json(file: Path, value: dict[str, Any], encoded: Mapping[str, Iterable[bytes]] | None = None) -> None:
    """Replace ``file`` in one step that survives a loss of power. Its owner only may read it. Raises ``OSError``.

    ``encoded``: further members, in pieces of JSON; ``value`` has some of its own.
    """
    write_whole(file, _joined(value, encoded or {}))
    sync_folder(file.parent)


def json_pieces(value: dict[str, Any]) -> Iterator[bytes]:
    """``value`` as JSON, in pieces: each member of it alone, and of those that are dicts each of theirs.

    The whole of a large value is never in memory a second time.
    """
    yield b"{"
    for number, (name, member) in enumerate(value.items()):
        yield b"," if number else b""
        if isinstance(member, dict):
            yield _members({name: {}})[:-1]
            for place, (key, inner) in enumerate(member.items()):
                yield b"," if place else b""
                yield _members({key: inner})
            yield b"}"
        else:
            yield _members({name: member})
    yield b"}"


def _joined(value: dict[str, Any], encoded: Mapping[str, Iterable[bytes]]) -> Iterator[bytes]:
    yield _json(value)[:-1]
    for name, pieces in encoded.items():
        yield b",%s:" % _json(name)
        yield from pieces
    yield b"}"


def _members(value: dict[Any, Any]) -> bytes:
    return _json(value)[1:-1]


def _json(value: Any) -> bytes:
    return _encoded(value).encode()
