"""What a decision says of the metrics it goes by, and of the template it asks for."""

from headway.scaling.model import QueueMetrics
from headway.scaling.policy import fallback
from headway.scaling.profile import Profile
from headway.scaling.reading.busy_slots import is_any_slot_idle
from headway.scaling.reading.pool_reading import PoolReading
from headway.scaling.reading.sample_age import is_seen
from headway.scaling.reading.taken_jobs import RESERVED_PER_SLOT


def metrics_notes(reading: PoolReading) -> tuple[str, ...]:
    """What people should know of the metrics and the template that a decision goes by."""
    view, seen = reading.view, reading.shown
    notes = [f"queue {queue.queue} has not been seen in its broker" for queue in seen.queues if not is_seen(queue)]
    notes += [
        f"what arrives, starts and ends in {queue.queue} is not reported, and estimated from its depth"
        for queue in seen.queues
        if queue.has_unknown_rates
    ]
    notes += [
        _reserved_note(queue, is_any_idle=is_any_slot_idle(view))
        for queue in seen.queues
        if (queue.reserved_jobs or 0) > RESERVED_PER_SLOT * view.running_workers * view.slots_per_worker > 0
    ]
    if not reading.freshness.is_fresh:
        notes += _stale_notes(reading)
    if view.capacity_workers is None:
        notes.append(f"no known host reports template {_asked_of_hosts(view.profile)}: nothing can be started")
    notes += [
        f"no worker of template {view.profile.template!r} moves scheduled jobs of {queue.queue} into the queue when "
        "they are due: add --with-scheduler to its argv"
        for queue in seen.queues
        if view.leaves_due_jobs and _may_be_unmoved(queue, idle_workers=view.idle_workers)
    ]
    if view.is_failing:
        notes.append(
            f"template {view.profile.template!r} fails on every host that has it: its log there and "
            "`headway agent check` say why"
        )
    if view.start_failure is not None:
        notes.append(f"its workers fail to start: {view.start_failure.text}")
    return tuple(notes)


def _reserved_note(queue: QueueMetrics, *, is_any_idle: bool) -> str:
    if is_any_idle:
        return (
            f"workers hold many more jobs of {queue.queue} than they run, although slots are idle: they are due later "
            "(Celery's countdown and eta), and no other worker can have them"
        )
    return (
        f"workers have taken many more jobs of {queue.queue} than they run, and no other worker can have those: set a "
        "prefetch (basic.qos; Celery's worker_prefetch_multiplier)"
    )


def _may_be_unmoved(queue: QueueMetrics, *, idle_workers: int | None) -> bool:
    """Whether jobs are due later or were due, or wait beside idle workers, as those do that nobody moved."""
    return bool(queue.delayed_jobs or queue.overdue_jobs or (queue.waiting_jobs and idle_workers))


def _asked_of_hosts(profile: Profile) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in sorted(profile.placement.labels.items()))
    return f"{profile.template!r} with {labels}" if labels else f"{profile.template!r}"


def _stale_notes(reading: PoolReading) -> list[str]:
    profile, freshness, notes = reading.view.profile, reading.freshness, []
    # How old they are is a field: a note that changed with every evaluation would store each of them.
    if freshness.age_s is not None and not fallback.is_due(profile, reading.memory, freshness):
        notes.append(f"metrics are older than {profile.stale_after_s:g} s: they lower nothing until fresh ones arrive")
    direct = [
        ours.queue
        for theirs, ours in zip(reading.view.queues, reading.shown.queues, strict=True)
        if theirs.sampled_at_s != ours.sampled_at_s
    ]
    if direct:
        notes.append(
            f"depths of {', '.join(direct)} come directly from the collector, because metrics are stale; they "
            f"can only raise the count"
        )
    return notes
