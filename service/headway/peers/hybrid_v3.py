"""The predecessor's third algorithm: Little on a guessed arrival rate, and a drain from half of the objective on.

Arrivals are guessed from throughput and the growth of the backlog, and mixed with a line through the past ones as the
profile's forecast policy says. Finished waits, once there are enough, take the place of the oldest job's age: a queue
that has just stopped seems well for as long as they are remembered.
"""

import math
from types import MappingProxyType

from headway.peers.formulas import drain
from headway.peers.formulas.arrivals import Outlook, PolledSample
from headway.peers.formulas.forecast import POLICIES
from headway.peers.formulas.hybrid_parts import Hybrid, Learned, Settings, Sight, hybrid
from headway.peers.formulas.target_sizing import littles_law
from headway.peers.polled_queue import active_slots, failure_percent, served_per_s
from headway.peers.scale_down_limits import ANTI_FLAPPING, anti_flapping
from headway.scaling.arithmetic import SHORTEST_S
from headway.scaling.demands.formulas import Terms, demand, named
from headway.scaling.explanations.wording import DemandWording, Wording
from headway.scaling.model import Demand, QueueMetrics
from headway.scaling.profile import Forecast
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView

OPTIONS = MappingProxyType(
    {
        "breach_threshold": 0.5,
        "confidence_min": 0.5,
        "cooldown_s": 60.0,
        "horizon_s": 60.0,
        "samples_min": 20.0,
        "service_guess_s": 2.0,
        "start_up_guess_s": 2.0,
        "step_down_share": 0.25,
    }
)
POLICY_OF = MappingProxyType(
    {Forecast.AUTO: "moderate", Forecast.OFF: "disabled"}
)  # its default profile's, where ours leaves it open


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:
    """Steady state and drain, or one worker more where all are busy and neither asks for any."""
    sight, settings = _sight(queue, view, now_s=now_s), _settings(view)
    sizing, learned = hybrid(sight, _learned(state), settings)
    return Advice(demands=_demands(sizing, sight, settings), state=_state(learned), notes=_notes(sizing))


def _sight(queue: QueueMetrics, view: PoolView, *, now_s: float) -> Sight:
    busy = view.busy_workers or 0
    ended_jobs = served_per_s(queue) * view.profile.objective.window_s
    return Sight(
        at_s=now_s,
        backlog_jobs=queue.waiting_least_jobs,
        oldest_age_s=queue.oldest_age_s or 0.0,
        served_per_s=served_per_s(queue),
        measured_s=queue.service_time_s or 0.0,
        failure_percent=failure_percent(queue),
        busy_percent=100.0 * busy / view.running_workers if view.running_workers else 0.0,
        active_workers=active_slots(view),
        start_up_s=view.options["start_up_guess_s"] if view.start_up_s is None else view.start_up_s,
        waited_s=queue.pickup_objective_s if ended_jobs >= view.options["samples_min"] else None,
    )


def _settings(view: PoolView) -> Settings:
    policy = POLICIES[POLICY_OF.get(view.profile.forecast, view.profile.forecast.value)]
    return Settings(
        objective_s=max(SHORTEST_S, view.profile.objective.target_s),
        workers_min=view.profile.workers_min * view.slots_per_worker,
        workers_max=view.profile.workers_max * view.slots_per_worker,
        threshold=view.options["breach_threshold"],
        fallback_s=view.options["service_guess_s"],
        confidence_min=view.options["confidence_min"],
        outlook=Outlook(policy=policy, horizon_s=view.options["horizon_s"]),
    )


def _demands(sizing: Hybrid, sight: Sight, settings: Settings) -> tuple[Demand, ...]:
    """Its two parts, and what its bounds and its smoother left of them where that is more."""
    service_s = sizing.sized.service_s
    steady_terms = {"arrival_rate_per_s": sizing.rate_per_s, "service_time_s": service_s}
    drain_terms = {
        "backlog_jobs": sight.backlog_jobs,
        "oldest_age_s": math.floor(sizing.signal_s),
        "objective_s": settings.objective_s,
        "service_s": service_s,
        "threshold": settings.threshold,
        "left_after_start_s": sizing.span_s,
    }
    demands = [demand(steady_state, steady_terms), demand(backlog_drain, drain_terms)]
    if sizing.is_boosted:
        demands.append(demand(saturation, {"active_slots": sight.active_workers}))
    if sizing.is_smoothed:
        demands.append(demand(smoother, {"smoothed_slots": sizing.workers}))
    return tuple(demands)


def steady_state(terms: Terms) -> float:
    """Slots that what counts as new jobs keeps busy."""
    return littles_law(terms["arrival_rate_per_s"], terms["service_time_s"])


def backlog_drain(terms: Terms) -> float:
    """Slots that clear the backlog before its oldest job breaches."""
    return drain.backlog_drain(**terms)  # type: ignore[arg-type]


def saturation(terms: Terms) -> float:
    """One more than are busy."""
    return terms["active_slots"] + 1


def smoother(terms: Terms) -> float:
    """As many as the smoother leaves."""
    return terms["smoothed_slots"]


def _notes(sizing: Hybrid) -> tuple[str, ...]:
    if sizing.retries_per_s <= 0:
        return ()
    return (f"{sizing.retries_per_s:.2g} of {sizing.raw_rate_per_s:.2g} jobs a second are taken for retries",)


def _learned(state: State) -> Learned:
    return Learned(
        samples=tuple(PolledSample(at_s, backlog_jobs) for at_s, backlog_jobs in state.get("looks", ())),
        rates=tuple(state.get("rates", ())),
        workers=state.get("workers"),
    )


def _state(learned: Learned) -> State:
    return {
        "looks": [[sample.at_s, sample.backlog_jobs] for sample in learned.samples],
        "rates": list(learned.rates),
        "workers": learned.workers,
    }


WORDING = Wording(
    demands={
        "saturation": DemandWording(
            "every worker is busy, and the strategy then adds one: {slots}", "every worker is busy"
        ),
        "smoother": DemandWording("while throughput is steady, the strategy scales down one by one, now to {slots}"),
    },
    limits=ANTI_FLAPPING,
)

HYBRID_V3 = Strategy(
    name="hybrid_v3",
    advise=advise,
    formulas=named(steady_state, backlog_drain, saturation, smoother),
    options=OPTIONS,
    come_down=anti_flapping,
    wording=WORDING,
)
