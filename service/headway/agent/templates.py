"""``host.toml``: what this host can run, and how one worker of each kind is started, known to be ready, and stopped.

Only the host's owner writes it. The control plane sends names from it and counts, never a command line.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headway.agent.toml_table import TomlTable
from headway.errors import Invalid, Misconfigured
from headway.scaling import model

READY_AFTER_S = 1.0  # a program that cannot run as it was called has usually said so by then
READY_TIMEOUT_S = 60.0
DRAIN_TIMEOUT_S = 60.0  # twice what Celery, RQ and Sidekiq call a long job in their defaults
CPU_CORES = 0.1
MEMORY_BYTES = 128 * 1024 * 1024

WORKER_ID = "HEADWAY_WORKER_ID"
POOL = "HEADWAY_POOL"
AGENT_ID = "HEADWAY_AGENT_ID"
MARKS = frozenset({WORKER_ID, POOL, AGENT_ID})
"""What the agent itself puts into a worker's environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """When a worker counts as ready: it has lived for ``after_s``, or its output has shown ``pattern``."""

    after_s: float = READY_AFTER_S
    pattern: str | None = None
    timeout_s: float = READY_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """How a worker is ended: ``stop_signal`` lets it finish its jobs, ``force_signal`` ends it when time is over."""

    stop_signal: int = signal.SIGTERM
    drain_timeout_s: float = DRAIN_TIMEOUT_S
    force_signal: int = signal.SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """How this host starts one worker."""

    name: str
    argv: tuple[str, ...]
    working_directory: str
    burst_arguments: tuple[str, ...] = ()
    """Added to ``argv`` for a burst worker, so that it ends by itself when its queues are empty."""
    slots: int = 1
    environment: Mapping[str, str]
    ready: Ready = Ready()
    stop: Stop = Stop()
    cpu_cores: float = CPU_CORES
    memory_bytes: int = MEMORY_BYTES
    niceness: int = 0

    @property
    def content_hash(self) -> str:
        """The same for the same content, wherever and in whatever order it was written."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def told(self) -> model.Template:
        """What the control plane may know of it."""
        return model.Template(
            name=self.name,
            content_hash=self.content_hash,
            slots=self.slots,
            cpu_cores=self.cpu_cores,
            memory_bytes=self.memory_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFile:
    """What ``host.toml`` says."""

    templates: Mapping[str, Template]
    name: str | None = None
    reserve_cpu_cores: float = 0.0
    reserve_memory_bytes: int = 0


def load(path: Path) -> HostFile:
    """What the file at ``path`` says.

    Raises:
        Misconfigured: it cannot be read, or is not TOML.
        Invalid: with every mistake in it, programs that are not there included.
    """
    try:
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise Misconfigured(
            f"{path} cannot be read: {error.strerror}; it says what this host can run, "
            "`headway init` writes one, --host-file names another"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{path} is not TOML: {error}") from error
    breaches: list[str] = []
    found = _host_file(document, folder=path.parent.absolute(), breaches=breaches)
    if breaches:
        raise Invalid(f"{path}: {breaches[0]}", *breaches[1:])
    return found


def _host_file(document: Mapping[str, Any], *, folder: Path, breaches: list[str]) -> HostFile:
    top = TomlTable(document, "the file", breaches)
    host = TomlTable(top.table("host"), "[host]", breaches)
    templates = {
        name: _template(name, TomlTable(body, f"template {name!r}", breaches), folder=folder)
        for name, body in top.tables("templates").items()
    }
    if not templates and not breaches:
        breaches.append("it has no [templates.NAME]: the host could run nothing")
    found = HostFile(
        templates=templates,
        name=host.text("name"),
        reserve_cpu_cores=host.number("reserve_cpu_cores", default=0.0),
        reserve_memory_bytes=host.memory_bytes("reserve_memory", default=0),
    )
    host.close()
    top.close()
    return found


def _template(name: str, table: TomlTable, *, folder: Path) -> Template:
    resources = TomlTable(table.table("resources"), f"template {name!r}: resources", table.breaches)
    template = Template(
        name=name,
        argv=table.words("argv", is_needed=True),
        burst_arguments=table.words("burst_arguments"),
        working_directory=str(folder / (table.text("working_directory") or ".")),
        slots=table.whole("slots", default=1, least=1, most=10_000),
        environment=_environment(table),
        ready=_ready(table),
        stop=Stop(
            stop_signal=table.signal("stop_signal", default=signal.SIGTERM),
            drain_timeout_s=table.number("drain_timeout_s", default=DRAIN_TIMEOUT_S),
            force_signal=table.signal("force_signal", default=signal.SIGKILL),
        ),
        cpu_cores=resources.number("cpu_cores", default=CPU_CORES),
        memory_bytes=resources.memory_bytes("memory_bytes", default=MEMORY_BYTES),
        niceness=table.whole("niceness", default=0, least=0, most=19),
    )
    resources.close()
    table.close()
    if template.stop.stop_signal == signal.SIGKILL:
        table.breach("stop_signal KILL would let no job finish: name the signal that the worker drains on")
    _check_program(template, table)
    return template


def _environment(table: TomlTable) -> Mapping[str, str]:
    environment = table.environment("environment")
    for name in sorted(MARKS & set(environment)):
        table.breach(f"environment sets {name}, which is the agent's own mark")
    return environment


def _ready(table: TomlTable) -> Ready:
    given = Ready(
        after_s=table.number("ready_after_s", default=READY_AFTER_S),
        pattern=table.text("ready_pattern"),
        timeout_s=table.number("ready_timeout_s", default=READY_TIMEOUT_S),
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


def _check_program(template: Template, table: TomlTable) -> None:
    if not Path(template.working_directory).is_dir():
        table.breach(f"working_directory {template.working_directory} is no folder")
        return
    if not template.argv:
        return  # said already
    program = template.argv[0]
    if "/" in program:
        path = Path(template.working_directory) / program
        if not (path.is_file() and os.access(path, os.X_OK)):
            table.breach(f"program {program!r} is not there or not executable")
    elif shutil.which(program, path=template.environment.get("PATH")) is None:
        table.breach(f"program {program!r} is not on PATH: install it, or give its whole path in argv")
