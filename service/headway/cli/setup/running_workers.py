"""The workers of queue libraries that run on this machine, whoever started them."""

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from headway.agent.config.commands.worker_commands import WorkerCommand, understood
from headway.agent.config.templates import WORKER_ID
from headway.agent.config.worker_programs import library_in_title
from headway.agent.config.wrappers import Wrapper, wrapper_of
from headway.cli.setup.broker_candidates import plain_address
from headway.cli.setup.source import celery_apps
from headway.cli.setup.source.celery_apps import CeleryApp
from headway.local import procfs
from headway.local.files import read_regular

SHEBANG_BYTES_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningWorker:
    """A worker that runs here."""

    pid: int
    command: WorkerCommand
    """Its program by its whole path."""
    folder: str
    environment: Mapping[str, str] = field(repr=False)
    """What it was started with. Values may be secret."""
    user: str | None = None
    """Who it runs as, where that is not this user."""
    children: int = 0
    addresses: frozenset[tuple[str, int]] | None = None
    """To which hosts and ports it is connected; ``None``: nobody may know."""
    own_addresses: frozenset[tuple[str, int]] = frozenset()
    """The hosts and ports of its own ends of these."""
    app: CeleryApp | None = None
    """Its application, where its source was found."""
    search_folders: tuple[str, ...] = ()
    """Where it finds modules beside its folder, as its command line and PYTHONPATH say."""
    output_files: tuple[str, ...] = ()
    """Where its output goes."""
    is_in_container: bool = False
    """Whether its root is not that of this process: paths of this machine are no paths of its."""
    wrapper: Wrapper | None = None
    """What started it, if that changes how it stops."""

    @property
    def is_headways(self) -> bool:
        """Whether an agent started it."""
        return WORKER_ID in self.environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A worker that runs here and cannot be made a template of."""

    pid: int
    library: str
    why: str
    folder: str | None = None
    """Where it works; ``None``: nobody may know."""


def running() -> tuple[list[RunningWorker], list[Unread]]:
    """The workers of this machine, by process id, each once however many processes it has."""
    commands: dict[int, tuple[psutil.Process, WorkerCommand]] = {}
    unread: list[Unread] = []
    parents: dict[int, int] = {}
    for process in psutil.process_iter(["cmdline", "ppid"]):
        argv = process.info["cmdline"] or []
        parents[process.pid] = process.info["ppid"]
        title_of = library_in_title(argv[0]) if len(argv) >= 1 else None
        if title_of:
            why = "it hides its command line (setproctitle)"
            unread.append(Unread(pid=process.pid, library=title_of, why=why, folder=_folder(process)))
        elif (command := understood(argv)) is not None:
            commands[process.pid] = (process, command)
    tops = {pid: each for pid, each in commands.items() if not _is_inside(pid, parents, commands)}
    workers = []
    for pid, (process, command) in sorted(tops.items()):
        children = sum(parent == pid and child in commands for child, parent in parents.items())
        try:
            workers.append(_worker(process, command, children=children))
        except psutil.AccessDenied:
            unread.append(Unread(pid=pid, library=command.library, why=f"it runs as {_user(process)}"))
        except psutil.NoSuchProcess:
            continue  # it has ended since
    unread = [each for each in unread if parents.get(each.pid) not in {other.pid for other in unread}]
    return workers, sorted(unread, key=lambda each: each.pid)


def _is_inside(pid: int, parents: Mapping[int, int], commands: Mapping[int, object]) -> bool:
    """Whether a worker's process started it: a pool's process, or the one of a job."""
    for _ in range(len(parents)):
        pid = parents.get(pid, 0)
        if pid in commands:
            return True
        if not pid:
            return False
    return False


def _worker(process: psutil.Process, command: WorkerCommand, *, children: int) -> RunningWorker:
    with process.oneshot():
        environment, folder = process.environ(), process.cwd()
        is_mine = process.uids().real == os.geteuid()
        program = tuple(_program(process, command, environment, folder))
    there = Path(os.path.normpath(Path(folder, command.folder or ".")))
    ends = _connected(process)
    folders = [*command.paths, *environment.get("PYTHONPATH", "").split(os.pathsep)]
    search_folders = tuple(str(Path(there, each)) for each in folders if each)
    named = (celery_apps.named(command.app, each) for each in (there, *map(Path, search_folders)) if command.app)
    return RunningWorker(
        pid=process.pid,
        command=replace(command, program=program),
        folder=str(there),
        app=next(filter(None, named), None),
        search_folders=search_folders,
        output_files=tuple(procfs.output_files(process.pid).values()),
        is_in_container=_root(process.pid) not in {None, _root(os.getpid())},
        wrapper=_wrapper(process),
        environment=environment,
        user=None if is_mine else _user(process),
        children=children,
        addresses=None if ends is None else frozenset(remote for _, remote in ends),
        own_addresses=frozenset(local for local, _ in ends or ()),
    )


def _folder(process: psutil.Process) -> str | None:
    try:
        return process.cwd()
    except (psutil.Error, OSError):
        return None


def _root(pid: int) -> tuple[int, int] | None:
    """Which folder is the root of a process: a service with files of its own (PrivateTmp) still has this machine's."""
    try:
        found = Path(f"/proc/{pid}/root").stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _wrapper(process: psutil.Process) -> Wrapper | None:
    try:
        parent = process.parent()
        return wrapper_of(parent.cmdline()) if parent else None
    except (psutil.Error, OSError):
        return None


def _program(
    process: psutil.Process, command: WorkerCommand, environment: Mapping[str, str], folder: str
) -> Iterator[str]:
    """The words that start it, from wherever: the script alone, where the script names the interpreter itself."""
    first, *rest = command.program
    interpreter = _whole(first, environment, folder) or process.exe()
    if len(rest) == 1 and rest[0] != "-m":
        script = Path(folder, rest[0])
        if _starts_with(interpreter, script):
            yield str(script)
            return
        rest = [str(script)]
    yield interpreter
    yield from rest


def _whole(program: str, environment: Mapping[str, str], folder: str) -> str | None:
    if "/" in program:
        return str(Path(folder, program))
    return shutil.which(program, path=environment.get("PATH", os.defpath))


def _starts_with(interpreter: str, script: Path) -> bool:
    """Whether the kernel would start ``script`` with that very interpreter, whose packages are those it needs."""
    try:
        first, _, _ = read_regular(script, SHEBANG_BYTES_MAX).partition(b"\n")
        return os.access(script, os.X_OK) and first.strip() == b"#!" + os.fsencode(interpreter)
    except OSError:
        return False


def _connected(process: psutil.Process) -> list[tuple[tuple[str, int], tuple[str, int]]] | None:
    """Both ends of each connection that it has."""
    try:
        found = [each for each in process.net_connections(kind="inet") if each.raddr]
    except (psutil.Error, OSError):
        return None
    ends = ((each.laddr, each.raddr) for each in found)
    return [((plain_address(own.ip), own.port), (plain_address(other.ip), other.port)) for own, other in ends]


def _user(process: psutil.Process) -> str:
    try:
        return process.username()
    except (psutil.Error, KeyError):
        return "another user"
