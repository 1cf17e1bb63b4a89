"""What holds for a pool whose metrics stay away: the profile's fallback, once they have been missing for long."""

from headway.scaling.view import PoolView, is_fresh, metrics_age_s


def is_due(view: PoolView, *, now_s: float) -> bool:
    """Whether the profile has a fallback, and metrics were once seen and have been missing for ``fallback_after_s``."""
    profile = view.profile
    if profile.fallback_workers is None or is_fresh(view, now_s=now_s):
        return False
    age_s = metrics_age_s(view, now_s=now_s)
    return age_s is not None and age_s > profile.fallback_after_s


def note(view: PoolView) -> str:
    """What a decision says while the fallback is in force."""
    profile = view.profile
    return (
        f"no metrics for more than {profile.fallback_after_s:g} s: "
        f"the profile falls back on {profile.fallback_workers} workers"
    )
