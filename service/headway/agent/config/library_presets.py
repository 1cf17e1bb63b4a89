"""Where a template of ``host.toml`` begins: how a worker of each well-known library is started and stopped. Pure text.

A person changes the names of the application and the queue, and what their jobs need. The signals are what matters: the
wrong one loses running jobs.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from headway.agent.config.templates import WORKER_ID_IN_ARGV, Reporter
from headway.errors import printable

HOST_HEAD = """\
# What this host can run, and how one worker of each kind is started and stopped. Only this file says what is run here:
# a control plane sends names from it and numbers, never a command. Every key: docs/reference/host-file.md.
"""
CELERY_NODE = ("--hostname", f"worker-{WORKER_ID_IN_ARGV}@%h")
"""On RabbitMQ, a second worker of the same name cannot start: each locks a queue that is named after it."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LINE_LENGTH = 110
_UNBUFFERED = MappingProxyType({"PYTHONUNBUFFERED": "1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPreset:
    """How one worker of a library is started and stopped, as a person would write it down."""

    argv: Sequence[str]
    burst_arguments: Sequence[str] = ()
    slots: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = "."
    user: str | None = None
    ready_pattern: str
    stop_signal: str = "TERM"
    cpu_cores: float = 0.1
    memory: str
    reporter: Reporter | None = None
    """What its workers load to report their jobs; ``None``: there is none for them."""
    notes: Mapping[str, str]
    """Key -> what is to be known of it."""
    remarks: Sequence[str] = ()
    """What is to be known of this one alone, a sentence each."""


NOTES = MappingProxyType(
    {
        "argv": "as you would type it, without a shell",
        "burst_arguments": "added for a worker that shall end when the queue is empty",
        "slots": "jobs that one worker runs at once: as many as argv sets",
        "working_directory": "where your code is found; relative to this file's folder",
        "ready_pattern": "printed when the worker begins to take jobs",
        "stop_signal": "finishes the jobs that it has, then ends",
        "cpu_cores": "what one worker needs; the host takes no more workers than fit",
        "memory_bytes": "add what your jobs need",
        "reporter": 'the agent loads it into each worker and knows which jobs run; "none": it loads nothing',
    }
)


def _noted(**more: str) -> Mapping[str, str]:
    return MappingProxyType({**NOTES, **more})


RQ_SAFE = ("--worker-class", "headway.workers.rq.DrainingWorker")
RQ = LibraryPreset(
    argv=("rq", "worker", *RQ_SAFE, "QUEUE"),
    burst_arguments=("--burst",),
    ready_pattern="Listening on",
    memory="128MB",
    notes=_noted(
        argv="RQ's own worker can lose a job that it has just taken when it is asked to stop; this one, which Headway "
        "brings, cannot",
        memory_bytes="RQ's worker and the process of its job; add what your jobs need",
    ),
)

STARTERS: Mapping[str, LibraryPreset] = MappingProxyType(
    {
        "arq": LibraryPreset(
            argv=("arq", "APP.WorkerSettings"),
            burst_arguments=("--burst",),
            slots=10,
            ready_pattern="Starting worker for",
            memory="128MB",
            notes=_noted(
                slots="as many as max_jobs of your WorkerSettings",
                stop_signal="cancels running jobs at once, to be run again, unless job_completion_wait is set",
            ),
        ),
        "celery": LibraryPreset(
            argv=(
                *("celery", "--app", "APP", "worker", "--queues", "QUEUE", "--concurrency", "4", "--loglevel", "INFO"),
                *("-O", "fair", "--prefetch-multiplier", "1", "--without-mingle", "--without-gossip", *CELERY_NODE),
            ),
            slots=4,
            ready_pattern=r" ready\.$",
            cpu_cores=0.4,
            memory="256MB",
            reporter=Reporter.CELERY,
            notes=_noted(
                argv="without --prefetch-multiplier 1 a worker hoards four jobs for each that it runs; with the pool "
                "prefork, Celery 5.6 and Redis, --disable-prefetch makes it take only what it runs"
            ),
        ),
        "dramatiq": LibraryPreset(
            argv=("dramatiq", "APP", "--queues", "QUEUE", "--processes", "1", "--threads", "4"),
            slots=4,
            ready_pattern="Worker process is ready for action",
            cpu_cores=0.4,
            memory="128MB",
            notes=_noted(
                stop_signal="finishes the jobs that it has, for 600 s unless --worker-shutdown-timeout says otherwise; "
                "then Dramatiq interrupts them"
            ),
        ),
        "huey": LibraryPreset(
            argv=("huey_consumer", "APP.huey", "--workers", "1"),
            environment=_UNBUFFERED,
            ready_pattern="Huey consumer started",
            stop_signal="INT",
            memory="128MB",
            notes=_noted(stop_signal="INT, not TERM, which ends Huey at once and loses its running jobs"),
        ),
        "laravel": LibraryPreset(
            argv=("php", "artisan", "queue:work", "redis", "--queue", "QUEUE", "--tries", "3", "--timeout", "60"),
            burst_arguments=("--stop-when-empty",),
            ready_pattern="Processing jobs from",
            memory="128MB",
            notes=_noted(argv="a job that runs for longer than --timeout is killed, whether its worker stops or not"),
        ),
        "procrastinate": LibraryPreset(
            argv=("procrastinate", "--app", "APP.app", "worker", "--queues", "QUEUE", "--concurrency", "1"),
            environment={"PYTHONPATH": "."},
            burst_arguments=("--one-shot",),
            ready_pattern="Starting worker on",
            memory="128MB",
            notes=_noted(environment="Procrastinate itself does not search the folder it is started in for your code"),
        ),
        "rq": RQ,
        "sidekiq": LibraryPreset(
            argv=("bundle", "exec", "sidekiq", "--queue", "QUEUE", "--concurrency", "5", "--timeout", "60"),
            slots=5,
            ready_pattern="Starting processing",
            cpu_cores=0.5,
            memory="512MB",
            notes=_noted(argv="--timeout is Sidekiq's own: so long after stop_signal it gives back the jobs that run"),
        ),
        "taskiq": LibraryPreset(
            argv=("taskiq", "worker", "APP:broker", "--workers", "1", "--max-async-tasks", "10"),
            slots=10,
            ready_pattern="Listening started",
            memory="128MB",
            notes=_noted(),
        ),
    }
)


def host_text(templates: Mapping[str, LibraryPreset]) -> str:
    """``host.toml`` with a table a template. The first table explains each key."""
    names = list(templates)
    return HOST_HEAD + "".join(
        "\n" + template_text(name, templates[name], is_first=name == names[0]) for name in templates
    )


def template_text(name: str, starter: LibraryPreset, *, is_first: bool) -> str:
    """The table of one template."""
    notes = starter.notes if is_first else {}
    values = {"argv": toml_list(starter.argv)}
    if starter.environment:
        pairs = (f"{toml_key(key)} = {toml(value)}" for key, value in starter.environment.items())
        values["environment"] = f"{{{', '.join(pairs)}}}"
    if starter.burst_arguments:
        values["burst_arguments"] = toml_list(starter.burst_arguments)
    values |= {
        **({"slots": str(starter.slots)} if starter.slots > 1 else {}),
        "working_directory": toml(starter.working_directory),
        **({"user": toml(starter.user)} if starter.user else {}),
        "ready_pattern": toml(starter.ready_pattern),
        "ready_timeout_s": "60",
        "stop_signal": toml(starter.stop_signal),
        **({"reporter": toml(starter.reporter)} if starter.reporter else {}),
    }
    resources = {"cpu_cores": f"{starter.cpu_cores:g}", "memory_bytes": toml(starter.memory)}
    lines = [
        *(f"# {printable(remark)}" for remark in starter.remarks),
        f"[templates.{toml_key(name)}]",
        *aligned(values, notes, separator=" = ", indent=0),
        "",
        f"[templates.{toml_key(name)}.resources]",
        *aligned(resources, notes, separator=" = ", indent=0),
    ]
    return "\n".join(lines) + "\n"


def aligned(values: Mapping[str, str], notes: Mapping[str, str], *, separator: str, indent: int) -> list[str]:
    """A line a key; what explains it stands above the line where the line itself is long."""
    lines = []
    for key, value in values.items():
        line = " " * indent + f"{key}{separator}{value}"
        if key not in notes:
            lines.append(line)
        elif len(line) + len(notes[key]) < _LINE_LENGTH:
            lines.append(f"{line}  # {notes[key]}")
        else:
            lines += [" " * indent + f"# {notes[key]}", line]
    return lines


def toml(text: str) -> str:
    """``text`` as a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def toml_list(words: Sequence[str]) -> str:
    """``words`` as a TOML list."""
    return f"[{', '.join(map(toml, words))}]"


def toml_key(text: str) -> str:
    """``text`` as a TOML key."""
    return text if _BARE_KEY.fullmatch(text) else toml(text)
