"""`headway backup`: one file with all that `headway up` keeps in its data folder, while it runs or not."""

import tempfile
from pathlib import Path

from headway import __version__
from headway.agent.state.state_dir import IDENTITY as AGENT_IDENTITY
from headway.cli.argparse_base import Arguments
from headway.cli.local import backup_file
from headway.cli.local.backup_file import About, Add
from headway.cli.local.data_dir import DataDir
from headway.cli.process.role_options import add_data_dir
from headway.cli.terminal.printing import say
from headway.errors import Refused
from headway.store.embedded import dump, ensure_postgres
from headway.store.events.event_log import EventLog
from headway.store.snapshot import Snapshot, snapshot
from headway_spark.event_log.log_files import held, parquets, part_hour_s, written_s


def main(words: list[str]) -> int:
    """Write the backup. Returns the exit status."""
    parser = Arguments(prog="headway backup", description=__doc__)
    parser.add_argument("file", metavar="FILE", type=Path, help="the file to write; it must not be there yet")
    add_data_dir(parser)
    options = parser.parse_args(words[1:])
    layout = DataDir(options.data_dir.absolute())
    about = back_up(layout, options.file)
    size_bytes = options.file.stat().st_size
    say(f"backed up {layout.root} as of {about.taken_at} into {options.file} ({size_bytes:,} bytes)")
    say("profiles.yaml and host.toml are not in it: keep copies beside it")
    return 0


def back_up(layout: DataDir, file: Path) -> About:
    """Write what the installation in ``layout`` holds at one moment into the new ``file``.

    Raises:
        Refused: there is no such installation, or ``file`` cannot be written.
        Unavailable: the database cannot be read, or the disk takes no more.
    """
    if not (layout.postgres / "pgdata").is_dir():
        raise Refused(
            f"{layout.root} holds no embedded Postgres: name the data folder of a `headway up` with --data-dir; "
            "a Postgres of your own (HEADWAY_DATABASE_URL) is backed up by its own means"
        )
    with ensure_postgres(layout.postgres) as server, snapshot(server.url) as seen:
        about = About(headway=__version__, revision=seen.revision, postgres=dump.major(), taken_at_s=seen.taken_at_s)
        with backup_file.written(file, about) as add:
            with tempfile.TemporaryFile(dir=file.parent) as dumped:
                dump.save(server.url, dumped, snapshot=seen.name)
                add(backup_file.DUMP, dumped)
            _add_one(add, backup_file.IDENTITY, layout.state("agent") / AGENT_IDENTITY)
            _add_events(add, layout.events, seen)
    return about


def _add_events(add: Add, events: Path, seen: Snapshot) -> None:
    """The files of the event log whose batches the dump has claimed, each event in exactly one of them."""
    if EventLog(events).read_marker() is None:
        return  # before its first use
    _add_one(add, backup_file.MARKER, events / "marker")
    # Recorded and not yet published: what moves from here to hot/ meanwhile is found there.
    added = {
        path.name
        for path in parquets(events / "tmp")
        if path.name in seen.recent_files and _add_one(add, f"{backup_file.HOT}/{path.name}", path)
    }
    unread = {path.name for path in parquets(events / "hot")}
    with held(events) as paths:
        for path in paths:
            if path.name in added or not seen.counts(path.name, written_at_s=written_s(path)):
                continue
            if part_hour_s(path.name.removesuffix(".parquet")) is not None:
                where = backup_file.ARCHIVE
            else:
                where = backup_file.HOT if path.name in unread else backup_file.READ
            _add_one(add, f"{where}/{path.name}", path)


def _add_one(add: Add, name: str, path: Path) -> bool:
    """Whether the file was there to be added."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return False
    with file:
        add(name, file)
    return True
