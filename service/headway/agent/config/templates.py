"""How a host starts one worker of each kind, knows that it is ready, maintains it, and stops it. Values only.

``host_file`` reads them. The control plane sends names of them and counts, never a command line.
"""

import hashlib
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from headway.agent.config.commands.queue_arguments import fills_queues
from headway.agent.config.commands.queue_orders import queue_order_of
from headway.agent.config.commands.references import reference_to
from headway.agent.config.commands.worker_commands import leaves_due_jobs
from headway.agent.config.host_file_values import BYTES_MAX, NUMBER_MAX, Pattern, Size, Umask
from headway.agent.config.own_limits import own_limits
from headway.agent.system.users import account
from headway.local.procfs import SIGNALS_MAX
from headway.scaling import model
from headway.scaling.fields import taken_from
from headway.scaling.keys import Range

TEMPLATE_READY_AFTER_S = 1.0  # a program that cannot run as it was called has usually failed by then
READY_TIMEOUT_S = 60.0
CPU_CORES = 0.1
MEMORY_BYTES = 128 * 1024 * 1024
LOG_BYTES_MAX = 10 * 1024 * 1024
LOG_BYTES_MIN = 4096  # less would cut off the last words of a worker that failed
LOG_FILES = 1
LOG_FILES_MAX = 100

WORKER_ID = "HEADWAY_WORKER_ID"
WORKER_NUMBER = "HEADWAY_WORKER_NUMBER"
REFERENCES = frozenset({WORKER_ID, WORKER_NUMBER})
"""The names whose values a template may refer to."""
WORKER_ID_IN_ARGV = reference_to(WORKER_ID)
POOL = "HEADWAY_POOL"
AGENT_ID = "HEADWAY_AGENT_ID"
STARTED_AS = "HEADWAY_STARTED_AS"
GPUS = "HEADWAY_GPUS"
VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
REPORTER_PIPE = "HEADWAY_REPORTER_PIPE"
MARKS = frozenset({WORKER_ID, WORKER_NUMBER, POOL, AGENT_ID, STARTED_AS, GPUS, REPORTER_PIPE})
"""What the agent itself puts into a worker's environment."""


class Reporter(StrEnum):
    """What a worker loads to report its jobs to the agent, or that it loads nothing."""

    CELERY = "celery"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """When a worker counts as ready: it has lived for ``after_s``, or its output has shown ``pattern``."""

    after_s: Annotated[float, Range(0, NUMBER_MAX)] = TEMPLATE_READY_AFTER_S
    pattern: Pattern | None = None
    timeout_s: Annotated[float, Range(0, NUMBER_MAX)] = READY_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """How a worker is ended: ``stop_signal`` lets it finish its jobs, ``force_signal`` ends it when time is over."""

    stop_signal: Annotated[int, Range(1, SIGNALS_MAX)] = signal.SIGTERM
    drain_timeout_s: Annotated[float, Range(0, NUMBER_MAX)] | None = None
    """``None``: nobody has set a deadline, and a worker may take any time to finish its jobs."""
    force_signal: Annotated[int, Range(1, SIGNALS_MAX)] = signal.SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Recycle:
    """When a worker has served for long enough and another takes its place; ``None``: it never has."""

    after_s: Annotated[float, Range(0, NUMBER_MAX, "low")] | None = None
    jobs: Annotated[int, Range(1, NUMBER_MAX)] | None = None
    memory_bytes: Size | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """How much of what a worker prints is kept: ``bytes_max`` a file, the one it prints to and ``files`` older ones."""

    bytes_max: Annotated[Size, Range(LOG_BYTES_MIN, BYTES_MAX)] = LOG_BYTES_MAX
    files: Annotated[int, Range(0, LOG_FILES_MAX)] = LOG_FILES


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
    environment_file: str | None = None
    """The file of further variables, which is read at each start; those of ``environment`` take precedence."""
    user: str | None = None
    """Who it runs as; ``None``: who the agent runs as."""
    umask: Umask | None = None
    """``None``: the agent's."""
    ready: Ready = Ready()
    stop: Stop = Stop()
    recycle: Recycle = Recycle()
    log: Log = Log()
    cpu_cores: float = CPU_CORES
    memory_bytes: int = MEMORY_BYTES
    gpus: int = 0
    is_measured: bool = True
    """Whether what its workers really take counts more than ``cpu_cores`` and ``memory_bytes``, once it is known."""
    niceness: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    isolation_drain_after_s: float | None = None
    reporter: Reporter = Reporter.NONE
    queues_allowed: tuple[str, ...] = ()
    """Patterns of the queues whose names may stand in the place of ``$(HEADWAY_QUEUES)`` in ``argv``."""

    @property
    def fills_queues(self) -> bool:
        """Whether a worker is started with the names of its pool's queues."""
        return fills_queues(self.argv)

    @property
    def content_hash(self) -> str:
        """The same for all that starts the same process, wherever and in whatever order it was written.

        Keys that only describe how to maintain a worker are left out: they hold for running workers, too, and replace
        none.
        """
        hashed: dict[str, Any] = {
            "argv": self.argv,
            "burst_arguments": self.burst_arguments,
            "working_directory": self.working_directory,
            "slots": self.slots,
            "environment": dict(self.environment),
            "niceness": self.niceness,
        }
        # What is added later counts where it is used: no worker is replaced because the agent became a newer one.
        later = {
            "user": self.user,
            "gpus": self.gpus,
            "environment_file": self.environment_file,
            "umask": None if self.umask is None else f"{self.umask:04o}",
        }
        hashed |= {name: value for name, value in later.items() if value}
        canonical = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text in which references are replaced at a start."""
        return (*self.argv, *self.burst_arguments, *self.environment.values())

    @property
    def is_numbered(self) -> bool:
        """Whether its workers are started by their numbers, as shards are: two with the same would do the same."""
        return any(reference_to(WORKER_NUMBER) in text for text in self.texts)

    def reported(self) -> model.Template:
        """What the control plane may know of it."""
        own = own_limits(self.argv)
        limit = {"job_limit_s": own[0].after_s, "job_limit": own[0].option} if own else {}
        order, strict_queues = queue_order_of(self.argv)
        return taken_from(
            model.Template,
            self,
            self.stop,
            leaves_due_jobs=leaves_due_jobs(self.argv),
            queue_order=order,
            strict_queues=() if self.fills_queues else strict_queues,  # then their order is the pool's
            **limit,
        )


def uid_of(template: Template) -> int | None:
    """Who its workers run as; ``None`` where the user is not known here any more."""
    try:
        found = account(template.user) if template.user else None
    except ValueError:
        return None
    return found.uid if found else os.geteuid()
