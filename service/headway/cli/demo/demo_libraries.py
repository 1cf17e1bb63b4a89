"""The queue libraries that a demo can be of: how its jobs are sent, and what its workers are."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from headway.agent.config.library_presets import toml, toml_key, toml_list
from headway.cli.demo.demo_jobs import DemoJobs, OpenJobs
from headway.cli.demo.demo_workloads import CONNECTION
from headway.errors import Misconfigured

# A worker that waits for a model uses little of a processor: most of the core figure is its start.
TEMPLATE = """\
[templates.{template}]
argv = {argv}
environment = {{{environment}}}
ready_pattern = {ready_pattern}
resources = {{cpu_cores = 0.02, memory_bytes = {memory}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """How one worker is started."""

    argv: Sequence[str]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoLibrary:
    """A queue library whose real jobs and workers a demo shows."""

    name: str
    """As in a connection, and as its package is called."""
    title: str
    requirement: str
    """What pip installs."""
    open_jobs: OpenJobs
    worker: Callable[[str, str, Mapping[str, str]], Worker]
    """Given the queue, the URL of the broker, and the settings with which the control plane is reached."""
    ready_pattern: str
    memory: str

    def require_installed(self) -> None:
        """Raises ``Misconfigured``, with what would install it, where the library is not beside Headway."""
        try:
            version(self.name)
        except PackageNotFoundError:
            raise Misconfigured(
                f"--library {self.name}: {self.title} is not installed beside Headway; "
                f"`{sys.executable} -m pip install '{self.requirement}'` does that"
            ) from None

    def template(self, name: str, queue: str, *, broker_url: str, control: Mapping[str, str]) -> str:
        """The template ``name`` of ``host.toml``: one worker that runs a job of ``queue`` at a time."""
        worker = self.worker(queue, broker_url, control)
        return TEMPLATE.format(
            template=toml_key(name),
            argv=toml_list(worker.argv),
            environment=", ".join(f"{key} = {toml(value)}" for key, value in worker.environment.items()),
            ready_pattern=toml(self.ready_pattern),
            memory=toml(self.memory),
        )


def _rq_jobs(
    url: str,
    queues: Sequence[str],
    wait: Callable[[float], bool],
    control: Mapping[str, str],  # noqa: ARG001 - RQ's broker says all
) -> DemoJobs:
    from headway.cli.demo.libraries.rq_jobs import RqJobs

    return RqJobs(url, queues, wait)


def _rq_worker(queue: str, broker_url: str, control: Mapping[str, str]) -> Worker:  # noqa: ARG001 - RQ's broker says all
    words = ["-m", "rq.cli", "worker", "--url", broker_url, "-w", "headway.cli.demo.libraries.rq_worker.DrainingWorker"]
    return Worker(argv=[sys.executable, *words, "--disable-job-desc-logging", queue], environment={})


def _celery_jobs(
    url: str, queues: Sequence[str], wait: Callable[[float], bool], control: Mapping[str, str]
) -> DemoJobs:
    # Read by the import, as in any program that sends tasks.
    os.environ.update({**control, "HEADWAY_CONNECTION": CONNECTION})
    import headway.emit.celery  # noqa: F401 - it reports what is sent from here on
    from headway.cli.demo.libraries.celery_jobs import CeleryJobs

    return CeleryJobs(url, queues, wait)


def _celery_worker(queue: str, broker_url: str, control: Mapping[str, str]) -> Worker:
    """A prefork worker with one child, which reports its jobs by the flag that anybody's can have."""
    app = "headway.cli.demo.libraries.celery_app"
    words = ["-m", "celery", "--app", app, "worker", "--queues", queue, "--loglevel", "INFO"]
    words += ["--concurrency", "1", "--prefetch-multiplier", "1", "--without-mingle", "--without-gossip"]
    return Worker(
        argv=[sys.executable, *words, "--include", "headway.emit.celery"],
        environment={"DEMO_BROKER_URL": broker_url, "HEADWAY_CONNECTION": CONNECTION, **control},
    )


LIBRARIES = {
    "rq": DemoLibrary(
        name="rq",
        title="RQ",
        requirement="rq>=2.4.1",
        open_jobs=_rq_jobs,
        worker=_rq_worker,
        ready_pattern="Listening on",
        memory="48MB",
    ),
    "celery": DemoLibrary(
        name="celery",
        title="Celery",
        requirement="celery>=5.5",
        open_jobs=_celery_jobs,
        worker=_celery_worker,
        ready_pattern=r" ready\.$",
        memory="96MB",
    ),
}
DEFAULT_LIBRARY = "rq"
