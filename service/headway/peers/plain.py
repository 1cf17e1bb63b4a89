"""The predecessor's plain strategies, each a formula or two of its third version.

``simple_rate`` is throughput times job time. Throughput is what the workers there are can do, so it never grows by
itself. Its maker starts from a floor of one worker; a pool whose floor is 0 gets that one while jobs wait.
``backlog_only`` is the drain alone. A queue that keeps up has no backlog, so nothing is wanted for it.
``conservative`` is the greater of throughput times job time and a late drain, and a quarter more.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import MappingProxyType

from headway.peers.formulas import target_sizing
from headway.peers.formulas.target_sizing import Polled, Sized
from headway.peers.polled_queue import demands_of, formulas_of, polled, polled_of
from headway.peers.scale_down_limits import ANTI_FLAPPING, anti_flapping
from headway.scaling.demands.formulas import Formula
from headway.scaling.explanations.wording import DemandWording, Grounds, Wording
from headway.scaling.model import QueueMetrics
from headway.scaling.strategies.shared import in_workers, of_workers
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView

OPTIONS = MappingProxyType({"cooldown_s": 60.0, "service_guess_s": 2.0, "step_down_share": 0.25})


def _formulas(size: Callable[[Polled], Sized], **parts: str) -> Mapping[str, Formula]:
    """The formulas of a strategy whose terms are what it reads of a queue."""
    return formulas_of(lambda terms: size(polled_of(terms)), parts)


SIMPLE_RATE_FORMULAS = _formulas(target_sizing.simple_rate, steady_state="steady")
BACKLOG_ONLY_FORMULAS = _formulas(target_sizing.backlog_only, backlog_drain="drain")
CONSERVATIVE_FORMULAS = _formulas(target_sizing.conservative, steady_state="steady", backlog_drain="drain")


def simple_rate(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:  # noqa: ARG001 - the port's shape
    """The workers that the throughput keeps busy, and the first worker."""
    first = in_workers("first_worker", view.options["first_workers"] if queue.waiting_least_jobs else 0.0, view)
    return Advice(demands=(*demands_of(SIMPLE_RATE_FORMULAS, asdict(polled(queue, view))), first))


def backlog_only(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:  # noqa: ARG001 - the port's shape
    """The workers that clear the backlog before its oldest job breaches."""
    return Advice(demands=demands_of(BACKLOG_ONLY_FORMULAS, asdict(polled(queue, view))))


def conservative(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:  # noqa: ARG001 - the port's shape
    """Both parts with their spare quarter."""
    return Advice(demands=demands_of(CONSERVATIVE_FORMULAS, asdict(polled(queue, view))))


SIMPLE_RATE = Strategy(
    name="simple_rate",
    advise=simple_rate,
    formulas={**SIMPLE_RATE_FORMULAS, "first_worker": of_workers},
    options=OPTIONS | {"first_workers": 1.0},
    come_down=anti_flapping,
    is_clockless=True,
    wording=Wording(
        demands={
            "first_worker": DemandWording("no worker runs, and a first worker takes {slots}", grounds=Grounds.DEPTHS)
        },
        limits=ANTI_FLAPPING,
    ),
)
BACKLOG_ONLY = Strategy(
    name="backlog_only",
    advise=backlog_only,
    formulas=BACKLOG_ONLY_FORMULAS,
    options=OPTIONS | {"breach_threshold": 0.5},
    come_down=anti_flapping,
    is_clockless=True,
    wording=Wording(limits=ANTI_FLAPPING),
)
CONSERVATIVE = Strategy(
    name="conservative",
    advise=conservative,
    formulas=CONSERVATIVE_FORMULAS,
    options=OPTIONS,
    come_down=anti_flapping,
    is_clockless=True,
    wording=Wording(limits=ANTI_FLAPPING),
)
