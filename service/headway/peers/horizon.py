"""Laravel Horizon's `auto` balance, by time to clear and by number of jobs: one worker every 3 s.

The whole pool is split over its queues in proportion, so one queue in which anything waits, alone, is on its way to all
of them, and an empty one back to the least. There is no objective in it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from headway.scaling.arithmetic import SHORTEST_S
from headway.scaling.explanations.wording import DemandWording, Wording
from headway.scaling.model import QueueMetrics
from headway.scaling.strategies.shared import at_once, in_workers, of_workers
from headway.scaling.strategy import Advice, Advise, State, Strategy
from headway.scaling.view import PoolView

OPTIONS = MappingProxyType({"balance_max_shift": 1.0, "balance_cooldown_s": 3.0})

Load = Callable[[QueueMetrics], float]


def time_to_clear_s(queue: QueueMetrics) -> float:
    """What one worker needs for the jobs that wait; nothing while no job's time is known."""
    return queue.waiting_least_jobs * (queue.service_time_s or 0.0)


def size(queue: QueueMetrics) -> float:
    """The jobs that wait."""
    return float(queue.waiting_least_jobs)


def shares(queues: Sequence[QueueMetrics], load: Load, *, workers_min: int, workers_max: int) -> dict[str, int]:
    """How many workers each queue is on its way to: all of them in proportion to its load.

    Where nothing can be cleared, all for each queue with jobs, of which no time is known, and the least for the others.
    """
    if sum(time_to_clear_s(queue) for queue in queues) <= 0:
        return {queue.queue: workers_max if queue.waiting_least_jobs else workers_min for queue in queues}
    total = sum(load(queue) for queue in queues)
    return {queue.queue: math.ceil(workers_max * load(queue) / total) for queue in queues}


def shifted(
    counts: Mapping[str, int], wanted: Mapping[str, int], *, shift: int, workers_min: int, workers_max: int
) -> dict[str, int]:
    """The counts after each queue's move by ``shift`` at most, in turn, within what the whole pool may have."""
    moved = dict(counts)
    most = max(workers_min, workers_max - (len(counts) - 1) * workers_min)
    for queue, count in counts.items():
        total = sum(moved.values())
        if wanted[queue] > count:
            moved[queue] = min(count + min(max(0, workers_max - total), shift), most, wanted[queue])
        elif wanted[queue] < count:
            moved[queue] = max(count - min(max(0, total - workers_min), shift), workers_min, wanted[queue])
    return moved


def _advise(load: Load) -> Advise:
    def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:  # noqa: ARG001 - reads members
        bounds = {"workers_min": view.profile.workers_min, "workers_max": view.profile.workers_max}
        known = state.get("workers", {})
        counts = {member.queue: int(known.get(member.queue, view.profile.workers_min)) for member in view.queues}
        wanted = shares(view.queues, load, **bounds)
        turns, turned_at_s = _turns(state, view, now_s=now_s)
        counts = shifted(counts, wanted, shift=turns * int(view.options["balance_max_shift"]), **bounds)
        return Advice(
            demands=(in_workers("balance", sum(counts.values()), view),),
            state={"workers": counts, "turned_at_s": turned_at_s},
        )

    return advise


def _turns(state: State, view: PoolView, *, now_s: float) -> tuple[int, float]:
    """How often it would have balanced since the last evaluation, and when last: it turns more often than ours."""
    turned_at_s, cooldown_s = state.get("turned_at_s"), max(SHORTEST_S, view.options["balance_cooldown_s"])
    if turned_at_s is None:
        return 1, now_s
    turns = math.floor((now_s - turned_at_s) / cooldown_s)
    return min(turns, math.ceil(view.tick_s / cooldown_s)), turned_at_s + turns * cooldown_s


WORDING = Wording(demands={"balance": DemandWording("the strategy's balance of the queues is at {slots}")})

FORMULAS = MappingProxyType({"balance": of_workers})
HORIZON_TIME = Strategy(
    name="horizon_time",
    advise=_advise(time_to_clear_s),
    formulas=FORMULAS,
    options=OPTIONS,
    come_down=at_once,
    wording=WORDING,
)
HORIZON_SIZE = Strategy(
    name="horizon_size", advise=_advise(size), formulas=FORMULAS, options=OPTIONS, come_down=at_once, wording=WORDING
)
