"""Which queues an application has by its source: what its files name, and the default queue where tasks go there."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from os.path import commonpath
from pathlib import Path

from headway.cli.setup.source.celery_apps import CeleryApp
from headway.cli.setup.source.source_files import Sources
from headway.cli.setup.source.source_queues import FileQueues, queues_in
from headway.errors import Misconfigured

CELERY_DEFAULT_QUEUE = "celery"
PARSING_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredQueues:
    """The queues of one application."""

    queues: tuple[str, ...] = ()
    """Those that the source names, in its order, and the default one if a task goes there."""
    unread: tuple[str, ...] = ()
    """Where more may be named, in a form that cannot be read: files and lines."""
    broker: str | None = field(default=None, repr=False)
    """The URL in the settings of the application."""
    broker_variable: str | None = None
    """The variable that goes before it."""


def files_with_queues(sources: Sources, *, within_s: float = PARSING_S) -> list[FileQueues]:
    """Those of the files that say anything of queues. Files that were not parsed are a problem of ``sources``."""
    found: list[FileQueues] = []
    until_s = time.process_time() + within_s  # of the processor: a busy machine shall not change the result
    for count, file in enumerate(sources.files):
        if time.process_time() > until_s:
            sources.problems.append(f"queues were read in {count} of {len(sources.files)} files of source, and no more")
            break
        try:
            each = queues_in(file)
        except Misconfigured as error:
            sources.problems.append(str(error))
            continue
        found += [] if each is None else [each]
    return found


def declared_by(app: CeleryApp | None, *, apps: Sequence[CeleryApp], files: Iterable[FileQueues]) -> DeclaredQueues:
    """The queues of ``app``, one of ``apps``: each file belongs to the application that it is nearest to.

    ``None``: the only application, of which no module has the name.
    """
    own = [each for each in files if app is None or _is_of(each, app, apps)]
    named = list(dict.fromkeys(queue for each in own for queue in each.celery))
    given = next((each.default for each in own if each.default is not None), None)
    if given is not None or _has_unrouted_task(own):
        named = list(dict.fromkeys([*named, given or CELERY_DEFAULT_QUEUE]))
    brokers = [each.broker for each in own if any(each.broker)]
    url, variable = brokers[0] if brokers else (None, None)
    return DeclaredQueues(
        queues=tuple(named),
        unread=tuple(_unread(own)),
        broker=url,
        broker_variable=variable,
    )


def _is_of(file: FileQueues, app: CeleryApp, apps: Sequence[CeleryApp]) -> bool:
    nearness = {each.app: _nearness(file, each, apps) for each in apps}
    best = max(nearness.values())
    return nearness[app.app] == best and next(name for name, each in nearness.items() if each == best) == app.app


def _nearness(file: FileQueues, app: CeleryApp, apps: Sequence[CeleryApp]) -> tuple[bool, bool, int]:
    """How much speaks for ``app``: it stands in the file, the file imports it, or their folders are near."""
    module, _, _ = app.app.partition(":")
    package = module.rpartition(".")[0] if module.rpartition(".")[2] == "celery" else module
    is_imported = bool({module, package} & file.imports) and sum(each.folder == app.folder for each in apps) > 1
    shared = len(Path(commonpath([file.file.path.parent, app.file.parent])).parts)
    return app.file == file.file.path, is_imported, shared


def _has_unrouted_task(files: Sequence[FileQueues]) -> bool:
    """Whether a task goes to the default queue: no route fits it, and not every call that sends it names a queue."""
    patterns = [pattern for each in files for pattern in each.patterns]
    sent = {name for each in files for name in each.sent}
    sent_without = {name for each in files for name in each.sent_without}
    return any(
        not _has_route(task, patterns) and task.rpartition(".")[2] not in sent - sent_without
        for each in files
        for task in each.tasks
    )


def _has_route(task: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern fits: the module may have a shorter name where its worker starts."""
    parts = task.split(".")
    names = [".".join(parts[at:]) for at in range(len(parts))]
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _unread(files: Sequence[FileQueues]) -> Iterable[str]:
    modules = {each.file.module for each in files}
    for each in files:
        for line in dict.fromkeys(each.unread_lines):
            yield f"{each.file.path}, line {line}"
        for line, module in each.configurations:
            if not _is_read(module, modules):
                yield f"{each.file.path}, line {line}"


def _is_read(configuration: str | None, modules: set[str]) -> bool:
    """Whether the module that configures Celery is among those that were read. Django's settings have many names."""
    if configuration is None:
        return False
    name = configuration.partition(":")[0]
    if name == "django.conf":
        return any("settings" in module.split(".") for module in modules)
    return any(module == name or module.endswith(f".{name}") for module in modules)
