"""What a report must be to be taken.

Reports of many hosts are written together, and every pool is placed by all of them: one number that Postgres does not
take, or a host with endless cores, would be everybody's trouble. So the server refuses it, to the host that sent it.
"""

from collections.abc import Iterator, Mapping

from headway.control.agents.report_writer import ReportHeartbeat
from headway.control.bounds import BIGINT_MAX, TEXT_CHARS_MAX, Bounds, refuse
from headway.scaling.model import STRICT_QUEUES_MAX, CutJob, Exit, HostCapacity, RunningJob, StartUp, Template, Worker
from headway.scaling.profile_keys.rules import PATH_NAME, is_path_name
from headway.store.hosts.host_reports import HostReport

GPUS_MAX = 2**31 - 1  # its integer
CORES_MAX = 1e6
ERRNO_MAX = 4095  # Linux's
QUEUES_ALLOWED_MAX = 100  # patterns of one template: as many as its host file may have
PRESSURE_MAX = 1.1  # what a kernel rounds up is no reason to lose a host
DURATION_MAX_S = 1e10  # three hundred years: no process is older


def check_names(**names: str) -> None:
    """Refuse names that are missing or no names. Raises ``Invalid``."""
    refuse(f"{key} {_why_no_name(value)}" for key, value in names.items() if _why_no_name(value))


def check_host_name(name: str) -> None:
    """Refuse a name by which nobody could cordon, forget or revoke the host: these have it in their paths.

    Raises:
        Invalid: it is none of those that the HTTP API can be asked for.
    """
    if not is_path_name(name):
        refuse([f"host_name must be {PATH_NAME}"])


def check_size(bounds: Bounds, *, workers: int, templates: int, labels: int, learned_templates: int) -> None:
    """Refuse a report of more than one host may send, before any of it is read.

    Args:
        bounds: the most of each.
        workers: how many it holds.
        templates: how many it holds.
        labels: the most of the host's, and of any template's.
        learned_templates: names of templates among start-ups and exits.

    Raises:
        Invalid: it holds too many of one.
    """
    of_templates = (bounds.templates_per_host_max, "HEADWAY_TEMPLATES_PER_HOST")
    refuse(
        f"host reports {count} {what}, at most {most} are taken: have fewer, or raise {setting} of the control plane"
        for what, count, (most, setting) in (
            ("workers", workers, (bounds.workers_per_host_max, "HEADWAY_WORKERS_PER_HOST")),
            ("templates", templates, of_templates),
            ("labels in one place", labels, (bounds.labels_max, "HEADWAY_LABELS")),
            ("templates in start-ups and exits", learned_templates, of_templates),
        )
        if count > most
    )


def check_heartbeat(heartbeat: ReportHeartbeat) -> None:
    """Refuse what must not be written with others' heartbeats. Raises ``Invalid``."""
    refuse(_heartbeat_breaches(heartbeat))


def check_report(report: HostReport) -> None:
    """Refuse what must not be written with others' reports; its heartbeat is checked apart. Raises ``Invalid``."""
    refuse(_report_breaches(report))


def _heartbeat_breaches(heartbeat: ReportHeartbeat) -> Iterator[str]:
    if why := _why_no_name(heartbeat.boot_id):
        yield f"boot_id {why}"
    for name in ("sequence", "epoch_seen"):
        if getattr(heartbeat, name) > BIGINT_MAX:
            yield f"{name}={getattr(heartbeat, name)} exceeds {BIGINT_MAX}"
    yield from _capacity_breaches(heartbeat.capacity)


def _capacity_breaches(capacity: HostCapacity) -> Iterator[str]:
    yield from _resource_breaches("host", capacity)
    for name in ("cpu_pressure", "memory_pressure"):
        value = getattr(capacity, name)
        if value is not None and not 0.0 <= value <= PRESSURE_MAX:
            yield f"host: {name}={value} is no share from 0 to 1"


def _resource_breaches(what: str, resources: HostCapacity | Template) -> Iterator[str]:
    if not 0.0 <= resources.cpu_cores <= CORES_MAX:
        yield f"{what}: cpu_cores={resources.cpu_cores} is not from 0 to {CORES_MAX:.0f}"
    if not 0 <= resources.memory_bytes <= BIGINT_MAX:
        yield f"{what}: memory_bytes={resources.memory_bytes} is not from 0 to {BIGINT_MAX}"
    if not 0 <= resources.gpus <= GPUS_MAX:
        yield f"{what}: gpus={resources.gpus} is not from 0 to {GPUS_MAX}"


def _report_breaches(report: HostReport) -> Iterator[str]:
    yield from _label_breaches("host", report.labels)
    for template in report.templates:
        yield from _template_breaches(template)
    for worker in report.workers:
        yield from _worker_breaches(worker, now_s=report.received_at_s)
    for start_up in report.start_ups:
        yield from _timing_breaches("start-up", start_up, start_up.start_up_s)
    for each in report.exits:
        yield from _timing_breaches("exit", each, each.exit_s)
    for cut in report.cuts:
        yield from _cut_breaches(cut, now_s=report.received_at_s)
    for problem in report.problems:
        if not 0 <= problem.error_number <= ERRNO_MAX:
            yield f"problem {problem.kind}: error_number={problem.error_number} is not from 0 to {ERRNO_MAX}"


def _timing_breaches(what: str, timing: StartUp | Exit, took_s: float) -> Iterator[str]:
    durations_s = (took_s, timing.cpu_s or 0.0, timing.waited_s or 0.0)
    if not (_is_name(timing.template) and all(map(_is_duration, durations_s))):
        yield (
            f"{what} of template {timing.template!r}: {took_s} s with {timing.cpu_s} s of processors and "
            f"{timing.waited_s} s without is no duration, or the name is none"
        )


def _template_breaches(template: Template) -> Iterator[str]:
    what = f"template {template.name!r}"
    if not (_is_name(template.name) and _is_text(template.content_hash) and _is_text(template.job_limit)):
        yield f"{what}: its name or hash is too long or holds what is no text"
    if len(template.strict_queues) > STRICT_QUEUES_MAX or not all(map(_is_name, template.strict_queues)):
        yield f"{what}: strict_queues has more than {STRICT_QUEUES_MAX} names, or one that is too long or no text"
    if len(template.queues_allowed) > QUEUES_ALLOWED_MAX or not all(map(_is_name, template.queues_allowed)):
        yield f"{what}: queues_allowed has more than {QUEUES_ALLOWED_MAX} patterns, or one that is too long or no text"
    yield from _resource_breaches(what, template)
    yield from _label_breaches(what, template.labels)
    for name in ("isolation_drain_after_s", "drain_timeout_s", "job_limit_s"):
        value = getattr(template, name)
        if value is not None and not _is_duration(value):
            yield f"{what}: {name}={value} is no duration in seconds"


def _worker_breaches(worker: Worker, *, now_s: float) -> Iterator[str]:
    what = f"worker {worker.worker_id!r}"
    # One that was found by what it prints to has no pool and no template that anybody could read.
    texts = (worker.pool, worker.template, worker.template_hash)
    if not (_is_name(worker.worker_id) and all(map(_is_text, texts))):
        yield f"{what}: its id, pool, template or hash is too long or holds what is no text"
    if not _is_duration(now_s - worker.started_at_s):
        yield f"{what}: its age of {now_s - worker.started_at_s} s is no duration"
    if worker.state_since_s is not None and not _is_duration(now_s - worker.state_since_s):
        yield f"{what}: {now_s - worker.state_since_s} s in its state is no duration"
    if worker.activity_known_at_s is not None and not _is_duration(now_s - worker.activity_known_at_s):
        yield f"{what}: evidence of what it does that is {now_s - worker.activity_known_at_s} s old has no such age"
    if not all(map(_is_running_job, worker.running)):
        yield f"{what}: a running job's id, queue or class is too long or no text, or its start is no time"
    if worker.restart_generation > BIGINT_MAX or (worker.memory_bytes or 0) > BIGINT_MAX:
        yield f"{what}: a number of it exceeds {BIGINT_MAX}"


def _cut_breaches(cut: CutJob, *, now_s: float) -> Iterator[str]:
    what = f"cut {cut.cut_id!r}"
    if not (_is_name(cut.cut_id) and _is_name(cut.worker_id) and _is_name(cut.pool) and _is_text(cut.template)):
        yield f"{what}: its id, worker, pool or template is too long or no text"
    if cut.cut_at_s is not None and not _is_duration(now_s - cut.cut_at_s):
        yield f"{what}: its age of {now_s - cut.cut_at_s} s is no duration"
    if cut.job is not None and not _is_running_job(cut.job):
        yield f"{what}: its job's id, queue or class is too long or no text, or its start is no time"


def _is_running_job(job: RunningJob) -> bool:
    is_named = _is_name(job.job_id) and _is_name(job.queue) and _is_text(job.job_class or "")
    return is_named and 0.0 <= job.started_at_s <= DURATION_MAX_S


def _label_breaches(what: str, labels: Mapping[str, str]) -> Iterator[str]:
    for key, value in labels.items():
        if not (_is_name(key) and _is_text(value)):
            yield f"{what}: label {key!r} is too long or holds what is no text"


def _why_no_name(value: str) -> str | None:
    if not value:
        return "is empty"
    if _is_text(value) and value.isprintable():
        return None
    return f"is longer than {TEXT_CHARS_MAX} characters, or holds what cannot be printed"


def _is_name(value: str) -> bool:
    return bool(value) and _is_text(value)


def _is_text(value: str) -> bool:
    # Neither a column nor JSON in Postgres takes a zero character. What is no Unicode does not cross the wire.
    return len(value) <= TEXT_CHARS_MAX and "\0" not in value


def _is_duration(value_s: float) -> bool:
    # A clock's own rounding may leave a worker that has just begun a little before its beginning. NaN is no duration.
    return -1.0 <= value_s <= DURATION_MAX_S
