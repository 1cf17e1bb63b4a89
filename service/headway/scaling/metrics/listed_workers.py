"""The workers of a pool that its broker lists, whoever started them: what runs where Headway only recommends."""

from collections.abc import Iterable, Mapping

from headway.scaling.model import QueueSample

LISTED_GAP_S = 30.0
"""Without a reading for longer than this, nobody knows how many workers the broker listed meanwhile."""


def listed_workers(queues: Iterable[str], samples: Mapping[str, QueueSample], *, now_s: float) -> int | None:
    """How many workers serve ``queues``; ``None`` where that is not known of one of them, which is not zero.

    A pool's workers serve all of its queues, so the greatest of their counts is the pool's: the sum would count a
    worker once a queue.

    Args:
        queues: Of one pool.
        samples: The newest reading of each queue, by name.
        now_s: Unix seconds; a reading older than ``LISTED_GAP_S`` says nothing of now.
    """
    counts = [_listed(samples.get(queue), now_s) for queue in queues]
    known = [count for count in counts if count is not None]
    return max(known) if known and len(known) == len(counts) else None


def _listed(sample: QueueSample | None, now_s: float) -> int | None:
    return sample.listed_workers if sample is not None and now_s - sample.at_s <= LISTED_GAP_S else None
