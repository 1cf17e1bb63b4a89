"""The time zones that schedules, budgets and seasons name, read from this machine: scaling itself reads nothing."""

from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from headway.errors import Invalid
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.schedule import UTC_NAME, Zones


def zones_of(profile: Profile) -> Zones:
    """The zones that ``profile`` names in schedules and for its budget, as far as this machine knows them."""
    names = {profile.budget_time_zone, *(each.time_zone for each in profile.schedules)}
    found = {name: _zone(name) for name in sorted(names - {UTC_NAME})}
    return {name: zone for name, zone in found.items() if zone is not None}


def refuse_unknown_zones(profile: Profile) -> None:
    """Return if this machine knows every zone that ``profile`` names. Raises ``Invalid`` with those it does not."""
    scheduled = sorted({schedule.time_zone for schedule in profile.schedules})
    named = [*(("schedules: time_zone", name) for name in scheduled), ("budget_time_zone", profile.budget_time_zone)]
    unknown = [(key, name) for key, name in named if name != UTC_NAME and _zone(name) is None]
    if unknown:
        where = f"profile {profile.pool!r}"
        raise Invalid(*(f"{where}: {key} {name!r} is not known; write it as Europe/Berlin" for key, name in unknown))


def zone_of(name: str, *, of: str = "time zone") -> tzinfo:
    """The zone that is called ``name``, given by ``of``. Raises ``Invalid`` where this machine knows none."""
    zone = UTC if name == UTC_NAME else _zone(name)
    if zone is None:
        raise Invalid(f"{of} {name!r} is not known; write it as Europe/Berlin")
    return zone


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfo's own error is a KeyError
        return None
