"""Sessions: sign-ins of browsers. A session is worth what the token that was shown for it is worth, and ends with it.

A row of ``credentials`` each, so that every control plane receives the end of one as it receives a revocation.
"""

import secrets

from sqlalchemy import ColumnElement, and_, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Overloaded
from headway.store.access.credentials import Role, digest, is_session, is_valid, next_revision
from headway.store.audit import record_act
from headway.store.tables import credentials, seconds

SESSION_PREFIX = "hws_"
SESSION_S = 8 * 3_600.0  # a working day: whoever comes back tomorrow signs in again
SESSIONS_MAX = 50  # of one token; another one ends the oldest
SIGN_INS_PER_MINUTE_MAX = 30  # with one token; each is a line of the audit log


def drawn_session() -> str:
    """A new session's secret: 256 random bits."""
    return SESSION_PREFIX + secrets.token_urlsafe(32)


async def create_session(conn: AsyncConnection, secret: str, *, role: Role, session_of: str, actor: str) -> None:
    """Make a session of ``actor``, which ``session_of`` was shown for. Only ``secret``'s SHA-256 is kept.

    Raises:
        Overloaded: so many were made with the same token within the last minute.
    """
    await next_revision(conn)  # which is also the lock: two sign-ins at once do not both see room for one
    of_actor = and_(is_session(), credentials.c.created_by == str(actor))
    lately = select(func.count()).where(of_actor, credentials.c.created_at > func.now() - seconds(60.0))
    if (await conn.execute(lately)).scalar_one() >= SIGN_INS_PER_MINUTE_MAX:
        raise Overloaded(
            f"{actor} has signed in {SIGN_INS_PER_MINUTE_MAX} times within a minute: a program sends the token with "
            "each call as `Authorization: Bearer`"
        )
    newest = select(credentials.c.credential_id).where(of_actor, is_valid()).order_by(credentials.c.created_at.desc())
    await _end(conn, credentials.c.credential_id.in_(newest.offset(SESSIONS_MAX - 1)))
    await conn.execute(
        insert(credentials).values(
            sha256=digest(secret),
            role=role,
            # No token has a slash in its name.
            name=f"{actor}/{secrets.token_hex(8)}",
            session_of=session_of,
            created_by=str(actor),
            expires_at=func.now() + seconds(SESSION_S),
        )
    )
    await record_act(conn, actor=actor, action="signed in", subject="dashboard", after={"role": role})


async def end_session(conn: AsyncConnection, sha256_hex: str, *, actor: str) -> None:
    """End a session. One that has ended stays so."""
    if await _end(conn, credentials.c.sha256 == sha256_hex):
        await record_act(conn, actor=actor, action="signed out", subject="dashboard")


async def _end(conn: AsyncConnection, which: ColumnElement[bool]) -> int:
    ended = update(credentials).where(which, is_session(), credentials.c.revoked_at.is_(None))
    revision = await next_revision(conn)
    return (await conn.execute(ended.values(revoked_at=func.now(), changed=revision))).rowcount
