"""Filling what is kept of the last minutes before reading can go on by revision."""

from collections.abc import Callable

from headway.control.recent import KEPT_S, RecentBuckets
from headway.store.engine import Engine, transaction
from headway.store.overview import read_buckets, read_newest_revision

# Ten thousand busy queues have 600,000 rows in five minutes, and Python makes some ten thousand a second of them where
# others want the machine as well. In one piece the transaction would have ended before they were made.
PART_S = 10.0


class Filling:
    """How far the last minutes have been read. What was interrupted goes on where it was."""

    def __init__(self) -> None:
        self._revision = 0
        self._from_s: float | None = None
        self.is_done = False

    async def go_on(
        self, engine: Engine, recent: RecentBuckets, *, now_s: float, on_part: Callable[[], None] = lambda: None
    ) -> None:
        """Read what is missing into ``recent``, in parts, after each of which ``on_part`` is called.

        Raises:
            Unavailable: Postgres is away; the parts that were read stay.
        """
        if self._from_s is None:
            async with transaction(engine) as connection:
                # First: what is written meanwhile is read again by its revision.
                self._revision = await read_newest_revision(connection)
            self._from_s = now_s - KEPT_S
        while not self.is_done:
            until_s = self._from_s + PART_S
            is_last = until_s >= now_s
            async with transaction(engine) as connection:
                rows, _ = await read_buckets(connection, from_s=self._from_s, until_s=None if is_last else until_s)
            recent.take(rows, revision=0)
            self._from_s, self.is_done = until_s, is_last
            on_part()
        recent.take((), revision=self._revision)
