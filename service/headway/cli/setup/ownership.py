"""Which of the workers of this machine belong to the application of a folder, and why the others do not."""

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headway.cli.setup.running_workers import RunningWorker, Unread, running
from headway.cli.setup.source import celery_apps


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """A worker that is not of the folder's application."""

    worker: RunningWorker
    why: str
    """In brackets behind where it works; empty: that says it."""
    is_reachable: bool = True
    """Whether a template of this machine can start such a worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineWorkers:
    """The workers of this machine, divided."""

    own: Sequence[RunningWorker]
    """Those of the folder's application, by process id."""
    strangers: Sequence[Stranger]
    unread: Sequence[Unread]
    """Those of the folder that cannot be made a template of."""
    unread_strangers: Sequence[Unread] = ()

    def reading(self, pids: Collection[int]) -> "MachineWorkers":
        """The same, of the strangers those of these processes only. What cannot be read may read any broker."""
        strangers = [each for each in self.strangers if each.worker.pid in pids]
        return replace(self, strangers=strangers, unread=(), unread_strangers=())


def workers_of_machine(*, here: Path, files_folder: Path, takes_all: bool) -> MachineWorkers:
    """The workers that run now. If ``takes_all``, those of others count as the folder's own where that can be."""
    workers, unread = running()
    judged = [(each, stranger(each, here=here, files_folder=files_folder)) for each in workers]
    strangers = [why for _, why in judged if why is not None and (not takes_all or not why.is_reachable)]
    taken = {each.worker.pid for each in strangers}
    return MachineWorkers(
        own=[each for each in workers if each.pid not in taken],
        strangers=strangers,
        unread=[each for each in unread if takes_all or _works_in(each, here)],
        unread_strangers=[each for each in unread if not takes_all and not _works_in(each, here)],
    )


def _works_in(worker: Unread, here: Path) -> bool:
    return worker.folder is not None and is_in(worker.folder, (here,))


def stranger(worker: RunningWorker, *, here: Path, files_folder: Path) -> Stranger | None:
    """Why ``worker`` is not of the application in ``here``; ``None``: it is.

    ``files_folder``: where the files of a Headway of one's own are, whose workers belong here, too.
    """
    if worker.is_in_container:
        return Stranger(worker=worker, why="in a container: an agent for it runs in that container", is_reachable=False)
    if worker.user is not None:
        return Stranger(worker=worker, why=f"as {worker.user}: type `headway init` as that user")
    if worker.is_headways and not any(is_in(each, (here, files_folder)) for each in worker.output_files):
        return Stranger(worker=worker, why="started by another Headway")
    if _works_for(worker, here):
        return None
    is_above = is_in(str(here), (Path(worker.folder),)) and Path(worker.folder) not in {Path("/"), Path.home()}
    return Stranger(worker=worker, why="which this folder is a part of: type `headway init` there" if is_above else "")


def _works_for(worker: RunningWorker, here: Path) -> bool:
    """Whether it works in ``here``, or has its application or its modules from there."""
    app = worker.command.app
    own_folders = [worker.folder, *worker.search_folders]
    modules = [celery_apps.module_file(app, Path(each)) for each in own_folders] if app else []
    found = [str(each) for each in modules if each is not None]
    if any(is_in(each, (here,)) for each in (*own_folders, *found)):
        return True
    # A service without a folder of its own (systemd's is /) says nothing by it; what it runs does.
    if found or not is_in(str(here), (Path(worker.folder),)):
        return False
    has_module = app is not None and celery_apps.module_file(app, here) is not None
    return has_module or any(is_in(each, (here,)) for each in (worker.command.program[0], worker.command.program[-1]))


def is_in(path: str, folders: Iterable[Path]) -> bool:
    """Whether ``path`` is one of ``folders`` or below one, as it is written, or where its links lead."""
    places = (Path(path), Path(os.path.realpath(path)))
    return any(place.is_relative_to(folder) for place in places for folder in folders)
