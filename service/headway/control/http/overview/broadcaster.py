"""One snapshot for all who watch, made when something changed and somebody watches."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pydantic_core import from_json

from headway.control.bounds import DEFAULT, Bounds
from headway.control.held_counts import one_more
from headway.control.http.event_stream import STILL_HERE, Snapshot
from headway.control.http.overview.overview_changes import change
from headway.errors import HeadwayError, Overloaded

BROADCAST_PAUSE_S = 1.0  # a person reads no faster, whatever the pipeline writes
BROADCAST_REFRESH_S = 3.0  # also without a notification: what stops sends none, and must be seen within 10 s
BROADCAST_BUSY_FRACTION_MAX = 0.1  # of the time may go into snapshots; with very many queues they come less often
PAUSE_MAX_S = 5.0  # but for this: where Postgres or the machine is slow, the page would say that nobody answers
BROADCAST_CLOSE_S = 0.5  # a snapshot under way takes far less, unless the database hangs
KEEP_ALIVE_S = 15.0  # proxies end what is silent for longer

log = logging.getLogger(__name__)


class Feed:
    """Fans changes out to viewers. Without a viewer, a notification of a change costs nothing."""

    def __init__(
        self,
        *,
        pause_s: float = BROADCAST_PAUSE_S,
        refresh_s: float = BROADCAST_REFRESH_S,
        bounds: Bounds = DEFAULT,
        ended_report: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``ended_report`` is asked when the feed is closed: a line of JSON, where what is watched ends for good."""
        self._ended_report = ended_report
        self._pause_s = pause_s
        self._refresh_s = refresh_s
        self._bounds = bounds
        self._places = Counter[str]()
        self.refused = Counter[str]()
        """Viewers without a place, by whose bound they met: of their ``token``, or of ``all``."""
        self._viewers = 0
        self._followers = 0
        """Viewers who take changes."""
        self._number = 0
        self._latest: Snapshot | None = None
        self._change: Snapshot | None = None
        """What turns the overview before the latest into the latest."""
        self._compared: tuple[int, Any] | None = None
        """The newest overview that was made while somebody took changes, and its number."""
        self._due = asyncio.Event()
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()
        self._ended: Snapshot | None = None
        self._runner: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Nobody watches, and nothing is made."""
        return self._runner is None

    def pause_after_s(self, took_s: float) -> float:
        """How long no snapshot is made after one that took ``took_s``."""
        return max(self._pause_s, min(took_s / BROADCAST_BUSY_FRACTION_MAX, PAUSE_MAX_S))

    def publish(self) -> None:
        """Something changed: those who watch get a new snapshot, soon."""
        self._due.set()

    @property
    def places_taken(self) -> int:
        """How many viewers have a place."""
        return self._places.total()

    @contextmanager
    def place(self, who: str) -> Iterator[None]:
        """A viewer's place, until the end of the block. Raises ``Overloaded`` where ``who``, or all, have too many."""
        bounds = self._bounds
        if self._places[who] >= bounds.viewers_per_token_max:
            self.refused["token"] += 1
            raise Overloaded(
                f"{bounds.viewers_per_token_max} viewers watch already with this token, or from this address where all "
                "show the same: close one, or raise HEADWAY_VIEWERS_PER_TOKEN"
            )
        if self.places_taken >= bounds.viewers_max:
            self.refused["all"] += 1
            raise Overloaded(f"{bounds.viewers_max} viewers watch already: close one, or raise HEADWAY_VIEWERS")
        with one_more(self._places, who):
            yield

    async def watch(
        self, compute: Callable[[], Awaitable[str]], *, by_changes: bool = False
    ) -> AsyncIterator[Snapshot]:
        """The present snapshot, then each newer one, until the feed is closed. A slow viewer skips what it misses.

        ``compute`` makes a snapshot; that of the first viewer serves all. With ``by_changes`` a viewer who has had the
        overview before gets what differs from it.
        """
        self._viewers += 1
        self._followers += by_changes
        self._due.set()
        if self._runner is None:
            self._runner = asyncio.create_task(self._run(compute), name="feed")
        seen = overview = 0
        try:
            while not self._closed.is_set():
                changed, latest, newer = self._changed, self._latest, self._change
                if latest is None or latest.number == seen:
                    await _wait(changed, KEEP_ALIVE_S)
                    if not changed.is_set():
                        yield STILL_HERE
                    continue
                seen = latest.number
                if by_changes and newer is not None and (newer.number, newer.since) == (seen, overview):
                    latest = newer
                if latest.event != "problem":
                    overview = seen
                yield latest
            if self._ended is not None:
                yield self._ended
        finally:
            self._viewers -= 1
            self._followers -= by_changes
            self._due.set()

    async def close(self) -> None:
        """End every viewer's stream, with the report of what has ended where there is one."""
        if (report := self._ended_report()) is not None:
            self._ended = Snapshot(number=self._number + 1, event="ended", data=report)
        self._closed.set()
        self._due.set()
        self._changed.set()
        if self._runner is not None:
            _, late = await asyncio.wait([self._runner], timeout=BROADCAST_CLOSE_S)
            for task in late:
                task.cancel()

    async def _run(self, compute: Callable[[], Awaitable[str]]) -> None:
        clock = asyncio.get_running_loop().time
        while self._viewers and not self._closed.is_set():
            self._due.clear()
            began_s = clock()
            await self._publish(compute)
            took_s = clock() - began_s
            await _wait(self._closed, self.pause_after_s(took_s))
            await _wait(self._due, self._refresh_s)
        # What nobody watched grows old; the next viewer waits for a new one.
        self._latest = self._change = self._compared = self._runner = None

    async def _publish(self, compute: Callable[[], Awaitable[str]]) -> None:
        number, newer = self._number + 1, None
        try:
            event, data = "overview", await compute()
            if self._followers:
                newer = await asyncio.to_thread(self._compare, number, data)
            else:
                self._compared = None
        except HeadwayError as error:
            event, data = "problem", json.dumps(str(error))
        except Exception:
            log.exception("no snapshot")
            event, data = "problem", json.dumps("the overview failed by a bug of Headway: its log has the trace")
        self._number = number
        self._latest, self._change = Snapshot(number=number, event=event, data=data), newer
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _compare(self, number: int, data: str) -> Snapshot | None:
        """What turns the overview before into this one; ``None`` where there is none."""
        before, self._compared = self._compared, (number, from_json(data))
        if before is None:
            return None
        since, known = before
        differs = {"since": since, **change(known, self._compared[1])}
        newer = Snapshot(number=number, event="change", data=json.dumps(differs, separators=(",", ":")), since=since)
        newer.deflated  # noqa: B018 - here, and not where viewers are served
        return newer


async def _wait(event: asyncio.Event, timeout_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
