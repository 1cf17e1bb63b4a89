"""Whether an objective can be kept by reacting, and what stands in its way. Told before it is found out."""

import math

from headway.scaling.profile import Profile
from headway.scaling.schedule import text_of
from headway.scaling.view import (
    SERVICE_TIME_GUESS_S,
    START_UP_GUESS_S,
    TICK_S,
    PoolView,
    is_fresh,
    metrics_age_s,
    pooled,
)


def feasibility(
    profile: Profile,
    *,
    start_up_s: float | None,
    tick_s: float = TICK_S,
    slots_per_worker: int = 1,
    arrival_rate_per_s: float | None = None,
    service_time_s: float | None = None,
) -> tuple[str, ...]:
    """A sentence for each reason why ``profile`` cannot keep what it promises; none where it can.

    What is not known is guessed (``start_up_s``, ``service_time_s``) or taken for very little (``arrival_rate_per_s``).
    """
    service_s = service_time_s or profile.service_time_guess_s or SERVICE_TIME_GUESS_S
    busy_workers = (arrival_rate_per_s or 0.0) * service_s / slots_per_worker
    notes = [
        _standing(profile, start_up_s=start_up_s, tick_s=tick_s, busy_workers=busy_workers),
        _too_few(profile, busy_workers=busy_workers),
        _too_slow(profile, arrival_rate_per_s=arrival_rate_per_s),
        _unpaid_floor(profile),
    ]
    return tuple([note for note in notes if note])


def circumstances(view: PoolView, *, now_s: float) -> tuple[str, ...]:
    """What else speaks in a decision: what a person or a clock has set, what is not known, and what cannot be kept."""
    profile, queue = view.profile, pooled(view.queues)
    notes = []
    if override := profile.override_at(now_s):
        notes.append(f"{override.workers} workers by hand until {text_of(override.until_s)}: {override.reason}")
    bounds = profile.bounds_at(now_s, view.zones)
    if bounds.schedules:
        notes.append(f"workers {bounds.workers_min}..{bounds.workers_max} by schedule: {', '.join(bounds.schedules)}")
    age_s = metrics_age_s(view, now_s=now_s)
    if (
        profile.fallback_workers is not None
        and not is_fresh(view, now_s=now_s)
        and age_s is not None
        and age_s > profile.fallback_after_s
    ):
        notes.append(
            f"no metrics for more than {profile.fallback_after_s:g} s: "
            f"the profile falls back on {profile.fallback_workers} workers"
        )
    if profile.budget_per_day is not None and view.worker_hours_today is None:
        notes.append("what the pool has run today is not known: the day's budget is spread evenly")
    return (
        *notes,
        *feasibility(
            profile,
            start_up_s=view.start_up_s,
            tick_s=view.tick_s,
            slots_per_worker=view.slots_per_worker,
            arrival_rate_per_s=queue.arrival_rate_per_s,
            service_time_s=queue.service_time_s,
        ),
    )


def _standing(profile: Profile, *, start_up_s: float | None, tick_s: float, busy_workers: float) -> str | None:
    """A worker asked for when a job is first seen comes a tick and a start-up later."""
    target_s = min([profile.objective.target_s, *[each.target_s for each in profile.member_objectives.values()]])
    ready_s = START_UP_GUESS_S if start_up_s is None else start_up_s
    late_s = ready_s + tick_s + profile.hold_up_s
    needed = max(1, math.ceil(busy_workers))
    floor = profile.workers_min if profile.pinned is None else profile.pinned
    if late_s <= target_s or floor >= needed:
        return None
    terms = [f"start-up {ready_s:g} s{' (a guess)' if start_up_s is None else ''}", f"tick {tick_s:g} s"]
    if profile.hold_up_s:
        terms.append(f"hold_up_s {profile.hold_up_s:g} s")
    what = "worker" if needed == 1 else "workers"
    ceiling = "" if needed <= profile.workers_max else f"; workers_max={profile.workers_max} does not allow them"
    return f"needs {needed} standing {what}: {' + '.join(terms)} > {target_s:g} s{ceiling}"


def _too_few(profile: Profile, *, busy_workers: float) -> str | None:
    """Whatever the start-up: with fewer slots than are busy on average the backlog grows for ever."""
    most = max([profile.workers_max, *[each.workers_max or 0 for each in profile.schedules]])
    name = "workers_max"
    if profile.pinned is not None:
        most, name = profile.pinned, "pinned"
    if busy_workers <= most:
        return None
    return f"{name}={most} cannot keep up: what arrives keeps {busy_workers:.1f} workers busy"


def _too_slow(profile: Profile, *, arrival_rate_per_s: float | None) -> str | None:
    limit_per_s = profile.rate_limit_per_s
    if limit_per_s is None or arrival_rate_per_s is None or arrival_rate_per_s <= limit_per_s:
        return None
    return f"rate_limit_per_s={limit_per_s:g} cannot keep up: {arrival_rate_per_s:.1f} jobs arrive per second"


def _unpaid_floor(profile: Profile) -> str | None:
    """A floor that the budget does not pay for is not kept."""
    price = profile.cost_per_worker_hour
    if price is None:
        return None
    floor = max([profile.workers_min, *(each.workers_min or 0 for each in profile.schedules)])
    if not floor:
        return None
    if profile.budget_per_hour is not None and floor * price > profile.budget_per_hour:
        return f"budget_per_hour={profile.budget_per_hour:g} does not pay for {floor} standing workers at {price:g}"
    if profile.budget_per_day is not None and profile.workers_min * price * 24 > profile.budget_per_day:
        return f"budget_per_day={profile.budget_per_day:g} does not pay for {profile.workers_min} workers all day"
    return None
