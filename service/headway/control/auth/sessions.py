"""Signing in and out: a token becomes a session, which a browser keeps instead of the token."""

from headway.control.auth.authenticator import Authenticator, Caller
from headway.errors import Conflict
from headway.store.access.credentials import Role
from headway.store.access.sessions import create_session, drawn_session, end_session
from headway.store.engine import Engine, transaction

SIGN_IN_ROLES = (Role.VIEWER, Role.OPERATOR, Role.ADMIN, Role.AUDITOR)


async def sign_in(callers: Authenticator, engine: Engine, token: str, *, address: str) -> tuple[Caller, str]:
    """Who shows ``token``, signed in, and the secret of the session, which is drawn anew each time.

    Raises:
        Unauthenticated, Overloaded, Unavailable: as ``Authenticator.signed_in``.
        Forbidden: the token's role has nothing to see.
        Conflict: nobody is asked for a token here.
    """
    if callers.is_open:
        raise Conflict("this control plane has no token and asks nobody for one: there is nothing to sign in to")
    caller = await callers.signed_in(token, address=address, what="POST /v1/session")
    if caller.role not in SIGN_IN_ROLES:
        why = f"a token with the role {caller.role} is for programs"
        raise await callers.refusal(caller, why=why, subject="POST /v1/session")
    secret = drawn_session()
    async with transaction(engine) as conn:
        bound = callers.session_of(caller, secret)
        await create_session(conn, secret, role=caller.role, session_of=bound, actor=caller.actor)
    return await callers.by_session(secret, address=address, what="POST /v1/session"), secret


async def sign_out(callers: Authenticator, engine: Engine, caller: Caller) -> None:
    """End the caller's session. Within a second no control plane takes it any more, and this one at once.

    Raises:
        Conflict: the caller showed a token, which is no session.
    """
    if caller.session is None:
        raise Conflict("the call shows a token and no session: an administrator ends it with `headway token revoke`")
    async with transaction(engine) as conn:
        await end_session(conn, caller.session.sha256, actor=caller.actor)
    callers.forget(caller)
