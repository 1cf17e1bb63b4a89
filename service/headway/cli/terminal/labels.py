"""The words of tables, which are the dashboard's (a test holds both to the same), and a profile's mode in words."""

import time
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from headway.cli.terminal.cells import duration
from headway.scaling.conditions.condition_table import CONDITIONS
from headway.scaling.explanations.phrases import counted
from headway.scaling.model import Mode
from headway.scaling.profile_keys.pauses import WORDS

LONGEST_WAIT = "longest wait"
IN_FLIGHT = "in flight"
WITHIN = "started within"
WANTED = "wanted"

STATES: Mapping[str, str] = MappingProxyType({name: each.word for name, each in CONDITIONS.items() if each.word})
"""The words for the state of a pool."""


def mode_of(row: Mapping[str, Any]) -> str:
    """The mode of an answer's profile at this moment."""
    own = _own_pause(row)
    mode: str = row["pause"] or (own["mode"] if own else row["profile"]["mode"])
    if row["profile"]["mode"] == "recommend":
        mode = "recommend"
    return mode.replace("_", " ")


def paused(row: Mapping[str, Any]) -> str:
    """How a profile is paused, by whom, for how long and why; empty where it is not."""
    if row["pause"]:
        return _mode_text(row["pause"], "manually", row.get("pause_until_s"), row.get("pause_reason"))
    own = _own_pause(row)
    return _mode_text(own["mode"], "by the profile", own["until_s"], own["reason"]) if own else ""


def held_jobs(pool: Mapping[str, Any]) -> str:
    """What waits for the end of a pause, of a row of `GET /v1/pools`; empty where no pause keeps jobs from a worker."""
    metrics, waiting = pool["metrics"], pool["metrics"]["waiting_jobs"]
    is_up_paused = pool["mode"] in {"pause", "pause_up"}
    if not (is_up_paused and waiting) or pool["running_workers"] or pool["starting_workers"]:
        return ""
    age_s = metrics["oldest_age_s"]
    oldest = "" if age_s is None else f", the oldest for {duration(age_s + (pool['sample_age_s'] or 0.0))}"
    return f"{counted(waiting, 'job')} {'waits' if waiting == 1 else 'wait'}{oldest}"


def until(at_s: float) -> str:
    """A moment, by this machine's clock and zone."""
    return f"until {datetime.fromtimestamp(at_s).astimezone():%Y-%m-%d %H:%M %Z}"


def _own_pause(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    own: Mapping[str, Any] | None = row["profile"].get("pause")
    is_over = own is not None and own["until_s"] is not None and own["until_s"] <= time.time()
    return None if is_over else own


def _mode_text(mode: str, by: str, until_s: float | None, reason: str | None) -> str:
    left = "" if until_s is None else f" for {duration(max(0.0, until_s - time.time()))} more"
    return f"{WORDS[Mode(mode)]} {by}{left}{f': {reason}' if reason else ''}"
