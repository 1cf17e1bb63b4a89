"""The default: the greatest of steady state, forecast and backlog drain, of the pool and of each member alone."""

from headway.scaling.demand import RULES, Rule
from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:  # noqa: ARG001 - the port's shape
    """Each rule's demand."""
    return Advice(demands=tuple(_demand(rule, queue, view) for rule in RULES))


def _demand(rule: Rule, queue: QueueMetrics, view: PoolView) -> Demand:
    """The rule's demand for the members together, never below that for any member alone."""
    together = rule(queue, view)
    return max([together, *(rule(member, view) for member in view.queues)], key=lambda demand: demand.slots)


HYBRID = Strategy(name="hybrid", advise=advise, is_clockless=True)
