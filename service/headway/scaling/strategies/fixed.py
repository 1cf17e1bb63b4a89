"""The profile's floor, whatever waits."""

from headway.scaling.explanations.wording import DemandWording, Wording
from headway.scaling.model import QueueMetrics
from headway.scaling.strategies.shared import at_once, in_workers, of_workers
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:  # noqa: ARG001 - the port's shape
    """``workers_min``."""
    return Advice(demands=(in_workers("fixed", view.profile.workers_min, view),))


FIXED = Strategy(
    name="fixed",
    advise=advise,
    formulas={"fixed": of_workers},
    come_down=at_once,
    is_clockless=True,
    wording=Wording(demands={"fixed": DemandWording("the profile's floor is {slots}")}),
)
