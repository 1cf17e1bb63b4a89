"""Whether an objective can be kept by reacting, and what stands in its way. Reported before a job is late."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.scaling.arithmetic import DAY_S, HOUR_S, ROUNDING, SHORTEST_S
from headway.scaling.demands.deadlines import standing
from headway.scaling.demands.needs import Supply
from headway.scaling.demands.trust import confidence, risk
from headway.scaling.group import Group, smallest
from headway.scaling.model import Note, NoteKind, QueueMetrics
from headway.scaling.policy import fallback
from headway.scaling.policy.activation import in_vain
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.pauses import PAUSES, WORDS
from headway.scaling.profile_keys.schedule import text_of
from headway.scaling.reading.pool_reading import PoolReading
from headway.scaling.reading.pool_times import MARGIN_S, SERVICE_TIME_GUESS_S, PoolTimes, exposed_s
from headway.scaling.reading.pooled_queue import pooled

BURST_DIGITS = 2  # of what is remembered of bursts: older ones fade, and a note that changes is stored again
START_UP_DIGITS = 3  # of what is measured of starts


def feasibility(
    profile: Profile,
    times: PoolTimes,
    *,
    slots_per_worker: int = 1,
    arrival_rate_per_s: float | None = None,
    service_time_s: float | None = None,
    burst_jobs: float | None = None,
    standing_workers: int = 0,
    groups: Sequence[Group] = (),
) -> tuple[Note, ...]:
    """A note for each reason why ``profile`` cannot meet its objective; none where it can.

    A service time that is not known is guessed, and an arrival rate is taken for very little. ``burst_jobs`` come
    within a tick beyond what the rate brings (``Advice.burst_jobs``). ``standing_workers`` are pre-warmed by the demand
    of a strategy; they serve like a floor. ``groups`` are those that the pool is in.
    """
    service_s = max(SHORTEST_S, service_time_s or times.service_guess_s or SERVICE_TIME_GUESS_S)
    load = Load(
        rate_per_s=arrival_rate_per_s or 0.0,
        service_s=service_s,
        burst_jobs=float(f"{burst_jobs:.{BURST_DIGITS}g}") if burst_jobs else 0.0,
        slots_per_worker=slots_per_worker,
    )
    busy_workers = load.busy_slots / slots_per_worker
    notes = [
        _standing(profile, times, load, standing_workers=standing_workers),
        _too_few(profile, busy_workers=busy_workers),
        _too_small_group(groups, busy_workers=busy_workers, slots_per_worker=slots_per_worker),
        _too_slow(profile, arrival_rate_per_s=arrival_rate_per_s),
        _unpaid_floor(profile),
        in_vain(profile, times),
    ]
    return tuple([note for note in notes if note])


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a pool has to do, on average."""

    rate_per_s: float
    service_s: float
    burst_jobs: float
    """That come together, beside the rate."""
    slots_per_worker: int

    @property
    def busy_slots(self) -> float:
        """Slots that the rate keeps busy, on average."""
        return self.rate_per_s * self.service_s

    def pre_warmed_workers(self, profile: Profile, times: PoolTimes) -> int:
        """The workers that are always there if every job is to start in time although one asked for comes too late.

        They are what the demand ``standing`` asks for beside those that the rate keeps busy, if a start took no time.
        """
        # Of the mean load a part is bursts that are over: what does not fill a slot is no load beside the next one.
        busy_slots, cycle_s = math.floor(self.busy_slots), self.service_s + times.dispatch_s
        there = Supply(
            busy_slots=busy_slots,
            idle_slots=0,
            coming=(),
            completions_per_s=busy_slots / cycle_s,
            cycle_s=cycle_s,
            caution=confidence(profile) / risk(profile),
            tick_s=times.tick_s,
        )
        stand = standing(
            there,
            waiting_jobs=0,
            exposed_s=exposed_s(profile, times) + profile.hold_up_s,
            target_s=profile.shortest_target_s,
            arrivals_per_tick=self.rate_per_s * times.tick_s,
            spare_jobs=self.burst_jobs,
        )
        slots = max(self.busy_slots, busy_slots + stand.new_slots)
        return max(1, math.ceil(slots / self.slots_per_worker - ROUNDING))


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
            reading.times,
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


def _standing(profile: Profile, times: PoolTimes, load: Load, *, standing_workers: int) -> Note | None:
    """A worker asked for when a job is first seen comes a tick and a start-up later."""
    target_s = profile.shortest_target_s
    if times.reaction_s + profile.hold_up_s <= target_s:
        return None
    needed = load.pre_warmed_workers(profile, times)
    floor = max(profile.workers_min, standing_workers) if profile.pinned is None else profile.pinned
    if floor >= needed:
        return None
    guess = " (a guess)" if times.known_start_up_s is None else ""
    terms = [f"start-up {float(f'{times.start_up_s:.{START_UP_DIGITS}g}'):g} s{guess}", f"tick {times.tick_s:g} s"]
    more = {"lag": times.lag_s, "margin": MARGIN_S, "hold_up_s": profile.hold_up_s}
    terms += [f"{name} {seconds:g} s" for name, seconds in more.items() if seconds]
    what = "worker" if needed == 1 else "workers"
    key = "workers_min" if profile.pinned is None else "pinned"
    ceiling = "" if needed <= profile.workers_max else f"; workers_max={profile.workers_max} does not allow them"
    is_for_bursts = needed > replace(load, burst_jobs=0.0).pre_warmed_workers(profile, times)
    bursts = f", and {load.burst_jobs:,.0f} jobs arrive together" if is_for_bursts else ""
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
    if profile.budget_per_day is not None and profile.workers_min * price * DAY_S / HOUR_S > profile.budget_per_day:
        text = f"budget_per_day={profile.budget_per_day:g} does not pay for {profile.workers_min} workers all day"
        return _exact(NoteKind.INFEASIBLE, text)
    return None
