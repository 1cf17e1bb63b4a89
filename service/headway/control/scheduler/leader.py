"""Leading: holding the lock, showing signs of life while ticks progress, and standing by otherwise.

standing by ──lock free──▶ leading ──session ended, superseded, or ticks stuck──▶ standing by
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from headway.errors import Unavailable
from headway.store.leadership import LEADER_LEASE_S, NAMED_MAX, LeaderSession

LEADER_STAND_BY_S = 1.0  # a killed leader's lock is free at once: this is the longest it stays untaken
RENEW_S = 2.0

log = logging.getLogger(__name__)


class Leadership:
    """Whether this process leads, and under which epoch."""

    def __init__(self, *, database_url: str, name: str, clock: Callable[[], float]) -> None:
        self._database_url = database_url
        self._name = name
        self._clock = clock
        self._progressed_at_s = clock()
        self._doubted: tuple[str, ...] = ()
        self._is_stuck = False
        self._why_not = ""
        self.epoch: int | None = None
        """The epoch this process leads under; ``None`` while it does not lead."""

    def progressed(self) -> None:
        """A tick went through. Without this the lease is not renewed: a stuck leader must not seem alive."""
        self._progressed_at_s = self._clock()

    def step_down(self, epoch: int) -> None:
        """Stop leading under ``epoch``; whoever noticed that another leads calls this.

        What was begun under an earlier epoch of this process, and is refused now, ends nothing.
        """
        if self.epoch == epoch:
            self.epoch = None

    async def run(self, on_lead: Callable[[], None]) -> None:
        """Lead whenever the lock can be had, until cancelled. ``on_lead`` is called at each new epoch."""
        while True:
            try:
                await self._stand_by_and_lead(on_lead)
            except Unavailable as error:
                self._log_why_not(str(error))
            finally:
                self.epoch = None
            await asyncio.sleep(LEADER_STAND_BY_S)

    def _log_why_not(self, why: str) -> None:
        """Log why this process does not lead, once a change: it tries again each second."""
        if self.epoch is not None:
            log.warning("leadership lost: %s", why)
        elif why != self._why_not:
            log.warning("cannot lead: %s", why)
        self._why_not = why

    async def _stand_by_and_lead(self, on_lead: Callable[[], None]) -> None:
        session = await LeaderSession.open(self._database_url)
        self._why_not = ""
        try:
            while (epoch := await session.try_lead(self._name)) is None:
                if await session.end_silent_leader(lease_s=LEADER_LEASE_S):
                    log.warning(
                        "ended the session of a leader without a heartbeat for more than %.0f s", LEADER_LEASE_S
                    )
                    continue
                await asyncio.sleep(LEADER_STAND_BY_S)
            self.epoch, self._doubted, self._is_stuck = epoch, (), False
            self.progressed()
            log.info("leading epoch=%d", epoch)
            on_lead()
            await self._renew(session, epoch)
        finally:
            with contextlib.suppress(Exception):
                await asyncio.shield(session.close())

    async def _renew(self, session: LeaderSession, epoch: int) -> None:
        while self.epoch == epoch:
            await asyncio.sleep(RENEW_S)
            stuck_s = self._clock() - self._progressed_at_s
            if stuck_s <= LEADER_LEASE_S:
                self._log_renewal(await session.renew(epoch))
            elif not self._is_stuck:
                log.warning("no tick has gone through for %.0f s: not renewed, so that another may lead", stuck_s)
            self._is_stuck = stuck_s > LEADER_LEASE_S

    def _log_renewal(self, doubted: tuple[str, ...]) -> None:
        """Log which hosts are not believed, once a change."""
        if doubted and doubted != self._doubted:
            log.warning(
                "not followed: hosts=%s report a later epoch than any leader's, or too often, and take no assignment: "
                "check who calls as them; to begin anew stop their agents, `headway host forget` them and start those",
                ",".join(doubted[:NAMED_MAX]),
            )
        self._doubted = doubted
