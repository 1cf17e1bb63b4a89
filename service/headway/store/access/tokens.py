"""Tokens of people and programs, and join tokens: made, listed, revoked."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, and_, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Conflict, Invalid, NotFound
from headway.scaling.fields import taken_from
from headway.scaling.profile_keys.rules import PATH_NAME, is_path_name
from headway.store.access.credentials import (
    CREDENTIALS_KEPT_S,
    Role,
    digest,
    drawn,
    is_session,
    is_valid,
    next_revision,
)
from headway.store.audit import record_act
from headway.store.hosts.host_allowance import ANYTHING, Allowance, allowance_of, allowance_to_json
from headway.store.tables import credentials, epoch_s, seconds

LISTED_MAX = 1_000
EXPIRING_S = 86_400.0  # from then on it is an incident


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token as it is listed: its secret is nowhere."""

    token_id: str
    name: str
    role: Role
    created_by: str
    created_at_s: float
    expires_at_s: float | None
    host_name: str | None
    uses_left: int | None
    used_at_s: float | None
    expires_in_s: float | None = None
    """By Postgres's clock; ``None``: never. Below 0: it has expired, and is listed for a while."""
    allowance: Allowance = ANYTHING
    """What hosts that a join token lets in may report of themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWanted:
    """A token to be made."""

    name: str
    role: Role
    for_s: float | None = None
    uses: int | None = None
    host_name: str | None = None
    allowance: Allowance = ANYTHING

    def __post_init__(self) -> None:
        breaches = [] if self.name else ["name: who holds the token, for the audit log"]
        if self.name and not is_path_name(self.name):  # whoever revokes it has the name in a path
            breaches.append(f"name {self.name!r}: expected {PATH_NAME}")
        if self.role is Role.HOST:
            breaches.append("role 'host': hosts get their credentials by joining")
        if (self.role is Role.JOIN) != (self.uses is not None):
            breaches.append("uses: how often a join token serves, and of no other token")
        if self.host_name is not None and self.role is not Role.JOIN:
            breaches.append("host: only a join token can be for one host")
        if self.allowance != ANYTHING and self.role is not Role.JOIN:
            breaches.append("labels, templates: only a join token allows hosts some and not others")
        if self.uses is not None and self.uses < 1:
            breaches.append(f"uses={self.uses}: expected at least 1")
        if self.for_s is not None and self.for_s <= 0:
            breaches.append(f"for_s={self.for_s:g}: expected more than 0")
        if breaches:
            raise Invalid(*breaches)


async def create_token(conn: AsyncConnection, wanted: TokenWanted, *, actor: str) -> tuple[Token, str]:
    """Make a token. Returns it and its secret, which cannot be shown again.

    Raises:
        Conflict: there is a valid token of this name.
    """
    same_name = and_(credentials.c.name == wanted.name, credentials.c.role != Role.HOST)
    await conn.execute(
        update(credentials)
        .where(same_name, credentials.c.revoked_at.is_(None), credentials.c.expires_at < func.now())
        .values(revoked_at=credentials.c.expires_at)
    )
    taken = select(credentials.c.name).where(same_name, credentials.c.revoked_at.is_(None))
    if (await conn.execute(taken)).first() is not None:
        raise Conflict(f"token {wanted.name!r} exists: revoke it first, or give the new one another name")
    secret = drawn(wanted.role)
    made = insert(credentials).values(
        sha256=digest(secret),
        role=wanted.role,
        name=wanted.name,
        host_name=wanted.host_name,
        uses_left=wanted.uses,
        allowed=allowance_to_json(wanted.allowance),
        created_by=actor,
        expires_at=None if wanted.for_s is None else func.now() + seconds(wanted.for_s),
    )
    token_id = (await conn.execute(made.returning(credentials.c.credential_id))).scalar_one()
    token = _to_token((await conn.execute(_tokens().where(credentials.c.credential_id == token_id))).one())
    allowed = allowance_to_json(token.allowance)
    recorded = {
        "role": token.role,
        "expires_at_s": token.expires_at_s,
        "host": token.host_name,
        "uses": token.uses_left,
        **({} if allowed is None else {"allowed": allowed}),
    }
    await record_act(conn, actor=actor, action="token created", subject=f"token {token.name}", after=recorded)
    return token, secret


async def list_tokens(conn: AsyncConnection) -> list[Token]:
    """The tokens that are valid or expired lately, newest first: no credentials of hosts, no sessions."""
    lately = credentials.c.expires_at > func.now() - seconds(CREDENTIALS_KEPT_S)
    stands = and_(credentials.c.revoked_at.is_(None), or_(credentials.c.expires_at.is_(None), lately))
    is_token = and_(credentials.c.role != Role.HOST, ~is_session())
    listed = _tokens().where(is_token, stands).order_by(credentials.c.created_at.desc())
    return [_to_token(row) for row in await conn.execute(listed.limit(LISTED_MAX))]


async def revoke_token(conn: AsyncConnection, name: str, *, actor: str) -> None:
    """End the token ``name``. Raises ``NotFound``."""
    revision = await next_revision(conn)
    ended = await conn.execute(
        update(credentials)
        .where(credentials.c.name == name, credentials.c.role != Role.HOST, credentials.c.revoked_at.is_(None))
        .values(revoked_at=func.now(), changed=revision)
        .returning(credentials.c.role)
    )
    if (row := ended.first()) is None:
        raise NotFound(f"no token {name!r}: `headway token list` lists them")
    await record_act(conn, actor=actor, action="token revoked", subject=f"token {name}", before={"role": row.role})


async def read_expiring(conn: AsyncConnection) -> tuple[int, float | None]:
    """How many tokens of people and programs expire within ``EXPIRING_S``, and in how many seconds the first does.

    Those that were made for a day or two anyhow are not among them.
    """
    row = (await conn.execute(_EXPIRING)).one()
    return row.tokens, row.first_s


_EXPIRING = select(
    func.count().label("tokens"),
    epoch_s(func.min(credentials.c.expires_at) - func.now()).label("first_s"),
).where(
    credentials.c.role.not_in([Role.HOST, Role.JOIN]),
    ~is_session(),
    is_valid(),
    credentials.c.expires_at < func.now() + seconds(EXPIRING_S),
    credentials.c.expires_at - credentials.c.created_at > seconds(2 * EXPIRING_S),
)


def _tokens() -> Any:
    return select(
        credentials.c.credential_id,
        credentials.c.name,
        credentials.c.role,
        credentials.c.created_by,
        epoch_s(credentials.c.created_at).label("created_at_s"),
        epoch_s(credentials.c.expires_at).label("expires_at_s"),
        credentials.c.host_name,
        credentials.c.uses_left,
        credentials.c.allowed,
        epoch_s(credentials.c.used_at).label("used_at_s"),
        epoch_s(credentials.c.expires_at - func.now()).label("expires_in_s"),
    )


def _to_token(row: Row[Any]) -> Token:
    token_id, role = str(row.credential_id), Role(row.role)
    return taken_from(Token, row, token_id=token_id, role=role, allowance=allowance_of(row.allowed))
