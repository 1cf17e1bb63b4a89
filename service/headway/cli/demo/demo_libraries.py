"""The queue libraries that a demo can be of: how its jobs are sent, and what its workers are."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from headway.agent.config.library_presets import LibraryPreset
from headway.cli.demo.demo_jobs import DemoJobs, OpenJobs
from headway.cli.demo.demo_workloads import CONNECTION
from headway.errors import Misconfigured

WORKER_CPU_CORES = 0.02  # one that waits for a model uses little of a processor: most of this is its start


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoLibrary:
    """A queue library whose real jobs and workers a demo shows."""

    name: str
    """As in a connection, and as its package is called."""
    title: str
    requirement: str
    """What pip installs."""
    open_jobs: OpenJobs
    worker: Callable[[str, str, Mapping[str, str]], LibraryPreset]
    """How a worker that runs a job of a queue at a time is started, given the queue, the URL of the broker, and the
    settings with which the control plane is reached."""

    def require_installed(self) -> None:
        """Raises ``Misconfigured``, with what would install it, where the library is not beside Headway."""
        try:
            version(self.name)
        except PackageNotFoundError:
            raise Misconfigured(
                f"--library {self.name}: {self.title} is not installed beside Headway; "
                f"`{sys.executable} -m pip install '{self.requirement}'` does that"
            ) from None


def _rq_jobs(
    url: str,
    queues: Sequence[str],
    wait: Callable[[float], bool],
    control: Mapping[str, str],  # noqa: ARG001 - RQ's broker says all
) -> DemoJobs:
    from headway.cli.demo.libraries.rq_jobs import RqJobs

    return RqJobs(url, queues, wait)


def _rq_worker(queue: str, broker_url: str, control: Mapping[str, str]) -> LibraryPreset:  # noqa: ARG001 - RQ's broker says all
    words = ["-m", "rq.cli", "worker", "--url", broker_url, "-w", "headway.cli.demo.libraries.rq_worker.DrainingWorker"]
    return LibraryPreset(
        argv=[sys.executable, *words, "--disable-job-desc-logging", queue],
        ready_pattern="Listening on",
        cpu_cores=WORKER_CPU_CORES,
        memory="48MB",
        notes={},
    )


def _celery_jobs(
    url: str, queues: Sequence[str], wait: Callable[[float], bool], control: Mapping[str, str]
) -> DemoJobs:
    # Read by the import, as in any program that sends tasks.
    os.environ.update({**control, "HEADWAY_CONNECTION": CONNECTION})
    import headway.emit.celery  # noqa: F401 - it reports what is sent from here on
    from headway.cli.demo.libraries.celery_jobs import CeleryJobs

    return CeleryJobs(url, queues, wait)


def _celery_worker(queue: str, broker_url: str, control: Mapping[str, str]) -> LibraryPreset:
    """A prefork worker with one child, which reports its jobs by the flag that anybody's can have."""
    app = "headway.cli.demo.libraries.celery_app"
    words = ["-m", "celery", "--app", app, "worker", "--queues", queue, "--loglevel", "INFO"]
    words += ["--concurrency", "1", "--prefetch-multiplier", "1", "--without-mingle", "--without-gossip"]
    return LibraryPreset(
        argv=[sys.executable, *words, "--include", "headway.emit.celery"],
        environment={"DEMO_BROKER_URL": broker_url, "HEADWAY_CONNECTION": CONNECTION, **control},
        ready_pattern=r" ready\.$",
        cpu_cores=WORKER_CPU_CORES,
        memory="96MB",
        notes={},
    )


LIBRARIES = {
    "rq": DemoLibrary(
        name="rq",
        title="RQ",
        requirement="rq>=2.4.1",
        open_jobs=_rq_jobs,
        worker=_rq_worker,
    ),
    "celery": DemoLibrary(
        name="celery",
        title="Celery",
        requirement="celery>=5.5",
        open_jobs=_celery_jobs,
        worker=_celery_worker,
    ),
}
DEFAULT_LIBRARY = "rq"
