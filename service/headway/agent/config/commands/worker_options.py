"""The options of the commands that start workers: which take a value, and which a template has not."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a command: what it takes of a template's concern, and how each is written."""

    taking: Mapping[str, str]
    """Each spelling of an option that takes a value -> its long name."""
    dropped: Mapping[str, str]
    """Long name -> why a template has it not; empty where nobody misses it."""
    flags: Mapping[str, str]
    """The short spelling of an option without a value -> its long name."""
    hazards: frozenset[str] = frozenset()
    """Those of ``dropped`` that do damage also in a template that a person wrote."""
    are_words_queues: bool = False
    """Whether the words behind the verb are queues."""


def _taking(short: Mapping[str, str], *others: str) -> Mapping[str, str]:
    """Each spelling of the options that have a short one, and of ``others``."""
    return {**short, **{name: name for name in (*short.values(), *others)}}


def _unmissed(*names: str) -> Mapping[str, str]:
    return dict.fromkeys(names, "")


CELERY = Options(
    taking=_taking(
        {
            "-A": "--app",
            "-b": "--broker",
            "-c": "--concurrency",
            "-f": "--logfile",
            "-I": "--include",
            "-l": "--loglevel",
            "-n": "--hostname",
            "-P": "--pool",
            "-Q": "--queues",
            "-s": "--schedule-filename",
            "-S": "--statedb",
            "-X": "--exclude-queues",
        },
        *("-O", "--autoscale", "--config", "--gid", "--heartbeat-interval", "--loader", "--max-memory-per-child"),
        *("--max-tasks-per-child", "--pidfile", "--prefetch-multiplier", "--result-backend", "--schedule"),
        *("--scheduler", "--soft-time-limit", "--time-limit", "--uid", "--umask", "--workdir"),
    ),
    flags={"-B": "--beat", "-D": "--detach", "-E": "--task-events", "-q": "--quiet"},
    dropped={
        **_unmissed("--broker", "--concurrency", "--exclude-queues", "--gid", "--hostname", "--loglevel", "--pidfile"),
        **_unmissed("--queues", "--quiet", "--schedule", "--schedule-filename", "--scheduler", "--uid", "--umask"),
        **_unmissed("--workdir"),
        "--autoscale": "a worker that changes how many jobs it runs at once has not the slots that Headway counts",
        "--beat": "each worker would send all jobs of Celery's schedule, and without a worker nobody sends them; run "
        "`celery beat` as a service of its own, once",
        "--detach": "an agent cannot watch a worker that goes to the background",
        "--discard": "it would empty the queue at each start",
        "--logfile": "the agent keeps what a worker prints",
        "--purge": "it would empty the queue at each start",
        "--statedb": "workers would share one file",
        "--without-heartbeat": "its broker shows no worker then, and only a reporter says what the worker does",
    },
    hazards=frozenset({"--autoscale", "--beat", "--detach", "--discard", "--purge", "--without-heartbeat"}),
)
SOLO = (
    "the solo pool answers nobody while a job runs, so that RabbitMQ may cut the connection of a long job and deliver "
    "the job again; `--pool prefork --concurrency 1` runs one job at once, too"
)
RQ = Options(
    taking=_taking(
        {
            "-u": "--url",
            "-c": "--config",
            "-P": "--path",
            "-n": "--name",
            "-w": "--worker-class",
            "-j": "--job-class",
            "-S": "--serializer",
            "-ds": "--dequeue-strategy",
        },
        *("--connection-class", "--date-format", "--exception-handler", "--job-monitoring-interval", "--log-format"),
        *("--logging-level", "--max-idle-time", "--maintenance-interval", "--max-jobs", "--num-workers", "--pid"),
        *("--queue-class", "--results-ttl", "--sentry-ca-certs", "--sentry-dsn", "--settings", "--worker-ttl"),
        "--pythonpath",
    ),
    flags={"-b": "--burst", "-q": "--quiet", "-s": "--with-scheduler", "-v": "--verbose"},
    are_words_queues=True,
    dropped={
        **_unmissed("--burst", "--logging-level", "--name", "--num-workers", "--pid", "--quiet", "--url"),
        "--max-idle-time": "Headway itself ends workers that are idle",
    },
)
