"""Which events nobody reports of a queue: what is counted of them is unknown, and not zero."""

from collections.abc import Iterable, Mapping, Sequence

from headway.scaling.measure import BucketRow, is_uneventful
from headway.scaling.metrics.newest_sample import RATES
from headway.scaling.model import QueueSample

EVERYTHING = frozenset(RATES)
NOTHING: frozenset[str] = frozenset()


def unreported(rows: Sequence[BucketRow], samples: Mapping[str, QueueSample], queues: Iterable[str]) -> frozenset[str]:
    """The kinds of events, by the names in ``RATES``, that are not reported of one of ``queues`` at least.

    Without that member a sum over all would be too small. A queue that was never seen is left out, where another was.

    Args:
        rows: Of some queues, from as far back as an event shows that events are reported.
        samples: The newest reading of each queue, where there is one.
        queues: Those that are added up.
    """
    eventful = {row.queue for row in rows if not is_uneventful(row)}
    # Of an empty queue the age is known, whoever reads it: one reading without shows that events are not reported.
    read = [row for row in rows if row.sampled_at_s is not None]
    ageless = {row.queue for row in read if row.oldest_age_s is None}
    ageless.update(queue for queue, sample in samples.items() if sample.oldest_age_s is None)
    seen = eventful.union(samples, (row.queue for row in read))
    found = [
        _unreported(samples.get(queue), is_silent=queue not in eventful and queue in ageless)
        for queue in queues
        if queue in seen
    ]
    return NOTHING.union(*found) if found else EVERYTHING


def _unreported(newest: QueueSample | None, *, is_silent: bool) -> frozenset[str]:
    """Of one queue. What its source says counts; where it says nothing, events do, or an age, as in ``measure``."""
    said = {name: getattr(newest, name, None) for name in RATES}
    return frozenset(
        name for name, is_reported in said.items() if is_reported is False or (is_reported is None and is_silent)
    )
