"""``host.toml``: what this host can run. Only the host's owner writes it."""

import os
import shutil
import signal
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from headway.agent.config import host_file_values as values
from headway.agent.config import templates
from headway.agent.config.celery_command import worker_word
from headway.agent.config.commands.queue_arguments import queue_argument_breaches
from headway.agent.config.host_file_values import NUMBER_MAX, TOML_NAME_CHARS_MAX, is_name
from headway.agent.config.templates import MARKS, VISIBLE_GPUS, Log, Ready, Recycle, Reporter, Stop, Template
from headway.agent.system.users import account
from headway.errors import Invalid, Misconfigured
from headway.local.ownership import why_foreign
from headway.scaling.fields import taken_from
from headway.scaling.keys import Range, Text
from headway.scaling.mapping import Reading
from headway.scaling.profile_keys.queue_patterns import is_pattern

HOST_WORKERS_MAX = 1_000  # on one host: far more than have a use for its cores, far fewer than would bring it down
# The control plane refuses more than these, and with them the whole report of the host.
HOST_CORES_MAX = 10**6
DURATION_MAX_S = 10**10

_CORES = (
    "cores are detected, and are those of the agent's cgroup if these are fewer: `reserve_cpu_cores` keeps some free, "
    "systemd's CPUQuota= or docker's --cpus limits the agent with its workers"
)
_MEMORY = (
    "memory is detected, and is that of the agent's cgroup if this is less: `reserve_memory` keeps some free, and "
    "systemd's MemoryMax= or docker's --memory limits the agent with its workers"
)
DETECTED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("cpu", "cpus", "cores", "cpu_count", "cpu_cores", "cpus_max"), _CORES),
        **dict.fromkeys(("memory", "memory_bytes", "memory_max", "ram"), _MEMORY),
    }
)
"""Key that people expect in ``[host]`` -> what to do in its place."""

Gpus = Annotated[int, Range(0, 1_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcesTable:
    """The keys of ``[templates.NAME.resources]``."""

    cpu_cores: Annotated[float, Range(0, HOST_CORES_MAX)] = templates.CPU_CORES
    memory_bytes: values.Size = templates.MEMORY_BYTES
    gpus: Gpus = 0
    is_measured: bool = field(default=True, metadata={"key": "measured"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateTable:
    """The keys of ``[templates.NAME]``."""

    argv: values.Program
    burst_arguments: values.Texts = ()
    working_directory: Text = "."
    slots: Annotated[int, Range(1, 10_000)] = 1
    environment: values.Variables = field(default_factory=dict)
    environment_file: Text | None = None
    ready_after_s: Annotated[float, Range(0, NUMBER_MAX)] = templates.TEMPLATE_READY_AFTER_S
    ready_pattern: values.Pattern | None = None
    ready_timeout_s: Annotated[float, Range(0, NUMBER_MAX)] = templates.READY_TIMEOUT_S
    stop_signal: values.SignalNumber = signal.SIGTERM
    drain_timeout_s: Annotated[float, Range(0, DURATION_MAX_S)] | None = None
    force_signal: values.SignalNumber = signal.SIGKILL
    niceness: Annotated[int, Range(0, 19)] = 0
    user: Text | None = None
    umask: values.Umask | None = None
    labels: values.Labels = field(default_factory=dict)
    isolation_drain_after_s: Annotated[float, Range(0, DURATION_MAX_S, "low")] | None = None
    reporter: Reporter | None = None
    queues_allowed: values.Texts = ()
    resources: ResourcesTable = field(default_factory=ResourcesTable)
    recycle: Recycle = field(default_factory=Recycle)
    log: Log = field(default_factory=Log)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTables:
    """The tables of the file, which are read one by one, each under its name."""

    host: values.Table = field(default_factory=dict)
    templates: values.Templates = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFile:
    """The contents of ``host.toml``: its templates, and the keys of ``[host]``."""

    templates: Mapping[str, Template]
    name: Text | None = None
    reserve_cpu_cores: Annotated[float, Range(0, NUMBER_MAX)] = 0.0
    reserve_memory_bytes: values.Size = field(default=0, metadata={"key": "reserve_memory"})
    gpus: Gpus = 0
    labels: values.Labels = field(default_factory=dict)
    starting_max: Annotated[int, Range(1, NUMBER_MAX)] | None = None
    """How many workers may be starting at once; ``None``: as many as suits the cores."""
    workers_max: Annotated[int, Range(0, 100_000)] = HOST_WORKERS_MAX
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


def host_file_of(document: Mapping[str, Any], *, folder: Path, breaches: list[str]) -> HostFile:
    """What ``document`` says, with the mistakes in ``breaches``; relative paths begin in ``folder``."""
    reading = Reading(breaches)
    top, _ = reading.fields_of(FileTables, document, where="the file")
    given = top.get("host", {})
    breaches += [f"[host]: unknown key {key!r}; {DETECTED[key]}" for key in given if key in DETECTED]
    given = {key: value for key, value in given.items() if key not in DETECTED}
    host, _ = reading.fields_of(HostFile, given, where="[host]", left_out=("templates",))
    if host.get("name") is not None and not is_name(host["name"]):
        breaches.append(f"[host]: name has more than {TOML_NAME_CHARS_MAX} characters")
    found = {
        name: _template(name, table, folder=folder, gpus=host.get("gpus", 0), reading=reading)
        for name, table in top.get("templates", {}).items()
    }
    if not found and not breaches:
        breaches.append("it has no [templates.NAME]: the host could run nothing")
    return HostFile(templates=found, **host)


def _template(name: str, given: Mapping[str, Any], *, folder: Path, gpus: int, reading: Reading) -> Template:
    where = f"template {name!r}"
    taken, wrong = reading.fields_of(TemplateTable, given, where=where)
    table = TemplateTable(**{"argv": (), **taken})
    variables = given.get("environment")
    names = frozenset(variables if isinstance(variables, dict) else ())  # one that is wrong hides no other
    by_argv = Reporter.NONE if worker_word(table.argv) is None else Reporter.CELERY
    template = taken_from(
        Template,
        table,
        table.resources,
        name=name,
        working_directory=str(folder / table.working_directory),
        environment_file=None if table.environment_file is None else str(folder / table.environment_file),
        ready=Ready(after_s=table.ready_after_s, pattern=table.ready_pattern, timeout_s=table.ready_timeout_s),
        stop=taken_from(Stop, table),
        recycle=replace(table.recycle, memory_bytes=table.recycle.memory_bytes or None),
        reporter=table.reporter or by_argv,
    )
    checks = (
        *_key_breaches(name, table, given.keys() | wrong),
        *_gpu_breaches(table, host_gpus=gpus, variables=names),
        *queue_argument_breaches(table.argv, table.burst_arguments, table.queues_allowed),
        *(f"environment sets {each}, which is the agent's own mark" for each in sorted(MARKS & names)),
        *_program_breaches(template),
    )
    reading.breaches += [f"{where}: {breach}" for breach in checks]
    return template


def _key_breaches(name: str, table: TemplateTable, given: Collection[str]) -> Iterator[str]:
    """What is wrong with a key that is right by itself. ``given`` are the keys that are written, rightly or wrongly."""
    if not is_name(name):
        yield f"its name must have 1 to {TOML_NAME_CHARS_MAX} characters, none of them zero"
    if is_pattern(name):
        yield f"its name {name!r} is a pattern, and a template has one name"
    try:
        if table.user is not None:
            account(table.user)
    except ValueError as error:
        yield str(error)
    if "ready_pattern" in given and "ready_after_s" in given:
        yield "ready_after_s and ready_pattern exclude each other: keep one"
    if "ready_timeout_s" in given and "ready_pattern" not in given:
        yield "ready_timeout_s needs a ready_pattern to wait for"
    if table.stop_signal == signal.SIGKILL:
        yield "stop_signal KILL would let no job finish: name the signal that the worker drains on"
    # Without a deadline nobody knows when the workers of a partitioned host have ended: no other host may run them.
    if table.isolation_drain_after_s is not None and "drain_timeout_s" not in given:
        yield (
            "isolation_drain_after_s needs a drain_timeout_s, after which workers that have not finished are killed: "
            "set one that is longer than the longest job, or leave isolation_drain_after_s out"
        )


def _gpu_breaches(table: TemplateTable, *, host_gpus: int, variables: Collection[str]) -> Iterator[str]:
    gpus = table.resources.gpus
    if gpus > host_gpus:
        yield f"resources: gpus = {gpus}, but [host] says gpus = {host_gpus}: no worker would fit"
    if gpus and VISIBLE_GPUS in variables:
        yield f"environment sets {VISIBLE_GPUS}, which the agent gives to each worker that needs gpus"


def _program_breaches(template: Template) -> Iterator[str]:
    if not Path(template.working_directory).is_dir():
        yield f"working_directory {template.working_directory} is no folder"
        return
    if not template.argv:
        return  # reported already
    program = template.argv[0]
    if "/" in program:
        path = Path(template.working_directory) / program
        if not (path.is_file() and os.access(path, os.X_OK)):
            yield f"program {program!r} is not there or not executable"
    elif shutil.which(program, path=template.environment.get("PATH")) is None:
        yield f"program {program!r} is not on PATH: install it, or give its whole path in argv"
