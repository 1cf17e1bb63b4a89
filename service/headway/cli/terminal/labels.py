"""The words of tables, which are the dashboard's. A test holds both to the same."""

from collections.abc import Mapping
from types import MappingProxyType

from headway.scaling.conditions.condition_table import CONDITIONS

LONGEST_WAIT = "longest wait"
IN_FLIGHT = "in flight"
WITHIN = "started within"
WANTED = "wanted"

STATES: Mapping[str, str] = MappingProxyType({name: each.word for name, each in CONDITIONS.items() if each.word})
"""The words for the state of a pool."""

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "work_in_progress": "running jobs",
        "backlog_drain": "starting all waiting jobs in time",
        "wake": "waking from zero",
        "due_work": "jobs that are due soon",
        "standing": "pre-warmed workers",
        "rhythm": "repeating bursts",
        "steady_state": "keeping up with arrivals",
        "trend": "rising arrivals",
        "forecast": "forecast arrivals",
        "saturation": "every worker is busy",
        "hold_stale": "stale or inexact metrics",
        "hold_up": "delay before scaling up",
        "hold_overdue": "an overdue job",
        "useful_workers": "workers that get jobs",
        "plateau": "jobs waiting beside idle workers",
        "hold_down": "delay before scaling down",
        "tolerance": "too small a change",
        "anti_flapping": "anti-flapping",
        "crash_loop": "crash loop",
        "may_be_busy": "workers that may be busy",
        "activation": "too few jobs to wake for",
        "override": "manual override",
        "workers_min": "profile's minimum",
        "workers_max": "profile's maximum",
        "capacity": "capacity of the hosts",
        "share": "share of scarce capacity",
    }
)
"""Names of demands and limits in plain words."""


def named(name: str) -> str:
    """A demand or limit in plain words; one that has none yet, in its own."""
    return NAMES.get(name, name.replace("_", " "))
