"""What holds for a pool whose metrics stay away: the last target, and once they have been missing for long, the
profile's fallback.
"""

import math

from headway.scaling.model import Memory
from headway.scaling.policy.ground import Ground
from headway.scaling.profile import Fallback, Profile
from headway.scaling.reading.sample_age import UNREAD_S, is_fresh, metrics_age_s
from headway.scaling.view import PoolView


def hold_stale(count: int, ground: Ground) -> int:
    """No data is not zero load: without fresh metrics nothing goes down, nor what is there on hosts that are back."""
    if ground.is_fresh and not is_unread(ground.view, now_s=ground.now_s):
        return count
    return max(count, ground.last_workers, ground.view.assigned_workers)


def is_unread(view: PoolView, *, now_s: float) -> bool:
    """Whether a queue that was seen has no sample of the newest span, or only a lower bound of its waiting jobs.

    That nothing arrived in it is not known then. A broker that hangs looks like one in which nothing happens, long
    before metrics are as old as ``stale_after_s``.
    """
    if any(queue.waiting_jobs is None and queue.waiting_min_jobs is not None for queue in view.queues):
        return True
    age_s = metrics_age_s(view, now_s=now_s)
    return age_s is not None and age_s > UNREAD_S


def fallback(count: int, ground: Ground) -> int:
    """Without metrics for long, the profile's own count or the present one. The collector's readings may raise it."""
    profile = ground.view.profile
    if ground.is_fresh or not is_due(ground.view, ground.memory, now_s=ground.now_s):
        return count
    left = workers(profile, present_workers=max(ground.last_workers, ground.view.assigned_workers))
    read_s = max((sample.at_s for sample in ground.view.direct), default=-math.inf)
    return max(count, left) if ground.now_s - read_s <= profile.stale_after_s else left


def missed_evaluations(view: PoolView, memory: Memory, *, now_s: float) -> int:
    """Evaluations in a row without fresh metrics, this one included, counted no further than the profile waits for.

    What was never seen is not missed. 0 where the profile waits for no number of evaluations.
    """
    most = view.profile.fallback_after_evaluations
    if most is None or is_fresh(view, now_s=now_s) or metrics_age_s(view, now_s=now_s) is None:
        return 0
    return min(memory.missed_evaluations + 1, most)


def is_due(view: PoolView, memory: Memory, *, now_s: float) -> bool:
    """Whether the profile has a fallback, and metrics were once seen and have been missing for as long as it waits."""
    profile = view.profile
    if not profile.has_fallback or is_fresh(view, now_s=now_s):
        return False
    if profile.fallback_after_evaluations is not None:
        return missed_evaluations(view, memory, now_s=now_s) >= profile.fallback_after_evaluations
    age_s = metrics_age_s(view, now_s=now_s)
    return age_s is not None and age_s > profile.fallback_after_s


def workers(profile: Profile, *, present_workers: int) -> int:
    """The count that the fallback of ``profile`` makes of the present one. Never 0 where that is not."""
    given = profile.fallback_workers
    if profile.fallback is Fallback.CURRENT or given is None:
        return present_workers
    if profile.fallback is Fallback.IF_HIGHER:
        return max(given, present_workers)
    return min(given, present_workers) if profile.fallback is Fallback.IF_LOWER else given


def note(profile: Profile) -> str:
    """What a decision says while the fallback is in force."""
    given, most = profile.fallback_workers, profile.fallback_after_evaluations
    times = "the last evaluation" if most == 1 else f"the last {most} evaluations"
    away = f"for more than {profile.fallback_after_s:g} s" if most is None else f"at {times}"
    if profile.fallback is Fallback.CURRENT:
        return f"no metrics {away}: the profile keeps the present count"
    compared = {
        Fallback.IF_HIGHER: ", where that is more than there are",
        Fallback.IF_LOWER: ", where that is fewer than there are",
    }
    return f"no metrics {away}: the profile falls back on {given} workers{compared.get(profile.fallback, '')}"
