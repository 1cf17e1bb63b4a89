"""What a Celery application itself says of its routes: its own interpreter imports it, in a process bounded in time."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from headway.cli.setup.running_workers import RunningWorker
from headway.cli.setup.source.celery_apps import CeleryApp
from headway.cli.setup.worker_templates import ENVIRONMENTS
from headway.errors import Misconfigured, printable

IMPORT_WITHIN_S = 30.0  # Django with a hundred packages takes a quarter of that
ANSWER_BYTES_MAX = 1_000_000
ERROR_BYTES_MAX, ERROR_CHARS_MAX = 10_000, 200
_SCRIPT = """
import importlib, json, os, sys
sys.path.insert(0, os.getcwd())
module, _, name = sys.argv[1].partition(":")
app = getattr(importlib.import_module(module), name)
app.loader.import_default_modules()
app.finalize()
queues = []
for task in sorted(app.tasks):
    if task.startswith("celery."):
        continue
    options = {"queue": app.tasks[task].queue} if getattr(app.tasks[task], "queue", None) else {}
    queue = app.amqp.router.route(options, task).get("queue")
    queues.append(getattr(queue, "name", queue))
if app.conf.task_queues:
    queues += list(app.amqp.queues)
answer = {"queues": [each for each in queues if each], "broker": app.conf.broker_url}
with os.fdopen(int(sys.argv[2]), "w") as file:
    json.dump(answer, file)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedApp:
    """What an application says of itself."""

    queues: tuple[str, ...]
    """Those to which its tasks go, and those that it declares."""
    broker: str = field(repr=False)
    """The URL of its broker; empty where it says none."""


def interpreter_of(app: CeleryApp, *, here: Path, workers: Iterable[RunningWorker]) -> Path:
    """The Python that has the application's packages: a worker's, its virtualenv's, or the first in PATH.

    Raises:
        Misconfigured: there is none.
    """
    programs = [Path(each.command.program[-1]) for each in workers if each.app and each.app.file == app.file]
    places = [each.parent for each in programs]
    places += [folder / name / "bin" for folder in dict.fromkeys((app.folder, here)) for name in ENVIRONMENTS]
    found = (place / "python" for place in places if os.access(place / "python", os.X_OK))
    usual = shutil.which("python3")
    python = next(found, None) or (Path(usual) if usual else None)
    if python is None:
        raise Misconfigured("--import-app: no Python was found: activate the environment of the application")
    return python


def refuse_others_code(paths: Iterable[Path]) -> None:
    """Refuse to run another user's code as root.

    Raises:
        Misconfigured: this process is root, and one of the files and folders that would run belongs to somebody else.
    """
    if os.geteuid() != 0:
        return
    for path in paths:
        with suppress(OSError):
            if (owner := path.stat().st_uid) != 0:
                raise Misconfigured(
                    f"--import-app: {path} belongs to user {owner}, whose code root does not run: type `headway init` "
                    "as that user"
                )


def imported(
    app: CeleryApp, python: Path, *, environment: Mapping[str, str], within_s: float = IMPORT_WITHIN_S
) -> ImportedApp:
    """What ``app`` says of itself, after ``python`` has imported it in a process of its own.

    Raises:
        Misconfigured: it cannot be imported, takes longer than ``within_s``, or gives no such answer.
    """
    with TemporaryFile() as answer, TemporaryFile() as errors:
        process = subprocess.Popen(
            [str(python), "-c", _SCRIPT, app.app, str(answer.fileno())],
            cwd=app.folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(answer.fileno(),),
            start_new_session=True,  # what it starts ends with it
        )
        try:
            status = process.wait(within_s)
        except subprocess.TimeoutExpired as error:
            raise Misconfigured(f"--import-app: {app.app} was not imported within {within_s:g} s") from error
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if status != 0:
            raise Misconfigured(f"--import-app: {python} cannot import {app.app}: {_last_line(errors)}")
        answer.seek(0)
        return _understood(app, answer.read(ANSWER_BYTES_MAX))


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - ERROR_BYTES_MAX))
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return printable(lines[-1][:ERROR_CHARS_MAX]) if lines else "it says nothing"


def _understood(app: CeleryApp, answer: bytes) -> ImportedApp:
    try:
        match json.loads(answer):
            case {"queues": [*queues], "broker": str() | None as broker}:
                return ImportedApp(queues=tuple(dict.fromkeys(map(str, queues))), broker=broker or "")
    except ValueError:
        pass
    raise Misconfigured(f"--import-app: {app.app} gave no answer: its module ends the process that imports it")
