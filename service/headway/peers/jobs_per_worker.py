"""One worker for every ten jobs that wait, once a minute: base workers stay, the others leave when there is nothing.

The rule as its maker's text means it: 100 jobs want 10 workers, so 2 need 8 more. The formula published beside that
text divides by the workers first, and answers 3. It knows no time: ten jobs of 30 s are a wait of five minutes.
"""

import math
from types import MappingProxyType

from headway.scaling.explanations.wording import DemandWording, Grounds, Wording
from headway.scaling.model import QueueMetrics
from headway.scaling.strategies.shared import at_once, in_workers, of_workers, seen_workers
from headway.scaling.strategy import Advice, State, Strategy
from headway.scaling.view import PoolView

OPTIONS = MappingProxyType(
    {
        "jobs_per_worker": 10.0,
        "every_s": 60.0,
        "base_workers": 1.0,
        "burst_exit": 1.0,  # 0: the others are released at the next evaluation, instead of leaving by themselves
    }
)
JOBS_LEAST = 0.0001  # per worker; with less, a single job asks for more workers than any pool may have


def advise(queue: QueueMetrics, view: PoolView, state: State, now_s: float) -> Advice:
    """Once a minute what the backlog wants, if that is more than there are; else those there are, less the idle."""
    evaluated_at_s = state.get("looked_at_s")
    is_due = evaluated_at_s is None or now_s - evaluated_at_s >= view.options["every_s"]
    jobs_per_worker = max(JOBS_LEAST, view.options["jobs_per_worker"])
    for_backlog = math.ceil(queue.waiting_least_jobs / jobs_per_worker) if is_due else 0
    there = seen_workers(view)
    base = int(view.options["base_workers"])
    workers = for_backlog if for_backlog > there else max(base, there - _idle_workers(view))
    workers = min(workers, view.profile.workers_max)
    return Advice(
        demands=(in_workers("jobs_per_worker", workers, view),),
        state={"looked_at_s": now_s} if is_due else state,
        burst_workers=max(0, workers - base) if view.options["burst_exit"] else 0,
    )


def _idle_workers(view: PoolView) -> int:
    """Running workers without a job. Where it is not known which have one, all of them may."""
    return 0 if view.busy_workers is None else max(0, view.running_workers - view.busy_workers)


WORDING = Wording(
    demands={
        "jobs_per_worker": DemandWording(
            "the strategy's workers for this many waiting jobs have {slots}", grounds=Grounds.DEPTHS
        )
    }
)

JOBS_PER_WORKER = Strategy(
    name="jobs_per_worker",
    advise=advise,
    formulas={"jobs_per_worker": of_workers},
    options=OPTIONS,
    come_down=at_once,
    wording=WORDING,
)
