"""What keeps more workers from helping, read off a decision."""

from itertools import pairwise

from headway.scaling.explain import counted
from headway.scaling.model import Decision


def bottlenecks_of(decision: Decision) -> tuple[str, ...]:
    """Why more workers than are decided would not help, and what would, a sentence each without its full stop.

    Empty where no more are wanted. None names a pool or a queue.
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
    return tuple(sentences)
