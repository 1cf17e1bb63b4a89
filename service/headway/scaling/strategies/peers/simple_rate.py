"""Throughput times job time, and nothing else: the predecessor's simplest.

Throughput is what the workers there are can do, so it never grows by itself. Its maker starts from a floor of one
worker; a pool whose floor is 0 gets that one while jobs wait.
"""

from types import MappingProxyType

from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.strategies.known_metrics import in_workers
from headway.scaling.strategies.peers.formulas import target_sizing
from headway.scaling.strategies.peers.polled_queue import polled
from headway.scaling.strategies.peers.scale_down_limits import anti_flapping
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView

OPTIONS = MappingProxyType({"cooldown_s": 60.0, "first_workers": 1.0, "service_guess_s": 2.0, "step_down_share": 0.25})


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:  # noqa: ARG001 - the port's shape
    """What keeps busy what is finished, and the first worker."""
    sized = target_sizing.simple_rate(polled(queue, view))
    first = in_workers("first_worker", view.options["first_workers"] if queue.waiting_least_jobs else 0.0, view)
    return Advice(demands=(Demand(name="steady_state", slots=sized.steady), first))


SIMPLE_RATE = Strategy(name="simple_rate", advise=advise, options=OPTIONS, come_down=anti_flapping, is_clockless=True)
