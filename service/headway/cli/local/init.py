"""`headway init`: write profiles.yaml and host.toml for the queues that a broker holds."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from headway.cli.argparse_base import Arguments
from headway.cli.local.scaffold import Broker, host_text, profiles_text
from headway.cli.terminal.printing import say
from headway.collect.discovery import discover
from headway.collect.libraries import Libraries
from headway.collect.source import FoundQueue
from headway.connections import Connection, has_password, shown
from headway.errors import Conflict, Invalid, Misconfigured

PROFILES, HOST = "profiles.yaml", "host.toml"


def main(words: list[str]) -> int:
    """Read a broker and write both files. Returns the exit status."""
    options = _options(words)
    if not options.name or set(options.name) & set("/=,"):
        raise Invalid(f"--name {options.name!r}: a connection's name is not empty and has no '/', '=' or ','")
    folder: Path = options.dir
    _refuse_to_overwrite(folder, is_forced=options.force)
    discovered = discover(Connection(name=options.name, url=options.broker, library="rq"), Libraries())
    found = [queue for queue in discovered.queues if _is_text(queue.name)]
    rq = _rq()
    broker = Broker(
        connection=options.name,
        url=options.broker,
        has_password=has_password(options.broker),
        rq=rq,
        rq_has_headway=Path(rq).parent == Path(sys.executable).absolute().parent,
        queues=[queue.name for queue in found],
    )
    _write(folder, {PROFILES: profiles_text(broker), HOST: host_text(broker)}, is_secret=broker.has_password)
    _print_found(broker, found, folder)
    return 0


def _options(words: list[str]) -> argparse.Namespace:
    parser = Arguments(prog="headway init", description=__doc__)
    parser.add_argument(
        "--broker",
        metavar="URL",
        required=True,
        help="the broker: redis://HOST:PORT/DB, rediss://… or unix:///PATH?db=DB",
    )
    parser.add_argument("--name", default="redis", help="what the connection is called in Headway (%(default)s)")
    parser.add_argument("--dir", metavar="FOLDER", type=Path, default=Path(), help="where to write (here)")
    parser.add_argument("--force", action="store_true", help="replace files that are there already")
    return parser.parse_args(words[1:])


def _refuse_to_overwrite(folder: Path, *, is_forced: bool) -> None:
    there = [str(folder / name) for name in (PROFILES, HOST) if (folder / name).exists()]
    if there and not is_forced:
        raise Conflict(f"{' and '.join(there)} would be overwritten: add --force to replace, or choose another --dir")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _rq() -> str:
    """RQ as a person here would call it, whose Python has the code of the jobs; else the one beside this Python."""
    program = shutil.which("rq") or shutil.which(Path(sys.executable).with_name("rq"))
    return str(Path(program).absolute()) if program else "rq"


def _write(folder: Path, texts: dict[str, str], *, is_secret: bool) -> None:
    """Write every file whole before the first takes its place."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            new = folder / f".{name}.new"
            new.unlink(missing_ok=True)
            mode = 0o600 if is_secret else 0o666  # less what the umask takes
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
                file.write(text)
        for name in texts:
            (folder / f".{name}.new").replace(folder / name)
    except OSError as error:
        raise Misconfigured(f"{error.filename} cannot be written: {error.strerror}; choose another --dir") from error


def _print_found(broker: Broker, found: Sequence[FoundQueue], folder: Path) -> None:
    say(f"queues of RQ in {shown(broker.url)}: {len(found)}")
    for queue in found:
        say(f"  {broker.connection}/{queue.name}  waiting jobs: {queue.waiting_jobs}  workers: {queue.workers}")
    secret = ", readable by you only: the URL holds a password" if broker.has_password else ""
    say(f"wrote {folder / PROFILES} and {folder / HOST}{secret}")
    if broker.rq == "rq":
        say("no program `rq` was found: put its whole path into host.toml")
    if any(queue.workers for queue in found):
        say("workers that run already go on beside Headway's: end them when Headway's do the work")
    if not found:
        say("RQ names a queue when its first job enters it; until then both files hold a commented example")
    flags = "" if folder == Path() else f" --profiles {folder / PROFILES} --host-file {folder / HOST}"
    say("next: check both files, then type")
    say(f"  headway up{flags}")
