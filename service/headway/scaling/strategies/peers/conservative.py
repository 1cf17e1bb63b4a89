"""The predecessor's careful one: the greater of throughput times job time and a late drain, and a quarter more."""

from types import MappingProxyType

from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.strategies.peers.formulas import target_sizing
from headway.scaling.strategies.peers.polled_queue import polled
from headway.scaling.strategies.peers.scale_down_limits import anti_flapping
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView

OPTIONS = MappingProxyType({"cooldown_s": 60.0, "service_guess_s": 2.0, "step_down_share": 0.25})


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:  # noqa: ARG001 - the port's shape
    """Both terms with their spare quarter."""
    sized = target_sizing.conservative(polled(queue, view))
    return Advice(
        demands=(Demand(name="steady_state", slots=sized.steady), Demand(name="backlog_drain", slots=sized.drain))
    )


CONSERVATIVE = Strategy(name="conservative", advise=advise, options=OPTIONS, come_down=anti_flapping, is_clockless=True)
