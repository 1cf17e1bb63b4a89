"""What a decision says of the metrics it goes by, and of the template it asks for."""

from headway.scaling.model import Note, NoteKind, QueueMetrics
from headway.scaling.policy import fallback
from headway.scaling.profile import Profile
from headway.scaling.reading.pool_reading import PoolReading
from headway.scaling.reading.sample_age import is_seen
from headway.scaling.reading.taken_jobs import RESERVED_PER_SLOT


def metrics_notes(reading: PoolReading) -> tuple[Note, ...]:
    """What people should know of the metrics and the template that a decision goes by."""
    view, queues = reading.view, reading.shown
    notes = [
        Note(
            kind=NoteKind.UNSEEN_QUEUE,
            text=f"queue {queue.queue} has not been seen in its broker",
            about=(queue.queue,),
        )
        for queue in queues
        if not is_seen(queue)
    ]
    notes += [
        Note(
            kind=NoteKind.UNREPORTED_RATES,
            text=f"what arrives, starts and ends in {queue.queue} is not reported, and estimated from its depth",
            about=(queue.queue,),
        )
        for queue in queues
        if queue.has_unknown_rates
    ]
    notes += [
        _reserved_note(queue, is_any_idle=reading.slots.is_any_idle)
        for queue in queues
        if (queue.reserved_jobs or 0) > RESERVED_PER_SLOT * reading.slots.running_slots > 0
    ]
    if not reading.freshness.is_fresh:
        notes += _stale_notes(reading)
    if view.capacity_workers is None:
        wanted = _asked_of_hosts(view.profile)
        text = f"no known host reports template {wanted}: nothing can be started"
        notes.append(Note(kind=NoteKind.NO_HOST, text=text, about=(wanted,)))
    notes += [
        Note(
            kind=NoteKind.DUE_JOBS_LEFT,
            text=f"no worker of template {view.profile.template!r} moves scheduled jobs of {queue.queue} into the "
            "queue when they are due: add --with-scheduler to its argv",
            about=(view.profile.template, queue.queue),
        )
        for queue in queues
        if view.leaves_due_jobs and (queue.delayed_jobs or queue.overdue_jobs)
    ]
    if view.is_failing:
        text = (
            f"template {view.profile.template!r} fails on every host that has it: its log there and "
            "`headway agent check` say why"
        )
        notes.append(Note(kind=NoteKind.FAILING_TEMPLATE, text=text, about=(view.profile.template,)))
    if view.start_failure is not None:
        text = f"its workers fail to start: {view.start_failure.text}"
        notes.append(Note(kind=NoteKind.START_FAILURE, text=text, about=(view.start_failure,)))
    return tuple(notes)


def _reserved_note(queue: QueueMetrics, *, is_any_idle: bool) -> Note:
    if is_any_idle:
        text = (
            f"workers hold many more jobs of {queue.queue} than they run, although slots are idle: they are due later "
            "(Celery's countdown and eta), and no other worker can have them"
        )
    else:
        text = (
            f"workers have taken many more jobs of {queue.queue} than they run, and no other worker can have those: "
            "set a prefetch (basic.qos; Celery's worker_prefetch_multiplier)"
        )
    return Note(kind=NoteKind.RESERVED_JOBS, text=text, about=(queue.queue, "idle" if is_any_idle else "busy"))


def _asked_of_hosts(profile: Profile) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in sorted(profile.placement.labels.items()))
    return f"{profile.template!r} with {labels}" if labels else f"{profile.template!r}"


def _stale_notes(reading: PoolReading) -> list[Note]:
    profile, freshness = reading.view.profile, reading.freshness
    notes = []
    # How old they are is a field: a note that changed with every evaluation would store each of them.
    if freshness.age_s is not None and not fallback.is_due(profile, reading.memory, freshness):
        after = f"{profile.stale_after_s:g} s"
        text = f"metrics are older than {after}: they lower nothing until fresh ones arrive"
        notes.append(Note(kind=NoteKind.STALE_METRICS, text=text, about=(after,)))
    direct = [
        ours.queue
        for theirs, ours in zip(reading.view.queues, reading.shown, strict=True)
        if theirs.sampled_at_s != ours.sampled_at_s
    ]
    if direct:
        text = (
            f"depths of {', '.join(direct)} come directly from the collector, because metrics are stale; they "
            f"can only raise the count"
        )
        notes.append(Note(kind=NoteKind.DIRECT_DEPTHS, text=text, about=tuple(direct)))
    return notes
