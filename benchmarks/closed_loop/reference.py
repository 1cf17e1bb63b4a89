"""What is given: scenarios, targets, and the figures that an independent simulator reached on the same traces."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TICK_S = 5.0
BEGINS_AT_S = 1_699_833_600.0  # a Monday, 00:00 UTC: seasons go by the clock, and a trace begins at midnight
FROM_DAY_2 = "cron_flights"  # nothing of its first day can be remembered
FLAT = ("heavy_firehose", "steady_llm_chat")  # where a pool of constant size is nearly the best there is


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """An objective, a start-up time and what is to be reached under them."""

    name: str
    objective_s: float
    start_up_s: float
    percent_min: float
    """On every trace."""
    percent_but_one_min: float
    """On every trace but one."""
    cost_max: float
    """Geometric mean of worker-hours ÷ oracle's."""
    trace_cost_max: float | None
    spawns_max: int


SCENARIOS = (
    Scenario(
        name="sla10",
        objective_s=10.0,
        start_up_s=2.0,
        percent_min=99.9,
        percent_but_one_min=99.9,
        cost_max=1.20,
        trace_cost_max=1.6,
        spawns_max=115_000,
    ),
    Scenario(
        name="sla30",
        objective_s=30.0,
        start_up_s=2.0,
        percent_min=99.95,
        percent_but_one_min=99.95,
        cost_max=1.15,
        trace_cost_max=1.4,
        spawns_max=89_000,
    ),
    Scenario(
        name="sla60",
        objective_s=60.0,
        start_up_s=2.0,
        percent_min=99.95,
        percent_but_one_min=99.95,
        cost_max=1.12,
        trace_cost_max=None,
        spawns_max=63_000,
    ),
    Scenario(
        name="sla10-boot8",
        objective_s=10.0,
        start_up_s=8.0,
        percent_min=99.0,
        percent_but_one_min=99.8,
        cost_max=2.2,
        trace_cost_max=None,
        spawns_max=98_000,
    ),
    Scenario(
        name="sla30-cold30",
        objective_s=30.0,
        start_up_s=30.0,
        percent_min=99.5,
        percent_but_one_min=99.8,
        cost_max=2.1,
        trace_cost_max=None,
        spawns_max=97_000,
    ),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}

_GIVEN: dict[str, Any] = json.loads(Path(__file__).with_name("reference.json").read_text())
TRACES: tuple[str, ...] = tuple(_GIVEN["traces"])


def workers_max(trace: str) -> int:
    """The ceiling of every strategy: twice the constant pool that meets 10 s, and two."""
    return int(_GIVEN["traces"][trace]["workers_max"])


def oracle_worker_hours(trace: str, scenario: str) -> float:
    """What the cheapest clairvoyant plan pays that starts every job in time."""
    return float(_GIVEN["traces"][trace]["oracle_worker_hours"][scenario])


def published(scenario: str) -> dict[str, dict[str, Any]]:
    """Policy -> its figures: ``mean_percent``, ``worst_percent``, ``cost``, ``spawns``, and ``cells`` by trace."""
    policies: dict[str, dict[str, Any]] = _GIVEN["published"][scenario]
    return policies
