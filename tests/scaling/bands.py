"""What a guard and a band of it have seen."""

import json
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

from headway.scaling.demands.safety_stock import SafetyStock
from headway.scaling.forecasts.shortfalls import STOCK_BAND_TIME_S, Shortfalls
from headway.scaling.model import Memory


def parts(guard: SafetyStock) -> Any:
    """All that was learned, whichever forecast has it."""
    return SimpleNamespace(**guard.stored())


def changed(guard: SafetyStock, **values: Any) -> SafetyStock:
    """``guard`` with other ``values`` of whichever forecast."""
    return SafetyStock.of({**guard.stored(), **values})


def reloaded(guard: SafetyStock) -> dict[str, Any]:
    """The plain values that a store gives back."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(Memory(strategy_state=guard.stored()))["strategy_state"]))
    return found


def watched(*shortfalls_jobs: float, for_s: float = STOCK_BAND_TIME_S) -> Shortfalls:
    """A band that was watched for ``for_s`` and in which so many jobs came, once each."""
    found = Shortfalls(jobs=100, time_s=for_s)
    for jobs in shortfalls_jobs:
        found = found.seen(jobs, jobs=0, span_s=0.0)
    return found
