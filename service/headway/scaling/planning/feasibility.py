"""Whether an objective can be kept by reacting, and what stands in its way. Reported before a job is late."""

import math
from collections.abc import Sequence

from headway.scaling.arithmetic import SHORTEST_S
from headway.scaling.group import Group, smallest
from headway.scaling.model import Note, NoteKind, QueueMetrics
from headway.scaling.planning.queueing import slots_for_burst
from headway.scaling.policy import fallback
from headway.scaling.policy.activation import in_vain
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.pauses import PAUSES, WORDS
from headway.scaling.profile_keys.schedule import text_of
from headway.scaling.reading.pool_reading import PoolReading
from headway.scaling.reading.pool_times import MARGIN_S, SERVICE_TIME_GUESS_S, START_UP_GUESS_S, PoolTimes
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.view import TICK_S

BURST_DIGITS = 2  # of what is remembered of bursts: older ones fade, and a note that changes is stored again
START_UP_DIGITS = 3  # of what is measured of starts


def feasibility(
    profile: Profile,
    *,
    start_up_s: float | None,
    tick_s: float = TICK_S,
    slots_per_worker: int = 1,
    arrival_rate_per_s: float | None = None,
    service_time_s: float | None = None,
    burst_jobs: float | None = None,
    standing_workers: int = 0,
    groups: Sequence[Group] = (),
) -> tuple[Note, ...]:
    """A note for each reason why ``profile`` cannot meet its objective; none where it can.

    What is not known is guessed (``start_up_s``, ``service_time_s``) or taken for very little (``arrival_rate_per_s``).
    ``burst_jobs`` come within a tick beyond what the rate brings (``Advice.burst_jobs``). ``standing_workers`` are
    pre-warmed by the demand of a strategy; they serve like a floor. ``groups`` are those that the pool is in.
    """
    service_s = service_time_s or profile.service_time_guess_s or SERVICE_TIME_GUESS_S
    busy_workers = (arrival_rate_per_s or 0.0) * service_s / slots_per_worker
    burst = float(f"{burst_jobs:.{BURST_DIGITS}g}") if burst_jobs else 0.0
    left_s = max(0.0, profile.shortest_target_s - MARGIN_S)
    burst_slots = slots_for_burst(burst, max(service_s, SHORTEST_S), left_s) if burst else 0
    # Of the mean load a part is bursts that are over: what does not fill a worker is no load beside the next one.
    beside = math.floor(busy_workers) if burst_slots else 0
    needed = max(1, math.ceil(busy_workers), beside + math.ceil(burst_slots / slots_per_worker))
    notes = [
        _standing(
            profile,
            start_up_s=start_up_s,
            tick_s=tick_s,
            needed=needed,
            burst_jobs=burst if needed > max(1, math.ceil(busy_workers)) else 0.0,
            standing_workers=standing_workers,
        ),
        _too_few(profile, busy_workers=busy_workers),
        _too_small_group(groups, busy_workers=busy_workers, slots_per_worker=slots_per_worker),
        _too_slow(profile, arrival_rate_per_s=arrival_rate_per_s),
        _unpaid_floor(profile),
        in_vain(profile, PoolTimes(known_start_up_s=start_up_s, tick_s=tick_s)),
    ]
    return tuple([note for note in notes if note])


def circumstances(
    reading: PoolReading, *, burst_jobs: float | None = None, standing_workers: int = 0
) -> tuple[Note, ...]:
    """What else speaks in a decision: what a person or a clock has set, what is not known, and what cannot be kept.

    ``burst_jobs`` are those of its strategy's ``Advice``, and
    ``standing_workers`` what the strategy pre-warms now.
    """
    view, now_s = reading.view, reading.now_s
    profile, queue = view.profile, pooled(view.queues)
    notes = []
    if pause := profile.pause_at(now_s):
        notes.append(_exact(NoteKind.PAUSE, pause.text))
    elif profile.mode in PAUSES:
        notes.append(_exact(NoteKind.PAUSE, f"{WORDS[profile.mode]} by the profile's mode"))
    if override := profile.override_at(now_s):
        text = f"override of {override.workers} workers until {text_of(override.until_s)}: {override.reason}"
        notes.append(_exact(NoteKind.OVERRIDE, text))
    bounds = profile.bounds_at(now_s, view.zones)
    if bounds.schedules:
        text = f"workers {bounds.workers_min}..{bounds.workers_max} by schedule: {', '.join(bounds.schedules)}"
        notes.append(_exact(NoteKind.SCHEDULE, text))
    if fallback.is_due(profile, reading.memory, reading.freshness):
        notes.append(fallback.note(profile))
    return (
        *notes,
        *feasibility(
            profile,
            start_up_s=view.start_up_s,
            tick_s=view.tick_s,
            slots_per_worker=view.slots_per_worker,
            arrival_rate_per_s=queue.arrival_rate_per_s,
            service_time_s=queue.service_time_s,
            burst_jobs=burst_jobs,
            standing_workers=standing_workers,
            groups=view.groups,
        ),
    )


def _exact(kind: NoteKind, text: str) -> Note:
    """A note whose figures are settings: another one is news."""
    return Note(kind=kind, text=text, about=(text,))


def _infeasible(text: str, *about: str) -> Note:
    return Note(kind=NoteKind.INFEASIBLE, text=text, about=about)


def _standing(
    profile: Profile, *, start_up_s: float | None, tick_s: float, needed: int, burst_jobs: float, standing_workers: int
) -> Note | None:
    """A worker asked for when a job is first seen comes a tick and a start-up later."""
    target_s = profile.shortest_target_s
    ready_s = START_UP_GUESS_S if start_up_s is None else start_up_s
    late_s = ready_s + tick_s + profile.hold_up_s
    floor = max(profile.workers_min, standing_workers) if profile.pinned is None else profile.pinned
    if late_s <= target_s or floor >= needed:
        return None
    shown_s = float(f"{ready_s:.{START_UP_DIGITS}g}")
    terms = [f"start-up {shown_s:g} s{' (a guess)' if start_up_s is None else ''}", f"tick {tick_s:g} s"]
    if profile.hold_up_s:
        terms.append(f"hold_up_s {profile.hold_up_s:g} s")
    what = "worker" if needed == 1 else "workers"
    key = "workers_min" if profile.pinned is None else "pinned"
    ceiling = "" if needed <= profile.workers_max else f"; workers_max={profile.workers_max} does not allow them"
    bursts = f", and {burst_jobs:,.0f} jobs arrive together" if burst_jobs else ""
    text = f"keep {needed} {what} warm ({key}): {' + '.join(terms)} > {target_s:g} s{bursts}{ceiling}"
    return _infeasible(text, key, ceiling)


def _too_few(profile: Profile, *, busy_workers: float) -> Note | None:
    """Whatever the start-up: with fewer slots than are busy on average the backlog grows for ever."""
    most = max([profile.workers_max, *[each.workers_max or 0 for each in profile.schedules]])
    name = "workers_max"
    if profile.pinned is not None:
        most, name = profile.pinned, "pinned"
    if busy_workers <= most:
        return None
    text = f"{name}={most} cannot keep up: what arrives keeps {busy_workers:.1f} workers busy"
    return _infeasible(text, f"{name}={most}")


def _too_small_group(groups: Sequence[Group], *, busy_workers: float, slots_per_worker: int) -> Note | None:
    """The pool alone fills its group. Whether the pools of a group fit together, shows where they share its cap."""
    if not groups:
        return None
    group = smallest(groups, slots_per_worker)
    if busy_workers <= group.ceiling_workers(slots_per_worker):
        return None
    cap = f"{group.key}={group.cap} of group {group.name!r}"
    return _infeasible(f"{cap} cannot keep up: what arrives keeps {busy_workers:.1f} workers of this pool busy", cap)


def too_small_together(group: Group, busy_units: Sequence[float]) -> Note | None:
    """A note if what arrives in the pools of ``group`` keeps more busy than its cap allows; ``None`` if it does not.

    ``busy_units`` are workers, or slots, that arrivals keep busy, of each of its pools. A pool that is too much alone
    says so itself.
    """
    together = sum(busy_units)
    if together <= group.cap or max(busy_units) > group.cap:
        return None
    cap = f"{group.key}={group.cap} of group {group.name!r}"
    unit = "slots" if group.is_in_slots else "workers"
    return _infeasible(f"{cap} cannot keep up: what arrives in its pools keeps {together:.1f} {unit} busy", cap)


def busy_slots_of(queue: QueueMetrics, profile: Profile) -> float:
    """The slots that what arrives in ``queue`` keeps busy on average, by the measured or else the guessed service."""
    service_s = queue.service_time_s or profile.service_time_guess_s or SERVICE_TIME_GUESS_S
    return (queue.arrival_rate_per_s or 0.0) * service_s


def _too_slow(profile: Profile, *, arrival_rate_per_s: float | None) -> Note | None:
    limit_per_s = profile.rate_limit_per_s
    if limit_per_s is None or arrival_rate_per_s is None or arrival_rate_per_s <= limit_per_s:
        return None
    limit = f"rate_limit_per_s={limit_per_s:g}"
    return _infeasible(f"{limit} cannot keep up: {arrival_rate_per_s:.1f} jobs arrive per second", limit)


def _unpaid_floor(profile: Profile) -> Note | None:
    """A floor that the budget does not pay for is not kept."""
    price = profile.cost_per_worker_hour
    if price is None:
        return None
    floor = max([profile.workers_min, *(each.workers_min or 0 for each in profile.schedules)])
    if not floor:
        return None
    if profile.budget_per_hour is not None and floor * price > profile.budget_per_hour:
        text = f"budget_per_hour={profile.budget_per_hour:g} does not pay for {floor} standing workers at {price:g}"
        return _exact(NoteKind.INFEASIBLE, text)
    if profile.budget_per_day is not None and profile.workers_min * price * 24 > profile.budget_per_day:
        text = f"budget_per_day={profile.budget_per_day:g} does not pay for {profile.workers_min} workers all day"
        return _exact(NoteKind.INFEASIBLE, text)
    return None
