"""Keys of a profile that are still accepted and should no longer be given."""

from headway.scaling.profile import Forecast, Profile
from headway.scaling.profile_keys.presets import PRESETS

READS_POLICIES = "hybrid_v3"
"""The strategy to which the policies of a forecast mean something."""


def deprecations(profile: Profile) -> tuple[str, ...]:
    """A sentence for each key of ``profile`` that means something else than it says, and for how to write it.

    What a preset brings is not the profile's own word, and stays silent.
    """
    forecast, preset = profile.forecast, PRESETS.get(profile.preset or "", {})
    if forecast in {Forecast.AUTO, Forecast.OFF} or profile.strategy == READS_POLICIES:
        return ()
    if forecast == preset.get("forecast"):
        return ()
    return (f"forecast={forecast.value} means auto to strategy {profile.strategy!r} (deprecated): write auto or off",)
