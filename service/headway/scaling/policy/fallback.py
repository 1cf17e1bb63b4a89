"""What holds for a pool whose metrics stay away: the last target, and once they have been missing for long, the
profile's fallback.
"""

import math

from headway.scaling.model import Memory, Note, NoteKind
from headway.scaling.policy.ground import Ground
from headway.scaling.policy.limit import limit
from headway.scaling.profile import Fallback, Profile
from headway.scaling.reading.sample_age import Freshness


@limit()
def hold_stale(count: int, ground: Ground) -> int:
    """No data is not zero load: without fresh metrics nothing goes down, nor what is there on hosts that are back."""
    if ground.freshness.is_fresh and not ground.freshness.is_unread:
        return count
    return max(count, ground.last_workers, ground.view.assigned_workers)


@limit(is_in_force=lambda ground: ground.view.profile.has_fallback)
def fallback(count: int, ground: Ground) -> int:
    """Without metrics for long, the profile's own count or the present one. The collector's readings may raise it."""
    profile = ground.view.profile
    if ground.freshness.is_fresh or not is_due(profile, ground.memory, ground.freshness):
        return count
    left = workers(profile, present_workers=max(ground.last_workers, ground.view.assigned_workers))
    read_s = max((sample.at_s for sample in ground.view.direct), default=-math.inf)
    return max(count, left) if ground.now_s - read_s <= profile.stale_after_s else left


def missed_evaluations(profile: Profile, memory: Memory, freshness: Freshness) -> int:
    """Evaluations in a row without fresh metrics, this one included, counted no further than the profile waits for.

    What was never seen is not missed. 0 where the profile waits for no number of evaluations.
    """
    most = profile.fallback_after_evaluations
    if most is None or freshness.is_fresh or freshness.age_s is None:
        return 0
    return min(memory.missed_evaluations + 1, most)


def is_due(profile: Profile, memory: Memory, freshness: Freshness) -> bool:
    """Whether the profile has a fallback, and metrics were once seen and have been missing for as long as it waits."""
    if not profile.has_fallback or freshness.is_fresh:
        return False
    if profile.fallback_after_evaluations is not None:
        return missed_evaluations(profile, memory, freshness) >= profile.fallback_after_evaluations
    return freshness.age_s is not None and freshness.age_s > profile.fallback_after_s


def workers(profile: Profile, *, present_workers: int) -> int:
    """The count that the fallback of ``profile`` makes of the present one. Never 0 where that is not."""
    given = profile.fallback_workers
    if profile.fallback is Fallback.CURRENT or given is None:
        return present_workers
    if profile.fallback is Fallback.IF_HIGHER:
        return max(given, present_workers)
    return min(given, present_workers) if profile.fallback is Fallback.IF_LOWER else given


def note(profile: Profile) -> Note:
    """What a decision says while the fallback is in force."""
    given, most = profile.fallback_workers, profile.fallback_after_evaluations
    times = "the last evaluation" if most == 1 else f"the last {most} evaluations"
    away = f"for more than {profile.fallback_after_s:g} s" if most is None else f"at {times}"
    if profile.fallback is Fallback.CURRENT:
        return _note(f"no metrics {away}: the profile keeps the present count")
    compared = {
        Fallback.IF_HIGHER: ", where that is more than there are",
        Fallback.IF_LOWER: ", where that is fewer than there are",
    }
    return _note(f"no metrics {away}: the profile falls back on {given} workers{compared.get(profile.fallback, '')}")


def _note(text: str) -> Note:
    return Note(kind=NoteKind.FALLBACK, text=text, about=(text,))  # its figures are all of the profile
