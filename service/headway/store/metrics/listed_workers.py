"""How many workers brokers listed of queues, and when, as ingest wrote it down."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from sqlalchemy import text

from headway.scaling.metrics.reports.listed_time import ListedSpan
from headway.store.engine import Connection

# What ended is in the one table; what goes on, as far as it was read, in the other.
_SPANS = text(
    """
    select queue, from_s, until_s, workers from listed_workers where queue = any(cast(:queues as text[]))
    union all
    select queue, listed_since_s, sampled_at_s, listed_workers from queue_samples
    where queue = any(cast(:queues as text[])) and listed_workers is not null and listed_since_s is not null
    order by queue, from_s
    """
)


async def read_listed(conn: Connection, queues: Collection[str]) -> Mapping[str, tuple[ListedSpan, ...]]:
    """Queue -> spans of equal counts, oldest first, of the last 14 days; of a queue without any nothing."""
    found: dict[str, list[ListedSpan]] = defaultdict(list)
    for row in await conn.execute(_SPANS, {"queues": sorted(queues)}):
        found[row.queue].append(ListedSpan(from_s=row.from_s, until_s=row.until_s, workers=row.workers))
    return {queue: tuple(spans) for queue, spans in found.items()}
