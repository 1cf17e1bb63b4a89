"""The leader posts what waits in the outbox: each receiver for itself, in order per pool, until it is taken."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection

import httpx

from headway.control.notifications.messages import Posted, message_id, message_of
from headway.control.notifications.receivers import Receiver
from headway.errors import Unavailable
from headway.local.backoff import DoublingPause
from headway.store.engine import Engine, transaction
from headway.store.outbox.notifications import GIVEN_UP, SENT, WAITING, read_due, save_attempt
from headway.store.outbox.pool_events import PostedEvent, read_due_events, save_event_attempt

POLL_S = 1.0
ATTEMPT_S = 10.0  # whole attempts: a receiver that sends a byte now and then holds none for longer
PAUSE = DoublingPause(5.0, 900.0)
GIVEN_UP_AFTER_S = 86_400.0  # an incident of yesterday wakes nobody usefully
AT_ONCE_MAX = 4  # pools of one receiver

log = logging.getLogger(__name__)


class NotificationSender:
    """Posts notifications while this process leads. A message may be repeated after a crash, under the same id."""

    def __init__(
        self,
        *,
        engine: Engine,
        receivers: Collection[Receiver],
        epoch: Callable[[], int | None],
        clock: Callable[[], float] = time.time,
        attempt_s: float = ATTEMPT_S,
    ) -> None:
        self._engine = engine
        self._receivers = receivers
        self._epoch = epoch
        self._clock = clock
        self._attempt_s = attempt_s

    async def run(self) -> None:
        """Send for ever. A receiver that hangs holds no other."""
        logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs URLs, and Slack's are secrets
        async with httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=self._attempt_s) as client:
            await asyncio.gather(asyncio.Event().wait(), *(self._serve(client, each) for each in self._receivers))

    async def _serve(self, client: httpx.AsyncClient, to: Receiver) -> None:
        while True:
            try:
                await self.send_due(client, to)
            except Unavailable as error:
                log.warning("notifications not sent receiver=%s: %s", to.name, error)
            except Exception:
                log.exception("notifications not sent receiver=%s", to.name)
            await asyncio.sleep(POLL_S)

    async def send_due(self, client: httpx.AsyncClient, to: Receiver) -> None:
        """Try the oldest notification and the oldest event of each pool whose pause is over."""
        epoch = self._epoch()
        if epoch is None:
            return
        async with transaction(self._engine) as conn:
            incidents = await read_due(conn, to.name, now_s=self._clock(), epoch=epoch)
            events = await read_due_events(conn, to.name, now_s=self._clock(), epoch=epoch)
        due: tuple[Posted, ...] = (*incidents, *events)
        at_once = asyncio.Semaphore(AT_ONCE_MAX)

        async def send(one: Posted) -> None:
            async with at_once:
                if self._epoch() == epoch:  # a receiver that hangs lasts longer than a leader may
                    await self._attempt(client, to, one, epoch)

        await asyncio.gather(*map(send, due))

    async def _attempt(self, client: httpx.AsyncClient, to: Receiver, one: Posted, epoch: int) -> None:
        failure = await self._post(client, to, one)
        now_s, attempts = self._clock(), one.attempts + 1
        state = SENT if failure is None else GIVEN_UP if now_s - one.at_s >= GIVEN_UP_AFTER_S else WAITING
        next_at_s = now_s + PAUSE.after_s(attempts)
        async with transaction(self._engine) as conn:
            if isinstance(one, PostedEvent):
                await save_event_attempt(conn, one, state=state, next_at_s=next_at_s, epoch=epoch)
            else:
                await save_attempt(conn, one, state=state, next_at_s=next_at_s, epoch=epoch)
        if failure is not None:
            did = "given up" if state == GIVEN_UP else "failed"
            log.warning(
                "notification %s receiver=%s id=%s attempts=%d: %s", did, to.name, message_id(one), attempts, failure
            )

    async def _post(self, client: httpx.AsyncClient, to: Receiver, one: Posted) -> str | None:
        """Why the receiver has not taken it; ``None`` where it has. The answer's body is not read."""
        body, headers = message_of(one, to, now_s=self._clock())
        try:
            async with (
                asyncio.timeout(self._attempt_s),
                client.stream("POST", to.url, content=body, headers=headers) as answer,
            ):
                return None if answer.is_success else f"HTTP {answer.status_code}"
        except TimeoutError:
            return f"no answer within {self._attempt_s:g} s"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return type(error).__name__  # its text may repeat the URL
