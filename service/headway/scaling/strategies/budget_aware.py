"""No more than what the hours can pay for on average, with savings for bursts: an example of a strategy of one's own.

Each evaluation pays the allowance in and the workers' time out. What is left over is saved, up to some hours of
allowance; a backlog may spend it. When it is spent, jobs wait: here the budget is kept first, and the objective second.
"""

from types import MappingProxyType

from headway.scaling.arithmetic import HOUR_S, SHORTEST_S
from headway.scaling.demands.formulas import Formula
from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.strategies.shared import FORMULAS, backlog_drain, seen_workers, steady_state
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView

OPTIONS = MappingProxyType(
    {
        "workers_on_average": 4.0,  # what the budget pays for, hour by hour
        "saved_h_max": 2.0,
        "spend_over_s": 600.0,  # savings are spread over this long: a burst may be followed by another
    }
)


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:
    """The shared demands, each cut to what can be paid."""
    saved_worker_s = _saved_worker_s(view, state, now_s=now_s)
    affordable = view.options["workers_on_average"] + saved_worker_s / max(SHORTEST_S, view.options["spend_over_s"])
    most_slots = affordable * view.slots_per_worker
    wanted = (steady_state(queue, view), backlog_drain(queue, view))
    is_short = any(demand.slots > most_slots for demand in wanted)
    return Advice(
        demands=tuple(
            Demand(
                name=demand.name,
                slots=min(demand.slots, most_slots),
                terms={**demand.terms, "affordable_slots": most_slots},
            )
            for demand in wanted
        ),
        state={"at_s": now_s, "saved_worker_s": saved_worker_s},
        notes=(f"the budget pays for {affordable:.1f} workers now",) if is_short else (),
    )


def _affordable(formula: Formula) -> Formula:
    """``formula`` cut to what can be paid."""
    return lambda terms: min(formula(terms), terms["affordable_slots"])


def _saved_worker_s(view: PoolView, state: State, *, now_s: float) -> float:
    allowance = view.options["workers_on_average"]
    passed_s = now_s - state.get("at_s", now_s)
    saved_worker_s: float = state.get("saved_worker_s", 0.0) + (allowance - seen_workers(view)) * passed_s
    return max(0.0, min(saved_worker_s, view.options["saved_h_max"] * HOUR_S * allowance))


BUDGET_AWARE = Strategy(
    name="budget_aware",
    advise=advise,
    formulas={name: _affordable(formula) for name, formula in FORMULAS.items()},
    options=OPTIONS,
)
