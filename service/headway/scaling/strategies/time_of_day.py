"""A crew by the clock, and more where arrivals or a backlog want it: an example of a strategy of one's own."""

from types import MappingProxyType

from headway.scaling.arithmetic import DAY_S, HOUR_S
from headway.scaling.explanations.wording import DemandWording, Wording
from headway.scaling.model import QueueMetrics
from headway.scaling.strategies.shared import FORMULAS, backlog_drain, in_workers, of_workers, steady_state
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView

DAY_H = DAY_S / HOUR_S

OPTIONS = MappingProxyType(
    {"day_workers": 4.0, "night_workers": 1.0, "day_from_h": 8.0, "day_until_h": 18.0, "utc_offset_h": 0.0}
)


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:  # noqa: ARG001 - the port's shape
    """The crew of the hour beside the shared demands. A day may pass midnight: from 22 until 6 is one."""
    options = view.options
    since_dawn_h = (now_s / HOUR_S + options["utc_offset_h"] - options["day_from_h"]) % DAY_H
    is_day = since_dawn_h < (options["day_until_h"] - options["day_from_h"]) % DAY_H
    crew = options["day_workers"] if is_day else options["night_workers"]
    return Advice(
        demands=(in_workers("time_of_day", crew, view), steady_state(queue, view), backlog_drain(queue, view))
    )


TIME_OF_DAY = Strategy(
    name="time_of_day",
    advise=advise,
    formulas={**FORMULAS, "time_of_day": of_workers},
    options=OPTIONS,
    wording=Wording(demands={"time_of_day": DemandWording("the workers for this hour have {slots}")}),
)
