"""What keeps more workers from helping, read off a decision."""

from itertools import pairwise

from headway.scaling.explanations.phrases import counted
from headway.scaling.model import Decision, QueueMetrics

HELD = (
    "jobs wait beside idle workers, and more workers started no more jobs: a rate limit of the library, a lock or a "
    "called service holds them back; lift it, or state it as rate_limit_per_s in the profile"
)
MEASURED = (
    "jobs wait beside idle workers, so one step of workers is added at a time and what it brings is measured: a rate "
    "limit of the library (Celery's rate_limit is per worker), a lock or a called service holds jobs back; "
    "rate_limit_per_s in the profile bounds all workers together"
)
UNMOVED = (
    "scheduled jobs are due, and no worker moves them into their queue, so that more workers would get none: add "
    "--with-scheduler to the argv of the template"
)
MOVED_WITHIN_S = 10.0  # RQ's scheduler moves what is due once a second; another may take over from one that ended


def bottlenecks_of(decision: Decision) -> tuple[str, ...]:
    """Why more workers than are decided would not help, and what would, a sentence each without its full stop.

    Empty where no more are wanted, and no job waits that workers cannot get. None names a pool or a queue.
    """
    lowered = {
        after.name: after.workers for before, after in pairwise(decision.steps) if after.workers < before.workers
    }
    sentences = []
    if (useful := lowered.get("useful_workers")) is not None:
        sentences.append(
            f"the broker gives jobs to {counted(useful, 'worker')} at a time (single active consumer), and more would "
            "only wait: spread the jobs over more queues, or give workers more slots"
        )
    if "plateau" in lowered:
        sentences.append(HELD if decision.plateau is not None and decision.plateau.again_s is not None else MEASURED)
    if decision.leaves_due_jobs and any(map(_is_unmoved, decision.metrics)):
        sentences.append(UNMOVED)
    return tuple(sentences)


def _is_unmoved(queue: QueueMetrics) -> bool:
    return bool(queue.overdue_jobs) and (queue.oldest_age_s is None or queue.oldest_age_s > MOVED_WITHIN_S)
