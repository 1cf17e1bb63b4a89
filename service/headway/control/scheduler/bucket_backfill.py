"""Reading much of what is new in parts, before an evaluation reads the rest in one piece."""

from collections.abc import Callable

from headway.control.scheduler.bucket_cache import CACHED_S, BucketCache
from headway.store.engine import Engine, transaction
from headway.store.overview import read_buckets, read_news

# Ten thousand busy queues have 600,000 rows in five minutes, and Python makes some ten thousand a second of them where
# others want the machine as well. In one piece the transaction would have ended before they were made.
BACKFILL_PART_S = 10.0
BACKFILL_ROWS_MAX = 50_000  # an evaluation reads so many in one piece: what ten thousand queues bring in five ticks
PASSES_MAX = 5  # each leaves what came during the last, a fraction of that; who writes faster is not waited for


class BucketBackfill:
    """How far a backlog too large for one evaluation has been read. An interrupted read goes on where it was."""

    def __init__(self) -> None:
        self._revision: int | None = None
        """The newest when the parts were begun; ``None`` while none are."""
        self._from_s = 0.0
        self._part_s = BACKFILL_PART_S

    async def keep_up(
        self, engine: Engine, recent: BucketCache, *, now_s: float, on_part: Callable[[], None] = lambda: None
    ) -> None:
        """Bring ``recent`` so far that what is missing of the last minutes fits into one evaluation.

        What it has of a database that was replaced by an older one is dropped. ``on_part`` is called after each part.

        Raises:
            Unavailable: Postgres is away; the parts that were read stay.
        """
        for _ in range(PASSES_MAX):
            if self._revision is None and not await self._is_begun(engine, recent, now_s=now_s):
                return
            await self._pass(engine, recent, now_s=now_s, on_part=on_part)

    async def _is_begun(self, engine: Engine, recent: BucketCache, *, now_s: float) -> bool:
        """Whether anything is read before the evaluation: much in parts, and the little of a beginning in one piece."""
        async with transaction(engine) as connection:
            newest, new_rows = await read_news(
                connection, from_s=now_s - CACHED_S, after_revision=recent.revision, rows_max=BACKFILL_ROWS_MAX + 1
            )
        is_another = newest < recent.revision
        if is_another:
            # Its rows count from an earlier revision on: those that are new in it would never be read.
            recent.clear()
        is_much, is_first = is_another or new_rows > BACKFILL_ROWS_MAX, newest > recent.revision == 0
        if is_much or is_first:
            self._revision, self._from_s = newest, now_s - CACHED_S
            self._part_s = BACKFILL_PART_S if is_much else CACHED_S
        return is_much or is_first

    async def _pass(self, engine: Engine, recent: BucketCache, *, now_s: float, on_part: Callable[[], None]) -> None:
        assert self._revision is not None
        self._from_s = max(self._from_s, now_s - CACHED_S)
        is_last = False
        while not is_last:
            until_s = self._from_s + self._part_s
            is_last = until_s >= now_s
            async with transaction(engine) as connection:
                rows, _ = await read_buckets(
                    connection,
                    from_s=self._from_s,
                    until_s=None if is_last else until_s,
                    after_revision=recent.revision,
                )
            recent.take(rows, revision=recent.revision)
            self._from_s = until_s
            on_part()
        # What was written meanwhile has a later revision, and is read by it.
        recent.take((), revision=self._revision)
        self._revision = None
