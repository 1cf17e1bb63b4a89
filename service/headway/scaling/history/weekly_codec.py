"""A season as the plain values that it is stored and sent as, and out of them again."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from headway.scaling.history.weekly import WEEK_HOURS, Errors, Season
from headway.scaling.profile_keys.schedule import Zone

WEEKLY_DIGITS = 4  # of a job a minute: finer than weeks can show


def season_to_mapping(season: Season) -> dict[str, Any]:
    """What ``season`` knows, in what JSON knows; whose hours they are is stored beside it."""
    return {
        "mean_jobs": [round(jobs, WEEKLY_DIGITS) for jobs in season.mean_jobs],
        "high_jobs": list(season.high_jobs),
        "weeks": list(season.weeks),
        "peaks": {str(minute): jobs for minute, jobs in season.peaks.items()},
        "errors": None if season.errors is None else asdict(season.errors),
    }


def season_from_mapping(body: Mapping[str, Any], zone: Zone) -> Season:
    """The season that ``body`` holds, by the clock of ``zone``."""
    season = Season(
        mean_jobs=tuple(body["mean_jobs"]),
        high_jobs=tuple(body["high_jobs"]),
        weeks=tuple(body["weeks"]),
        peaks={int(minute): jobs for minute, jobs in body["peaks"].items()},
        errors=None if body["errors"] is None else Errors(**body["errors"]),
        zone=zone,
    )
    assert len(season.mean_jobs) == WEEK_HOURS, "a season of another shape under this version"
    return season
