"""``host.toml``: what this host can run. Only the host's owner writes it."""

import os
import re
import shutil
import signal
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.agent.config import templates
from headway.agent.config.celery_command import worker_word
from headway.agent.config.templates import MARKS, VISIBLE_GPUS, Log, Ready, Recycle, Reporter, Stop, Template
from headway.agent.config.toml_reader import TOML_NAME_CHARS_MAX, TomlTable, is_name
from headway.agent.system.users import account
from headway.errors import Invalid, Misconfigured
from headway.local.ownership import why_foreign

HOST_WORKERS_MAX = 1_000  # on one host: far more than have a use for its cores, far fewer than would bring it down
GPUS_MAX = 1_000
LOG_FILES_MAX = 100
# The control plane refuses more than these, and with them the whole report of the host.
HOST_CORES_MAX = 1e6
DURATION_MAX_S = 1e10
HOST_FILE_LOG_BYTES_MIN = 4096  # less would cut off the last words of a worker that failed


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFile:
    """The contents of ``host.toml``."""

    templates: Mapping[str, Template]
    name: str | None = None
    reserve_cpu_cores: float = 0.0
    reserve_memory_bytes: int = 0
    gpus: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    starting_max: int | None = None
    """How many workers may be starting at once; ``None``: as many as suits the cores."""
    workers_max: int = HOST_WORKERS_MAX
    """More than these are not run, whoever asks for them."""


def load(path: Path) -> HostFile:
    """The contents of the file at ``path``.

    Raises:
        Misconfigured: it cannot be read, or is not TOML.
        Invalid: with every mistake in it, programs that are not there included.
    """
    try:
        document = tomllib.loads(_owners_text(path))
    except OSError as error:
        raise Misconfigured(
            f"{path} cannot be read: {error.strerror}; it says what this host can run, "
            "`headway init` or `headway agent init LIBRARY` writes one, --host-file names another"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Misconfigured(f"{path} is not TOML: {error}") from error
    breaches: list[str] = []
    found = host_file_of(document, folder=path.parent.absolute(), breaches=breaches)
    if breaches:
        raise Invalid(f"{path}: {breaches[0]}", *breaches[1:])
    return found


def _owners_text(path: Path) -> str:
    """What the file holds, if only those decide it who may run programs as this agent anyway.

    Raises:
        OSError: it cannot be read.
        Misconfigured: it belongs to somebody else, or others may write it.
    """
    with path.open(encoding="utf-8") as file:
        if why := why_foreign(os.fstat(file.fileno())):
            raise Misconfigured(f"{path} {why}; who writes it decides what the agent runs")
        return file.read()


def host_file_of(
    document: Mapping[str, Any],
    *,
    folder: Path,
    breaches: list[str],
    table: Callable[[Mapping[str, Any], str, list[str]], TomlTable] = TomlTable,
) -> HostFile:
    """What ``document`` says, with the mistakes in ``breaches``; relative paths begin in ``folder``.

    Each table of it is read by a ``table``.
    """
    top = table(document, "the file", breaches)
    host = table(top.table("host"), "[host]", breaches)
    gpus = host.whole("gpus", default=0, least=0, most=GPUS_MAX)
    found = HostFile(
        templates={
            name: _template(name, table(body, f"template {name!r}", breaches), folder=folder, gpus=gpus)
            for name, body in top.tables("templates").items()
        },
        name=host.text("name"),
        reserve_cpu_cores=host.number("reserve_cpu_cores", default=0.0),
        reserve_memory_bytes=host.memory_bytes("reserve_memory", default=0),
        gpus=gpus,
        labels=host.labels("labels"),
        starting_max=host.whole_if_any("starting_max", least=1),
        workers_max=host.whole("workers_max", default=HOST_WORKERS_MAX, least=0, most=100_000),
    )
    if found.name is not None and not is_name(found.name):
        host.breach(f"name has more than {TOML_NAME_CHARS_MAX} characters")
    if not found.templates and not breaches:
        breaches.append("it has no [templates.NAME]: the host could run nothing")
    host.close()
    top.close()
    return found


def _template(name: str, table: TomlTable, *, folder: Path, gpus: int) -> Template:
    if not is_name(name):
        table.breach(f"its name must have 1 to {TOML_NAME_CHARS_MAX} characters, none of them zero")
    resources = table.inner("resources")
    argv = table.words("argv", is_needed=True)
    template = Template(
        name=name,
        argv=argv,
        burst_arguments=table.words("burst_arguments"),
        working_directory=str(folder / (table.text("working_directory") or ".")),
        slots=table.whole("slots", default=1, least=1, most=10_000),
        environment=_environment(table),
        user=_user(table),
        ready=_ready(table),
        stop=_stop(table),
        recycle=_recycle(table.inner("recycle")),
        log=_log(table.inner("log")),
        cpu_cores=resources.number("cpu_cores", default=templates.CPU_CORES, most=HOST_CORES_MAX),
        memory_bytes=resources.memory_bytes("memory_bytes", default=templates.MEMORY_BYTES),
        gpus=resources.whole("gpus", default=0, least=0, most=GPUS_MAX),
        is_measured=resources.flag("measured", default=True),
        niceness=table.whole("niceness", default=0, least=0, most=19),
        labels=table.labels("labels"),
        isolation_drain_after_s=table.number_if_any("isolation_drain_after_s", most=DURATION_MAX_S),
        reporter=_reporter(table, argv),
    )
    resources.close()
    table.close()
    _check_isolation(template, table)
    _check_gpus(template, table, gpus=gpus)
    _check_program(template, table)
    return template


def _environment(table: TomlTable) -> Mapping[str, str]:
    environment = table.environment("environment")
    for name in sorted(MARKS & set(environment)):
        table.breach(f"environment sets {name}, which is the agent's own mark")
    return environment


def _user(table: TomlTable) -> str | None:
    user = table.text("user")
    try:
        if user is not None:
            account(user)
    except ValueError as error:
        table.breach(str(error))
    return user


def _ready(table: TomlTable) -> Ready:
    given = Ready(
        after_s=table.number("ready_after_s", default=templates.TEMPLATE_READY_AFTER_S),
        pattern=table.text("ready_pattern"),
        timeout_s=table.number("ready_timeout_s", default=templates.READY_TIMEOUT_S),
    )
    if table.has("ready_pattern") and table.has("ready_after_s"):
        table.breach("ready_after_s and ready_pattern exclude each other: keep one")
    if table.has("ready_timeout_s") and not table.has("ready_pattern"):
        table.breach("ready_timeout_s needs a ready_pattern to wait for")
    try:
        re.compile(given.pattern or "")
    except re.error as error:
        table.breach(f"ready_pattern {given.pattern!r} is no regular expression: {error}")
    return given


def _stop(table: TomlTable) -> Stop:
    given = Stop(
        stop_signal=table.signal("stop_signal", default=signal.SIGTERM),
        drain_timeout_s=table.number_if_any("drain_timeout_s", most=DURATION_MAX_S, is_zero_allowed=True),
        force_signal=table.signal("force_signal", default=signal.SIGKILL),
    )
    if given.stop_signal == signal.SIGKILL:
        table.breach("stop_signal KILL would let no job finish: name the signal that the worker drains on")
    return given


def _reporter(table: TomlTable, argv: Sequence[str]) -> Reporter:
    by_argv = Reporter.NONE if worker_word(argv) is None else Reporter.CELERY
    return Reporter(table.choice_if_any("reporter", Reporter) or by_argv)


def _recycle(table: TomlTable) -> Recycle:
    given = Recycle(
        after_s=table.number_if_any("after_s"),
        jobs=table.whole_if_any("jobs", least=1),
        memory_bytes=table.memory_bytes("memory_bytes", default=0) or None,
    )
    table.close()
    return given


def _log(table: TomlTable) -> Log:
    given = Log(
        bytes_max=table.memory_bytes("bytes_max", default=templates.LOG_BYTES_MAX),
        files=table.whole("files", default=templates.LOG_FILES, least=0, most=LOG_FILES_MAX),
    )
    if given.bytes_max < HOST_FILE_LOG_BYTES_MIN:
        table.breach(f"bytes_max must be at least {HOST_FILE_LOG_BYTES_MIN}")
    table.close()
    return given


def _check_isolation(template: Template, table: TomlTable) -> None:
    """Without a deadline nobody knows when the workers of a partitioned host have ended: no other host may run them."""
    if template.isolation_drain_after_s is not None and not table.has("drain_timeout_s"):
        table.breach(
            "isolation_drain_after_s needs a drain_timeout_s, after which workers that have not finished are killed: "
            "set one that is longer than the longest job, or leave isolation_drain_after_s out"
        )


def _check_gpus(template: Template, table: TomlTable, *, gpus: int) -> None:
    if template.gpus > gpus:
        table.breach(f"resources: gpus = {template.gpus}, but [host] says gpus = {gpus}: no worker would fit")
    if template.gpus and VISIBLE_GPUS in template.environment:
        table.breach(f"environment sets {VISIBLE_GPUS}, which the agent gives to each worker that needs gpus")


def _check_program(template: Template, table: TomlTable) -> None:
    if not Path(template.working_directory).is_dir():
        table.breach(f"working_directory {template.working_directory} is no folder")
        return
    if not template.argv:
        return  # reported already
    program = template.argv[0]
    if "/" in program:
        path = Path(template.working_directory) / program
        if not (path.is_file() and os.access(path, os.X_OK)):
            table.breach(f"program {program!r} is not there or not executable")
    elif shutil.which(program, path=template.environment.get("PATH")) is None:
        table.breach(f"program {program!r} is not on PATH: install it, or give its whole path in argv")
