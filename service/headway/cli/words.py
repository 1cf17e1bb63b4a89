"""The words of tables, which are the dashboard's. A test holds both to the same."""

from collections.abc import Mapping
from types import MappingProxyType

LONGEST_WAIT = "longest wait"
AT_WORK = "at work"
WITHIN = "started within"
WANTED = "wanted"

STATES: Mapping[str, str] = MappingProxyType(
    {
        "on_time": "on time",
        "idle": "idle",
        "scaling": "scaling",
        "at_risk": "nearly late",
        "recovering": "was late",
        "unmeasured": "not measured",
        "breaching": "late",
        "crash_loop": "crash loop",
        "failing": "failing",
        "no_host": "no host",
        "stale": "no fresh data",
        "unseen": "not seen yet",
    }
)
"""The words for the state of a pool."""

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "work_in_progress": "jobs at work",
        "backlog_drain": "starting all that wait in time",
        "wake": "waking from none",
        "standing": "there before the next job",
        "rhythm": "enough for bursts that keep a rhythm",
        "steady_state": "keeping up with arrivals",
        "trend": "arrivals that rise",
        "forecast": "arrivals foretold",
        "saturation": "every worker is busy",
        "hold_stale": "old readings",
        "hold_up": "wait before more",
        "hold_overdue": "a job without time left",
        "hold_down": "wait before fewer",
        "tolerance": "too small a change",
        "anti_flapping": "no back and forth",
        "crash_loop": "workers that die at once",
        "activation": "too few jobs to wake for",
        "override": "set by hand",
        "workers_min": "profile's minimum",
        "workers_max": "profile's maximum",
        "capacity": "room on the hosts",
        "share": "share of scarce room",
    }
)
"""Names of demands and limits in plain words."""


def named(name: str) -> str:
    """A demand or limit in plain words; one that has none yet, in its own."""
    return NAMES.get(name, name.replace("_", " "))
