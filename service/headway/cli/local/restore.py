"""`headway restore`: puts a backup in the place of what `headway up` has in its data folder."""

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from headway.agent.state.state_dir import IDENTITY as AGENT_IDENTITY
from headway.cli.argparse_base import Arguments
from headway.cli.local import backup_file, process_orphans
from headway.cli.local.backup_file import About
from headway.cli.local.data_dir import DataDir
from headway.cli.process.role_options import add_data_dir
from headway.cli.process.shutdown import Stopping
from headway.cli.terminal.printing import say
from headway.errors import Invalid, Refused, Unavailable
from headway.local.files import sync_folder
from headway.store import migrate
from headway.store.embedded import dump, ensure_postgres
from headway.store.embedded.foreign_processes import end_leftovers
from headway.store.embedded.server_folder import Folder
from headway.store.embedded.waiting import Deadline
from headway_spark.event_log.archive import Archive
from headway_spark.stream.checkpoint import order, rebuilding

DRAFT = "restore.new-"
STOPPED_S = 60.0


def main(words: list[str]) -> int:
    """Restore the backup. Returns the exit status."""
    parser = Arguments(prog="headway restore", description=__doc__)
    parser.add_argument("file", metavar="FILE", type=Path, help="what `headway backup` wrote")
    add_data_dir(parser)
    parser.add_argument(
        "--replace", action="store_true", help="move the database and the event log that are there aside"
    )
    options = parser.parse_args(words[1:])
    layout = DataDir(options.data_dir.absolute())
    about, aside = restore(layout, options.file, replaces=options.replace)
    say(f"restored {options.file}, as of {about.taken_at}, into {layout.root}")
    if aside is not None:
        say(f"what was there is in {aside}: delete it when all is well")
    say("`headway up` goes on from there; it applies profiles.yaml as that is now")
    return 0


def restore(layout: DataDir, file: Path, *, replaces: bool) -> tuple[About, Path | None]:
    """Put the backup in place, all of it or nothing. Returns what it is of, and where what was there before is now.

    Raises:
        Refused: the installation runs, has data and is not to be replaced, or the backup does not fit or is not whole.
        Unavailable: the disk takes no more.
    """
    if not file.is_file():
        raise Refused(f"{file} is not there: name a file that `headway backup` wrote")
    layout.create()
    owner = layout.root.stat()
    if owner.st_uid != os.geteuid():
        raise Refused(
            f"{layout.root} belongs to uid {owner.st_uid}, and `headway up` runs as that: restore as that user"
        )
    with process_orphans.only_parent(layout):
        stopping = Stopping()
        process_orphans.clear(layout.children, stopping=stopping, say=print)
        if not replaces and any(path.exists() for path in _replaced(layout)):
            raise Refused(
                f"{layout.root} holds an installation already: --replace moves its database and event log aside, "
                "or name an empty folder with --data-dir"
            )
        _require_still(layout)
        for left in layout.root.glob(f"{DRAFT}*"):  # of a restore that was killed, once nothing works in it
            end_leftovers(left / "postgres" / "pgdata", signal.SIGINT, Deadline(STOPPED_S))
            shutil.rmtree(left)
        draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=layout.root))
        draft.chmod(owner.st_mode & 0o777)  # whoever serves what is in the one must reach the other
        try:
            about = _prepared(file, draft)
            aside = _put_in_place(layout, draft)
        except OSError as error:
            raise Unavailable(f"{layout.root} cannot be written: {error.strerror or error}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return about, aside


def _require_still(layout: DataDir) -> None:
    """Raise ``Unavailable`` while somebody has the Postgres that is there: it would write into what was moved aside."""
    if layout.postgres.is_dir() and Folder(layout.postgres).is_guarded():
        raise Unavailable(f"the Postgres in {layout.postgres} is in use, as by a backup: restore when that has ended")


def _check(about: About) -> None:
    """Raise ``Invalid`` where this version cannot go on from the backup."""
    ours, oldest = dump.major(), migrate.revisions()[0]
    if migrate.is_too_old(about.revision):
        raise Invalid(
            f"the backup is of Headway {about.headway} (tables {about.revision}), and this Headway upgrades from "
            f"{oldest} on: restore it with an earlier version that migrates to that, and make a new backup there"
        )
    if about.revision not in migrate.revisions() or int(about.postgres) > int(ours):
        raise Invalid(
            f"the backup is of Headway {about.headway} (tables {about.revision}, Postgres {about.postgres}), which is "
            f"newer than this one (Postgres {ours}): install that version, then restore"
        )


def _prepared(file: Path, draft: Path) -> About:
    """Unpack the backup in ``draft``, its database loaded."""
    about = backup_file.unpacked(file, draft, check=_check)
    dumped = draft / backup_file.DUMP
    if not dumped.exists():
        raise Invalid(f"{file} holds no database: nothing was changed; name another")
    server = ensure_postgres(draft / "postgres", on_progress=print)
    try:
        dump.load(server.url, dumped)
    finally:
        has_ended = server.wait_stopped(STOPPED_S)
    if not has_ended:
        raise Unavailable(f"the Postgres in {draft} does not end: end it yourself, then restore again")
    _sort_read(draft / "events")
    return about


def _sort_read(events: Path) -> None:
    """Put what the pipeline had read into the archive's folders, as the pipeline does."""
    if not events.is_dir():
        return
    hot, read = events / "hot", events / "read"
    for folder in (hot, read, events / "tmp", events / "archive"):
        folder.mkdir(exist_ok=True, mode=0o700)
    names = [path.name for path in read.iterdir()]
    for name in names:
        (read / name).rename(hot / name)
    read.rmdir()
    Archive(events).take(names)


def _replaced(layout: DataDir) -> tuple[Path, ...]:
    """What a backup takes the place of."""
    return layout.postgres, layout.events, layout.checkpoint, rebuilding(layout.checkpoint)


def _put_in_place(layout: DataDir, draft: Path) -> Path | None:
    """Move what is there aside and the backup in its place. Broken off in between, `headway up` says so."""
    _require_still(layout)
    layout.restoring.write_text("a restore was broken off\n")
    sync_folder(layout.root)
    present = [path for path in _replaced(layout) if path.exists()]
    aside = None
    if present:
        day = time.strftime("%Y-%m-%d", time.gmtime())
        aside = Path(tempfile.mkdtemp(prefix=f"before-{day}-", dir=layout.root))
        for path in present:
            path.rename(aside / path.name)
    (draft / "postgres").rename(layout.postgres)
    if (draft / "events").is_dir():
        (draft / "events").rename(layout.events)
    order(layout.checkpoint)  # it is a cache of the log, made anew with the next start
    # On another machine the host goes on as who it was; here its agent knows better, and which workers run.
    restored, identity = draft / backup_file.IDENTITY, layout.state("agent") / AGENT_IDENTITY
    if restored.exists() and not identity.exists():
        identity.parent.mkdir(mode=0o700, exist_ok=True)
        restored.rename(identity)
    sync_folder(layout.root)
    layout.restoring.unlink()
    return aside
