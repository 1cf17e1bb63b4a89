"""The predecessor's drain alone. A queue that keeps up has no backlog, so nothing is wanted for it."""

from types import MappingProxyType

from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.strategies.peers.formulas import target_sizing
from headway.scaling.strategies.peers.polled_queue import polled
from headway.scaling.strategies.peers.scale_down_limits import anti_flapping
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView

OPTIONS = MappingProxyType(
    {"breach_threshold": 0.5, "cooldown_s": 60.0, "service_guess_s": 2.0, "step_down_share": 0.25}
)


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:  # noqa: ARG001 - the port's shape
    """What clears the backlog before its oldest job breaches."""
    sized = target_sizing.backlog_only(polled(queue, view))
    return Advice(demands=(Demand(name="backlog_drain", slots=sized.drain),))


BACKLOG_ONLY = Strategy(name="backlog_only", advise=advise, options=OPTIONS, come_down=anti_flapping, is_clockless=True)
