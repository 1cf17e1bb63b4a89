"""The predecessor's first algorithm: Little, Little on the trended rate, and a drain from 80 % of the objective.

It takes a job's time to be workers over throughput, so that throughput times job time is always the workers there are:
while anything is finished it cannot come down, and each rising trend adds a fifth to stay.
"""

from dataclasses import asdict
from types import MappingProxyType

from headway.peers.formulas.forecast import TimedRate, fit
from headway.peers.formulas.target_sizing import Sized, predictive_classic
from headway.peers.polled_queue import active_slots, demands_of, formulas_of, polled, polled_of
from headway.peers.scale_down_limits import COOLDOWN, cooldown
from headway.scaling.demands.formulas import Terms
from headway.scaling.explanations.wording import Wording
from headway.scaling.model import QueueMetrics
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView

OPTIONS = MappingProxyType(
    {
        "breach_threshold": 0.8,
        "cooldown_s": 60.0,
        "trend_window_s": 60.0,
        "trend_change_per_s": 0.1,  # a change of the throughput over the window that makes a trend
    }
)

TRENDS = (None, "up", "down")
"""By the number that stands for each among the terms."""


def _sized(terms: Terms) -> Sized:
    return predictive_classic(
        polled_of(terms), active_workers=terms["active_slots"], trend=TRENDS[int(terms["trend"])], forecast_per_s=None
    )


FORMULAS = formulas_of(_sized, {"steady_state": "steady", "trend": "trended", "backlog_drain": "drain"})


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:
    """The three parts."""
    seen = polled(queue, view)
    rates = _recent(state, seen.rate_per_s, now_s=now_s, window_s=view.options["trend_window_s"])
    trend = _trend(rates, window_s=view.options["trend_window_s"], change_per_s=view.options["trend_change_per_s"])
    demands = demands_of(FORMULAS, {**asdict(seen), "active_slots": active_slots(view), "trend": TRENDS.index(trend)})
    return Advice(demands=demands, state={"rates": [[each.at_s, each.rate_per_s] for each in rates]} if rates else {})


def _recent(state: State, rate_per_s: float, *, now_s: float, window_s: float) -> list[TimedRate]:
    """The throughputs of the window; none of a queue in which nothing was finished."""
    known = [TimedRate(at_s=at_s, rate_per_s=rate) for at_s, rate in state.get("rates", ())]
    rates = [*(rate for rate in known if rate.at_s > now_s - window_s), TimedRate(at_s=now_s, rate_per_s=rate_per_s)]
    return rates if any(rate.rate_per_s for rate in rates) else []


def _trend(rates: list[TimedRate], *, window_s: float, change_per_s: float) -> str | None:
    line = fit(rates, horizon_s=0.0)
    change = line.slope_per_s2 * window_s
    if abs(change) < change_per_s:
        return None
    return "up" if change > 0 else "down"


PREDICTIVE_V1 = Strategy(
    name="predictive_v1",
    advise=advise,
    formulas=FORMULAS,
    options=OPTIONS,
    come_down=cooldown,
    wording=Wording(limits=COOLDOWN),
)
