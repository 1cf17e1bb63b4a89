"""What is known of a pool, for its conditions."""

from typing import Any

from headway.scaling.conditions.pool_facts import PoolFacts, WorkerCounts
from headway.scaling.metrics.job_failures import Failures
from headway.scaling.model import Objective, QueueMetrics
from headway.scaling.profile import Profile

NOW_S = 1_800_000_000.0
PROFILE = Profile(pool="mail", queues=("q",), template="rq", objective=Objective(target_s=10), stale_after_s=20)
MEASURED = {"pickup_objective_s": 1.0, "start_rate_per_s": 1.0}
ALL_FAIL = Failures(ended_jobs=40, failed_jobs=40)


def known_pool(metrics: dict[str, Any], **values: Any) -> PoolFacts:
    """A pool of one queue at this moment; ``values`` are facts that differ from those of a pool that is well."""
    seen = QueueMetrics(**{"queue": "q", "sampled_at_s": NOW_S, "waiting_jobs": 0, "oldest_age_s": 0.0, **metrics})
    return PoolFacts(
        **{
            "profile": PROFILE,
            "metrics": seen,
            "members": (seen,),
            "measured_age_s": 1.0,
            "failures": (),
            "counts": WorkerCounts(running=3),
            "target_workers": 3,
            "is_crash_looping": False,
            "no_host": None,
            "now_s": NOW_S,
            **values,
        }
    )
