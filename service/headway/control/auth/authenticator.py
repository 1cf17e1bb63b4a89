"""Who calls: what a request shows, looked up in Postgres once and then kept for as long as no change is known.

A call must not cost a round trip to the database, and yet a revocation must hold at once. So what is known is kept, and
``watch`` asks twice a second what has changed. When it has had no answer for ``LISTENER_PROVEN_S``, nothing kept is
believed: then each call is looked up, and where the database does not answer it is refused as ``Unavailable``.
"""

import asyncio
import hmac
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from headway.control.auth.failed_sign_ins import FailedSignIns
from headway.control.database_timeout import DatabaseTimeout
from headway.control.refusal_throttle import RefusalThrottle
from headway.control.sliding_counter import SlidingCounter
from headway.errors import Forbidden, HeadwayError, Unauthenticated
from headway.local.throttle import Throttle
from headway.scaling.conditions.installation_facts import ENDED_SHOWN_S
from headway.scaling.explanations.phrases import duration
from headway.store.access.credentials import (
    PREFIXES,
    TOKEN_PREFIX,
    Known,
    Role,
    digest,
    find,
    read_changed,
    read_revision,
    read_valid,
)
from headway.store.access.sessions import SESSION_PREFIX
from headway.store.audit import Actor, record_act
from headway.store.engine import Engine, transaction

WATCH_S = 0.5
LISTENER_PROVEN_S = 1.0  # the longest that a revocation can stay unnoticed
KNOWN_MAX = 50_000  # 20 MB; whoever is beyond is looked up with each call
AUTHENTICATOR_CHANGES_MAX = 5_000  # read at once
FOUND_WITHIN_S = 5.0
AUTHENTICATOR_LOOKUPS_AT_ONCE = 2  # strangers who guess must not take every connection to the database
SHOWN = (TOKEN_PREFIX, PREFIXES[Role.HOST])
OF_SHARED = "HEADWAY_TOKEN "  # in front of what a session is bound to that was signed in with it
_SESSION_OVER = "the session is not known here or has ended: sign in again"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whoever makes a request."""

    role: Role
    name: str
    """Whom the audit log names; of a host its own name."""
    host_id: str = ""
    sha256: str = ""
    """Of what was shown; empty where nothing had to be looked up."""
    is_shared: bool = False
    """Shows HEADWAY_TOKEN, which many have."""
    wants_renewal: bool = False
    address: str | None = None
    """From where this call came."""
    session: Known | None = field(default=None, compare=False)
    """Its sign-in, where it came with a session's cookie instead of a token."""
    expires_in_s: float | None = field(default=None, compare=False)
    """For how long it is valid from when it was checked; ``None``: it has no date."""

    @property
    def actor(self) -> Actor:
        """The audit log's word for it."""
        kind = "host " if self.role is Role.HOST else "token " if self.sha256 else ""
        return Actor(f"{kind}{self.name}", address=self.address)

    def paced_as(self, address: str) -> str:
        """With whose its refusals are counted together: its own, where nobody else has what it shows."""
        return self.sha256 or address


LOCAL = Caller(role=Role.ADMIN, name="local")
SHARED = Caller(role=Role.ADMIN, name="HEADWAY_TOKEN", is_shared=True)


@dataclass(frozen=True, slots=True)
class _Kept:
    known: Known
    expires_at_s: float
    renews_at_s: float


class Authenticator:
    """Identifies callers. Without a shared token nobody is asked: then only this machine reaches the servers."""

    def __init__(
        self,
        *,
        token: str | None,
        engine: Engine | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_cut_off: Callable[[str], None] = lambda _host_id: None,
    ) -> None:
        self._shared = digest(token) if token else None
        self._engine = engine
        self._clock = clock
        self._on_cut_off = on_cut_off
        self._kept: dict[str, _Kept] = {}
        self._lookups = asyncio.Semaphore(AUTHENTICATOR_LOOKUPS_AT_ONCE)
        self._patience = DatabaseTimeout(within_s=FOUND_WITHIN_S)
        self._proven_at_s = float("-inf")
        self._revision: int | None = None
        self._refusals = Throttle(clock=clock)
        self.attempts = FailedSignIns(engine=engine, clock=clock)
        self.throttle = RefusalThrottle()
        """Of the refusals at both ports."""
        self.refused: Counter[str] = Counter()
        """Calls that were refused, by why."""
        self.ended = SlidingCounter(ENDED_SHOWN_S, clock=clock)
        """Calls with what was revoked or has expired: no guess, but somebody who had it."""

    @property
    def is_open(self) -> bool:
        """Whether nobody is asked for anything."""
        return self._shared is None

    async def who(self, secret: str | None) -> Caller:
        """Who shows ``secret``.

        Raises:
            Unauthenticated: nothing is shown, or nothing that is valid.
            Unavailable: that cannot be found out now.
        """
        if self._shared is None:
            return LOCAL
        if not secret:
            self.refused["nothing shown"] += 1
            raise Unauthenticated(
                "this control plane asks for a token: send `Authorization: Bearer` with HEADWAY_TOKEN or a token of "
                "`headway token create`"
            )
        sha256 = digest(secret)
        # Digests are compared, so the time it takes says nothing of the secret.
        if hmac.compare_digest(sha256, self._shared):
            return SHARED
        if not secret.startswith(SHOWN):
            self.refused["not known"] += 1
            raise Unauthenticated(_why(None))  # no guess of this kind costs the database anything
        return await self._known(sha256)

    async def signed_in(self, secret: str | None, *, address: str, what: str) -> Caller:
        """Who shows ``secret`` from ``address`` with ``what``, which a failure is written down with.

        Raises as ``who``, and:
            Overloaded: so many guesses have come from there that another one is not checked now.
        """
        if self.is_open or not secret:
            return await self.who(secret)  # LOCAL, or a refusal
        # What this control plane draws has 256 random bits: only a HEADWAY_TOKEN is worth guessing.
        is_guess, sha256 = not secret.startswith(SHOWN), digest(secret)
        if is_guess:
            self.attempts.require_patience(address, sha256)
        try:
            caller = await self.who(secret)
        except Unauthenticated:
            await self.attempts.failure(address, what, is_guess=is_guess)
            raise
        if is_guess:
            self.attempts.succeeded(address, sha256)
        return replace(caller, address=address)

    async def by_session(self, secret: str, *, address: str, what: str) -> Caller:
        """Who signed in as the session ``secret``, from ``address`` with ``what``. Raises as ``who``."""
        try:
            caller = await self._signed_in_as(secret)
        except Unauthenticated:
            await self.attempts.failure(address, what, is_guess=False)
            raise
        return replace(caller, address=address)

    async def _signed_in_as(self, secret: str) -> Caller:
        # A token is no session: a browser sends a cookie with whatever any page asks.
        caller = await self._known(digest(secret)) if secret.startswith(SESSION_PREFIX) else None
        session = None if caller is None else caller.session
        if caller is None or session is None:
            self.refused["not known"] += 1
            raise Unauthenticated(_SESSION_OVER)
        if caller.is_shared and session.session_of != self.session_of(caller, secret):
            self.refused["not known"] += 1
            raise Unauthenticated(_SESSION_OVER)  # it is of an earlier HEADWAY_TOKEN
        return caller

    def forget(self, caller: Caller) -> None:
        """Believe no longer what is kept of the caller's session, which has ended."""
        if caller.session is not None:
            self._kept.pop(caller.session.sha256, None)

    def session_of(self, caller: Caller, secret: str) -> str:
        """What a session ``secret`` of ``caller`` is bound to: its token, or HEADWAY_TOKEN as it is now.

        Of HEADWAY_TOKEN nothing is kept that could be tried against guesses: the session's secret is the key.
        """
        if caller.sha256:
            return caller.sha256
        return OF_SHARED + hmac.new(secret.encode(), (self._shared or "").encode(), "sha256").hexdigest()

    async def recheck(self, caller: Caller) -> None:
        """Return if ``caller`` is still who it was when its call began, however long ago. Raises as ``who``."""
        if caller.session is not None:
            await self._known(caller.session.sha256)
        elif caller.sha256:
            await self._known(caller.sha256)

    async def anew(self, caller: Caller) -> Caller:
        """Who ``caller`` is by the database, as after its host got another name. Raises as ``who``."""
        self._kept.pop(caller.sha256, None)
        return await self._known(caller.sha256)

    async def refusal(self, caller: Caller, *, why: str, subject: str) -> Forbidden:
        """The refusal of what ``caller`` asked: counted, and once a minute and caller written to log and audit log."""
        self.refused[why] += 1
        if self._refusals.due(caller.name) is not None:
            log.warning("refused caller=%s subject=%s: %s", caller.name, subject, why)
            if self._engine is not None:
                async with transaction(self._engine) as conn:
                    await record_act(
                        conn, actor=caller.actor, action="call refused", subject=subject, after={"why": why}
                    )
        return Forbidden(f"{caller.name} may not do this: {why} ({subject})")

    async def watch(self) -> None:
        """Poll for changes, for ever. Without authentication nobody is asked, and nothing is polled."""
        if self._engine is None or self.is_open:
            await asyncio.Event().wait()
        is_current = True
        while True:
            try:
                await self.refresh()
                is_current = True
            except Exception as error:
                # Whatever it was, it must not end the servers: without changes, nothing that is kept is believed.
                if is_current:
                    is_known = isinstance(error, HeadwayError)
                    log.warning("changes of credentials not received: %s", error, exc_info=None if is_known else error)
                is_current = False
                self._revision = None  # whatever answers next may be another copy of the database: all is read anew
            await asyncio.sleep(WATCH_S)

    async def refresh(self) -> None:
        """Take in what has changed since the last time; the first time everything that is valid."""
        assert self._engine is not None
        asked_at_s = self._clock()
        async with transaction(self._engine) as conn:
            revision = await read_revision(conn)  # before the rows: what changes meanwhile is read again
            if self._revision is None or revision < self._revision:  # an older copy of the database was restored
                self._kept = {
                    known.sha256: self._stamped(known) for known in await read_valid(conn, rows_max=KNOWN_MAX)
                }
                self._revision = revision
            changed: list[Known] = []
            left_after: int | None = None
            if revision > self._revision:
                changed, left_after = await read_changed(conn, after=self._revision, rows_max=AUTHENTICATOR_CHANGES_MAX)
                self._revision = revision if left_after is None else left_after
        for known in changed:
            self._take_in(known)
        if left_after is None:
            self._proven_at_s = asked_at_s

    def _take_in(self, known: Known) -> None:
        was_kept = self._kept.pop(known.sha256, None) is not None
        if known.is_revoked:
            if known.host_id:
                self._on_cut_off(known.host_id)
        elif was_kept:
            self._keep(known)

    async def _known(self, sha256: str) -> Caller:
        kept = self._kept.get(sha256) if self._clock() - self._proven_at_s <= LISTENER_PROVEN_S else None
        if kept is None:
            kept = await self._looked_up(sha256)
        now_s = self._clock()
        if kept is None or kept.known.is_revoked or now_s >= kept.expires_at_s:
            self.refused["not known"] += 1
            self.ended.add(kept is not None)
            raise Unauthenticated(_why(kept, now_s=now_s))
        known, left_s = kept.known, kept.expires_at_s - now_s
        if known.session_of:
            return await self._in_session(known, left_s=left_s)
        return Caller(
            role=known.role,
            name=known.name,
            host_id=known.host_id,
            sha256=sha256,
            wants_renewal=now_s >= kept.renews_at_s,
            expires_in_s=None if left_s == float("inf") else left_s,
        )

    async def _in_session(self, session: Known, *, left_s: float) -> Caller:
        """Whoever signed in, as the token that was shown is known now: what ends that, or lowers it, does so here."""
        is_shared = session.session_of.startswith(OF_SHARED)
        caller = SHARED if is_shared else await self._known(session.session_of)
        ends_s = [each for each in (left_s, caller.expires_in_s) if each is not None]
        return replace(caller, session=session, expires_in_s=min(ends_s))

    async def _looked_up(self, sha256: str) -> _Kept | None:
        if self._engine is None:
            return None
        revision = self._revision
        known = await self._patience.of(self._found(self._engine, sha256))
        if known is None:
            return None
        # What was read before a change and arrives after it must not be believed any longer.
        return self._keep(known) if self._revision == revision else self._stamped(known)

    async def _found(self, engine: Engine, sha256: str) -> Known | None:
        async with self._lookups:
            with self._patience.reading():
                async with transaction(engine) as conn:
                    return await find(conn, sha256)

    def _stamped(self, known: Known) -> _Kept:
        now_s = self._clock()
        return _Kept(
            known,
            expires_at_s=float("inf") if known.expires_in_s is None else now_s + known.expires_in_s,
            renews_at_s=float("inf") if known.renews_in_s is None else now_s + known.renews_in_s,
        )

    def _keep(self, known: Known) -> _Kept:
        kept = self._stamped(known)
        if len(self._kept) >= KNOWN_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[known.sha256] = kept
        return kept


def _why(kept: _Kept | None, *, now_s: float = 0.0) -> str:
    if kept is None:
        return (
            "the token or credential is not known here: set this control plane's HEADWAY_TOKEN or another valid token, "
            "or let the host join anew"
        )
    if kept.known.session_of:
        return _SESSION_OVER
    known, is_host = kept.known, kept.known.role is Role.HOST
    what = f"the {'credential of host' if is_host else 'token'} {known.name!r}"
    cure = (
        f"let it in anew with `headway token create --join --host {known.name}`"
        if is_host
        else f"an administrator makes another with `headway token create --role {known.role} --name NAME`"
    )
    if known.is_revoked:
        return f"{what} was revoked: {cure}"
    ago = f"{duration(max(0.0, now_s - kept.expires_at_s))} ago"
    return f"{what} ended {ago}, a newer one took its place: {cure}" if is_host else f"{what} expired {ago}: {cure}"
