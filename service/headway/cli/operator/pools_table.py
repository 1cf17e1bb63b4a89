"""Every pool as a row, those that need attention first."""

import math

from headway.cli.terminal.cells import (
    UNKNOWN,
    Listing,
    Row,
    age,
    ago,
    count,
    duration,
    failed,
    in_flight,
    longest_wait,
    objective_text,
    pool_group_use,
    rate,
    waiting,
    within,
)
from headway.cli.terminal.labels import IN_FLIGHT, LONGEST_WAIT, STATES, WANTED, WITHIN, held_jobs
from headway.scaling.conditions.condition_table import URGENCIES


def state_of(pool: Row) -> str:
    """The word for a pool; of one whose jobs wait for the end of a pause, that they do."""
    if pool["state"] == "unmeasured" and held_jobs(pool):
        return "paused, jobs wait"
    return STATES.get(pool["state"], pool["state"])


def urgency(pool: Row) -> tuple[int, float]:
    """How much attention a pool needs: by its state, then by how much of its objective the oldest job has used up."""
    oldest = pool["oldest_wait"]
    used = 0.0 if oldest is None else oldest["wait_s"] / oldest["objective"]["target_s"]
    return URGENCIES.get(pool["state"], 0), used


def started_within(pool: Row) -> str:
    """The pickup time that the objective is about; where queues have their own, of the queue nearest to its own."""
    pickup = pool["pickup_wait"]
    judged = _judged(pool, pickup)
    return f"p{pickup['objective']['percentile']:g} {judged}" if judged else within(pool["metrics"], pool["objective"])


def _judged(pool: Row, wait: Row | None) -> str | None:
    """A wait beside the objective of its queue; ``None`` where every queue has that of the pool, or none is known."""
    if wait is None or not pool["member_objectives"]:
        return None
    return f"{duration(wait['wait_s'])} of {duration(wait['objective']['target_s'])} ({wait['queue']})"


def as_of(pool: Row) -> str:
    """How old the oldest of what is shown is, and what that is where it is old."""
    ages = {
        "read": pool["sample_age_s"],
        "measured": pool["measured_age_s"],
        "reported": pool["reported_age_s"],
    }
    if pool["mode"] == "recommend":
        del ages["reported"]  # the broker lists its workers, where the queues are read
    oldest = max(ages, key=lambda name: math.inf if ages[name] is None else ages[name])
    return age(ages[oldest], unknown=f"{oldest}: {UNKNOWN}")


def target_of(pool: Row) -> str:
    """The workers that are wanted, and whether that is advice only."""
    is_advice = pool["mode"] == "recommend" and pool["target_workers"] is not None
    return f"{pool['target_workers']} (advice)" if is_advice else count(pool["target_workers"])


def running_of(pool: Row) -> str:
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


POOLS = Listing(
    rows="pools",
    columns={
        "pool": lambda pool: pool["pool"],
        "state": state_of,
        "workers": running_of,
        WANTED: target_of,
        "waiting": waiting,
        # Where queues have their own objectives, of the queue that is nearest to its own.
        LONGEST_WAIT: lambda pool: _judged(pool, pool["oldest_wait"]) or longest_wait(pool),
        "objective": lambda pool: objective_text(pool["objective"]),
        "p50": lambda pool: duration(pool["metrics"]["pickup_p50_s"]),
        WITHIN: started_within,
        "failed": lambda pool: failed(pool["failures"]),
        IN_FLIGHT: lambda pool: in_flight(pool["metrics"]),
        "arriving": lambda pool: rate(pool["metrics"]["arrival_rate_per_s"]),
        "as of": as_of,
        "because": lambda pool: pool["binding_label"] or "-",
    },
    wide={
        "queues": lambda pool: ", ".join(pool["queues"]),
        "template": lambda pool: pool["template"],
        "bounds": lambda pool: f"{pool['workers_min']}..{pool['workers_max']}",
        "groups": lambda pool: "; ".join(map(pool_group_use, pool["groups"])) or "-",
        "mode": lambda pool: pool["mode"].replace("_", " "),
        "draining": lambda pool: count(pool["draining_workers"]),
        "predicted": lambda pool: duration(pool["predicted_pickup_s"]),
        "decided": lambda pool: ago(pool["decided_at_s"]),
        "wrong": lambda pool: "; ".join(pool["causes"]) or "-",
    },
    order=lambda pool: (*(-part for part in urgency(pool)), pool["pool"]),
    empty="no profiles: write one and run `headway apply profiles.yaml`",
)
