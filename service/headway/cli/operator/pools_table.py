"""Every pool as a row, those that need attention first."""

import math
from typing import Any

from rich.table import Table

from headway.cli.terminal.cells import (
    NOTHING_BESIDE,
    UNKNOWN,
    Columns,
    beside,
    count,
    duration,
    failed,
    in_flight,
    longest_wait,
    objective_text,
    rate,
    table,
    waiting,
    within,
)
from headway.cli.terminal.labels import IN_FLIGHT, LONGEST_WAIT, STATES, WANTED, WITHIN
from headway.cli.terminal.mode_labels import held_jobs
from headway.scaling.conditions.condition_table import URGENCIES

Body = dict[str, Any]

COLUMNS = (
    "pool",
    "state",
    "workers",
    WANTED,
    "waiting",
    LONGEST_WAIT,
    "objective",
    "p50",
    WITHIN,
    "failed",
    IN_FLIGHT,
    "arriving",
    "as of",
    "because",
)


def pools_table(answer: Body, wide: Columns = NOTHING_BESIDE) -> Table | str:
    """The pools of an answer of `GET /v1/pools`, with the columns ``wide`` beside the usual ones."""
    pools = sorted(answer["pools"], key=lambda pool: (*(-part for part in urgency(pool)), pool["pool"]))
    rows = ((*row_of(pool), *beside(wide, pool)) for pool in pools)
    return table((*COLUMNS, *wide), rows, empty="no profiles: write one and run `headway apply profiles.yaml`")


def row_of(pool: Body) -> tuple[str, ...]:
    """What is shown of a pool."""
    metrics, objective = pool["metrics"], pool["objective"]
    return (
        pool["pool"],
        state_of(pool),
        running_of(pool),
        target_of(pool),
        waiting(pool),
        # Where queues have their own objectives, of the queue that is nearest to its own.
        _judged(pool, pool["oldest_wait"]) or longest_wait(pool),
        objective_text(objective),
        duration(metrics["pickup_p50_s"]),
        started_within(pool),
        failed(pool["failures"]),
        in_flight(metrics),
        rate(metrics["arrival_rate_per_s"]),
        as_of(pool),
        pool["binding_label"] or "-",
    )


def state_of(pool: Body) -> str:
    """The word for a pool; of one whose jobs wait for the end of a pause, that they do."""
    if pool["state"] == "unmeasured" and held_jobs(pool):
        return "paused, jobs wait"
    return STATES.get(pool["state"], pool["state"])


def urgency(pool: Body) -> tuple[int, float]:
    """How much attention a pool needs: by its state, then by how much of its objective the oldest job has used up."""
    oldest = pool["oldest_wait"]
    used = 0.0 if oldest is None else oldest["wait_s"] / oldest["objective"]["target_s"]
    return URGENCIES.get(pool["state"], 0), used


def started_within(pool: Body) -> str:
    """The pickup time that the objective is about; where queues have their own, of the queue nearest to its own."""
    pickup = pool["pickup_wait"]
    judged = _judged(pool, pickup)
    return f"p{pickup['objective']['percentile']:g} {judged}" if judged else within(pool["metrics"], pool["objective"])


def _judged(pool: Body, wait: Body | None) -> str | None:
    """A wait beside the objective of its queue; ``None`` where every queue has that of the pool, or none is known."""
    if wait is None or not pool["member_objectives"]:
        return None
    return f"{duration(wait['wait_s'])} of {duration(wait['objective']['target_s'])} ({wait['queue']})"


def as_of(pool: Body) -> str:
    """How old the oldest of what is shown is, and what that is where it is old."""
    ages = {
        "read": pool["sample_age_s"],
        "measured": pool["measured_age_s"],
        "reported": pool["reported_age_s"],
    }
    if pool["mode"] == "recommend":
        del ages["reported"]  # the broker lists its workers, where the queues are read
    oldest = max(ages, key=lambda name: math.inf if ages[name] is None else ages[name])
    return f"{oldest}: {UNKNOWN}" if ages[oldest] is None else f"{duration(ages[oldest])} ago"


def target_of(pool: Body) -> str:
    """The workers that are wanted, and whether that is advice only."""
    is_advice = pool["mode"] == "recommend" and pool["target_workers"] is not None
    return f"{pool['target_workers']} (advice)" if is_advice else count(pool["target_workers"])


def running_of(pool: Body) -> str:
    """The workers that run, and those that are on their way or out of sight.

    Agents report them; where Headway only recommends, the broker lists them.
    """
    if pool["mode"] == "recommend":
        return UNKNOWN if pool["running_workers"] is None else f"{pool['running_workers']} listed"
    text = str(pool["running_workers"])
    for name, what in (
        ("starting_workers", "starting"),
        ("failing_workers", "ending too early"),
        ("unknown_workers", "on unreachable hosts"),
    ):
        if pool[name]:
            text += f" +{pool[name]} {what}"
    return text
