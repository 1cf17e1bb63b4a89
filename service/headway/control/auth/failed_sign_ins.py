"""Failed sign-ins, by address: whoever guesses is answered ever later, and the audit log says so.

An address that fails often is refused for a while, whatever it shows, but for what it has shown with success before: an
agent behind the same address goes on.
"""

import ipaddress
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headway.errors import HeadwayError, Overloaded
from headway.local.backoff import DoublingPause
from headway.local.throttle import Throttle
from headway.store.audit import Actor, record_act
from headway.store.engine import Engine, transaction

SIGN_INS_FREE_FAILURES = 10  # within FORGOTTEN_S: a token with a typing error, tried by hand
FORGOTTEN_S = 60.0
PAUSE = DoublingPause(1.0, 60.0)
ADDRESSES_MAX = 10_000
SIGN_INS_GOOD_MAX = 1_000  # of one address
SIGN_INS_AUDITED_MAX = 30  # lines a minute, of all addresses

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Address:
    failures: int = 0
    failed_at_s: float = float("-inf")
    refused_until_s: float = float("-inf")
    good: set[str] = field(default_factory=set)


class FailedSignIns:
    """What each address has shown lately."""

    def __init__(self, *, engine: Engine | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._known: dict[str, _Address] = {}
        self._throttle = Throttle(clock=clock)
        self._audited = Throttle(times=SIGN_INS_AUDITED_MAX, clock=clock)
        self.failed = 0
        """Failed sign-ins, of all addresses."""

    def require_patience(self, address: str, sha256: str) -> None:
        """Return if ``address`` may try what it shows. Raises ``Overloaded`` while it is refused."""
        known = self._known.get(address)
        if known is None or sha256 in known.good or self._clock() >= known.refused_until_s:
            return
        left_s = known.refused_until_s - self._clock()
        raise Overloaded(
            f"{known.failures} sign-ins from {address} have failed: try again in {left_s:.0f} s with a known token"
        )

    def succeeded(self, address: str, sha256: str) -> None:
        """``address`` has shown what is known."""
        known = self._of(address)
        if len(known.good) >= SIGN_INS_GOOD_MAX:
            known.good.clear()
        known.good.add(sha256)

    async def failure(self, address: str, what: str, *, is_guess: bool = True) -> None:
        """``address`` has shown what is not known: count it, refuse guesses longer each time, and write it down."""
        known, now_s = self._of(address), self._clock()
        if now_s - known.failed_at_s > max(FORGOTTEN_S, 2 * PAUSE.longest_s):
            known.failures = 0
        known.failures += is_guess
        known.failed_at_s = now_s
        self.failed += 1
        if known.failures > SIGN_INS_FREE_FAILURES:
            pause_s = PAUSE.after_s(known.failures - SIGN_INS_FREE_FAILURES)
            known.refused_until_s = now_s + pause_s
        if self._throttle.due(address) is None or self._audited.due() is None:
            return
        log.warning("sign-in failed address=%s at=%s failures=%d", address, what, known.failures)
        if self._engine is None:
            return
        try:
            async with transaction(self._engine) as conn:
                await record_act(
                    conn,
                    actor=Actor(f"address {address}", address=address),
                    action="sign-in failed",
                    subject=what,
                    after={"failures": known.failures},
                )
        except HeadwayError as error:
            log.warning("audit line missed: %s", error)  # the refusal does not wait for the database

    def _of(self, address: str) -> _Address:
        if address not in self._known and len(self._known) >= ADDRESSES_MAX:
            del self._known[next(iter(self._known))]  # the longest known
        return self._known.setdefault(address, _Address())


def address_of(host: str) -> str:
    """What counts as one address: of IPv6 the network of 64 bits, all of which one machine may have.

    A listener for both kinds shows a client of IPv4 as a mapped address, and all of these are in one network.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    address = getattr(address, "ipv4_mapped", None) or address
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)
