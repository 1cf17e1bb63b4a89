"""The options of the commands that start workers: which take a value, and which a template has not."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a command: what it takes of a template's concern, and how each is written."""

    taking: Mapping[str, str]
    """Each spelling of an option that takes a value -> its long name."""
    dropped: Mapping[str, str]
    """Long name -> why a template has it not; empty where nobody misses it."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """The short spelling of an option without a value -> its long name."""
    hazards: frozenset[str] = frozenset()
    """Those of ``dropped`` that do damage also in a template that a person wrote."""
    are_words_queues: bool = False
    """Whether the words behind the verb are queues."""


def _taking(short: Mapping[str, str], *names: str) -> Mapping[str, str]:
    return {**short, **{name: name for name in names}}


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
            "-O": "-O",
        },
        "--app",
        "--autoscale",
        "--broker",
        "--concurrency",
        "--config",
        "--exclude-queues",
        "--gid",
        "--heartbeat-interval",
        "--hostname",
        "--include",
        "--loader",
        "--logfile",
        "--loglevel",
        "--max-memory-per-child",
        "--max-tasks-per-child",
        "--pidfile",
        "--pool",
        "--prefetch-multiplier",
        "--queues",
        "--result-backend",
        "--schedule",
        "--schedule-filename",
        "--scheduler",
        "--soft-time-limit",
        "--statedb",
        "--time-limit",
        "--uid",
        "--umask",
        "--workdir",
    ),
    flags={"-B": "--beat", "-D": "--detach", "-E": "--task-events", "-q": "--quiet"},
    dropped={
        "--autoscale": "a worker that changes how many jobs it runs at once has not the slots that Headway counts",
        "--beat": "each worker would send all jobs of Celery's schedule, and without a worker nobody sends them; run "
        "`celery beat` as a service of its own, once",
        "--broker": "",
        "--concurrency": "",
        "--detach": "an agent cannot watch a worker that goes to the background",
        "--discard": "it would empty the queue at each start",
        "--exclude-queues": "",
        "--gid": "",
        "--hostname": "",
        "--logfile": "the agent keeps what a worker prints",
        "--loglevel": "",
        "--pidfile": "",
        "--purge": "it would empty the queue at each start",
        "--queues": "",
        "--quiet": "",
        "--schedule": "",
        "--schedule-filename": "",
        "--scheduler": "",
        "--statedb": "workers would share one file",
        "--uid": "",
        "--umask": "",
        "--without-heartbeat": "its broker shows no worker then, and only a reporter says what the worker does",
        "--workdir": "",
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
        "--config",
        "--connection-class",
        "--date-format",
        "--dequeue-strategy",
        "--exception-handler",
        "--job-class",
        "--job-monitoring-interval",
        "--log-format",
        "--logging-level",
        "--max-idle-time",
        "--maintenance-interval",
        "--max-jobs",
        "--name",
        "--num-workers",
        "--path",
        "--pid",
        "--queue-class",
        "--results-ttl",
        "--sentry-ca-certs",
        "--sentry-dsn",
        "--serializer",
        "--settings",
        "--url",
        "--worker-class",
        "--worker-ttl",
        "--pythonpath",
    ),
    flags={"-b": "--burst", "-q": "--quiet", "-s": "--with-scheduler", "-v": "--verbose"},
    are_words_queues=True,
    dropped={
        "--burst": "",
        "--logging-level": "",
        "--max-idle-time": "Headway itself ends workers that are idle",
        "--name": "",
        "--num-workers": "",
        "--pid": "",
        "--quiet": "",
        "--url": "",
    },
)
