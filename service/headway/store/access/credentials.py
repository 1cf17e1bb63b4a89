"""Who may call: tokens of people and programs, join tokens, and the credential of each host.

A secret is 256 random bits behind a prefix that names its kind; only its SHA-256 is kept. Whoever takes from a caller
what others may still believe it has (revoked, replaced, to be renewed) raises the revision of ``credential_changes``,
so that every control plane can ask for changes that it does not know.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, Row, and_, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import NotFound
from headway.scaling.fields import taken_from
from headway.store.audit import record_act
from headway.store.hosts.host_allowance import allow, allowance_of
from headway.store.tables import credential_changes, credentials, epoch_s, hosts, seconds

RENEW_AFTER_S = 30 * 86_400.0
CREDENTIAL_RENEW_SPREAD = 0.1  # hosts that joined together do not renew together
CREDENTIALS_KEPT_S = 7 * 86_400.0  # what has ended can be listed for so long
SESSIONS_KEPT_S = 3_600.0  # an ended one: long enough for every control plane to have received that it ended


class Role(StrEnum):
    """What a secret is for."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    INGEST = "ingest"
    JOIN = "join"
    HOST = "host"
    AUDITOR = "auditor"


PREFIXES: Mapping[Role, str] = {Role.JOIN: "hwj_", Role.HOST: "hwh_"}
TOKEN_PREFIX = "hwt_"  # noqa: S105 - in front of secrets, none itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A secret that the database knows: whose it is, and for how long that can be believed."""

    sha256: str
    role: Role
    name: str
    host_id: str = ""
    expires_in_s: float | None = None
    """``None``: never. Not above 0: it has expired, or a newer one took its place."""
    renews_in_s: float | None = None
    is_revoked: bool = False
    session_of: str = ""
    """Of a session: what it was signed in with, which must be valid too."""


def digest(secret: str) -> str:
    """What is kept of ``secret``."""
    return sha256(secret.encode(errors="surrogateescape")).hexdigest()


def drawn(role: Role) -> str:
    """A new secret for ``role``: 256 random bits."""
    return PREFIXES.get(role, TOKEN_PREFIX) + secrets.token_urlsafe(32)


# --- who is known ----------------------------------------------------------------------------------------------------


async def read_revision(conn: AsyncConnection) -> int:
    """The revision of the last change that others must receive."""
    return int((await conn.execute(select(credential_changes.c.revision))).scalar_one())


async def read_changed(conn: AsyncConnection, *, after: int, rows_max: int) -> tuple[list[Known], int | None]:
    """What has changed for those who know it since revision ``after``.

    Returns:
        It, and where that is not all the revision after which reading goes on. A change may be of several rows, as
        where a host's credentials end together: all of it is delivered, or nothing yet.
    """
    rows = (
        await conn.execute(
            _known()
            .add_columns(credentials.c.changed)
            .where(credentials.c.changed > after)
            .order_by(credentials.c.changed)
            .limit(rows_max + 1)
        )
    ).all()
    if len(rows) <= rows_max:
        return [_to_known(row) for row in rows], None
    whole = [row for row in rows if row.changed < rows[-1].changed]
    assert whole, "one change is of one host's credentials or of one token, never of so many"
    return [_to_known(row) for row in whole], whole[-1].changed


async def read_valid(conn: AsyncConnection, *, rows_max: int) -> list[Known]:
    """What is shown with calls and valid now."""
    rows = await conn.execute(
        _known()
        .where(
            credentials.c.role != Role.JOIN,
            or_(credentials.c.role != Role.HOST, credentials.c.used_at.is_not(None)),
            is_valid(),
        )
        .limit(rows_max)
    )
    return [_to_known(row) for row in rows]


async def find(conn: AsyncConnection, sha256_hex: str) -> Known | None:
    """What is known of a secret that a call shows. The first use of a host's credential ends those it had before."""
    row = (await conn.execute(_known().where(credentials.c.sha256 == sha256_hex))).one_or_none()
    if row is None or row.role == Role.JOIN:
        return None
    known = _to_known(row)
    if row.used_at is None and serves(known):
        await conn.execute(
            update(credentials).where(credentials.c.sha256 == sha256_hex).values(used_at=func.now()),
        )
        if known.role is Role.HOST:
            await end(conn, of_host(known.host_id), credentials.c.sha256 != sha256_hex)
    return known


async def host_facts(conn: AsyncConnection, host_id: str) -> tuple[str, bool]:
    """The name of a host, and whether it has shown a credential of its own.

    Raises:
        NotFound: no host has this id.
    """
    own = select(credentials.c.sha256).where(of_host(host_id), credentials.c.used_at.is_not(None)).exists()
    row = (await conn.execute(select(hosts.c.name, own.label("has_own")).where(hosts.c.host_id == host_id))).first()
    if row is None:
        raise NotFound(f"no host has the id {host_id!r}: its agent must enrol again")
    return row.name, row.has_own


async def is_held_by_other(conn: AsyncConnection, host_id: str, *, agent_id: str) -> bool:
    """Whether a credential of the host was shown, or waits to be shown by another agent than ``agent_id``, a digest.

    One without an agent's id was given by an earlier version, or to an agent of one: whose it is cannot be known.
    """
    waits = and_(credentials.c.agent_id.not_in(("", agent_id)), is_valid())
    held = select(credentials.c.sha256).where(of_host(host_id), or_(credentials.c.used_at.is_not(None), waits))
    return (await conn.execute(held.limit(1))).first() is not None


# --- credentials of hosts --------------------------------------------------------------------------------------------


async def issue(
    conn: AsyncConnection, host_id: str, *, created_by: str, joined_by: UUID | None = None, agent_id: str = ""
) -> str:
    """A new credential of the host. What it shows today stays valid until it shows this one."""
    await conn.execute(delete(credentials).where(of_host(host_id), credentials.c.used_at.is_(None)))
    secret = drawn(Role.HOST)
    host_name = select(hosts.c.name).where(hosts.c.host_id == host_id).scalar_subquery()
    allowed = select(hosts.c.allowed).where(hosts.c.host_id == host_id).scalar_subquery()
    spread = int(digest(secret)[:4], 16) / 0xFFFF * CREDENTIAL_RENEW_SPREAD
    await conn.execute(
        insert(credentials).values(
            credential_id=uuid4(),
            sha256=digest(secret),
            role=Role.HOST,
            name=func.coalesce(host_name, ""),
            host_id=host_id,
            joined_by=joined_by,
            agent_id=agent_id,
            allowed=allowed,
            created_by=created_by,
            renew_at=func.now() + seconds(RENEW_AFTER_S * (1.0 - spread)),
        )
    )
    return secret


async def move(conn: AsyncConnection, sha256_hex: str, *, host_id: str) -> None:
    """Let a credential be that of another host id, as of a host that was forgotten and is back."""
    revision = await next_revision(conn)
    mine = credentials.c.sha256 == sha256_hex
    moved = update(credentials).where(mine).values(host_id=host_id, changed=revision).returning(credentials.c.allowed)
    allowed = (await conn.execute(moved)).scalar_one()
    # To be forgotten and come back must not make a host more than it was.
    await allow(conn, host_id, allowance_of(allowed))


async def rotate(conn: AsyncConnection, host_name: str, *, actor: str) -> None:
    """Have the host's credential replaced with its next report. Raises ``NotFound``."""
    host_id = await _host_id(conn, host_name)
    revision = await next_revision(conn)
    valid = and_(of_host(host_id), is_valid())
    due = await conn.execute(update(credentials).where(valid).values(renew_at=func.now(), changed=revision))
    if due.rowcount == 0:
        raise NotFound(f"host {host_name!r} has no credential of its own that could be replaced")
    await record_act(conn, actor=actor, action="credential rotated", subject=f"host {host_name}")


async def revoke_host(conn: AsyncConnection, host_name: str, *, actor: str) -> None:
    """End every credential of the host: it is let in again only with a join token made for it. Raises ``NotFound``."""
    host_id = await _host_id(conn, host_name)
    revision = await next_revision(conn)
    mine = and_(of_host(host_id), credentials.c.revoked_at.is_(None))
    ended = await conn.execute(
        update(credentials)
        .where(mine)
        # One that was never shown counts as shown, so that a shared token cannot bring the host back either.
        .values(revoked_at=func.now(), used_at=func.coalesce(credentials.c.used_at, func.now()), changed=revision)
    )
    if ended.rowcount == 0:
        raise NotFound(
            f"host {host_name!r} has no credential of its own that could be revoked: while it calls with "
            "HEADWAY_TOKEN, only another HEADWAY_TOKEN keeps it out"
        )
    await record_act(conn, actor=actor, action="credential revoked", subject=f"host {host_name}")


async def forget_ended(conn: AsyncConnection) -> None:
    """Delete what ended long ago. A host's revoked credential stays: it shows that the host once had one."""
    long_ago = func.now() - seconds(CREDENTIALS_KEPT_S)
    is_over = or_(credentials.c.revoked_at < long_ago, credentials.c.expires_at < long_ago)
    is_host = credentials.c.role == Role.HOST
    is_forgotten = and_(is_host, credentials.c.host_id.not_in(select(hosts.c.host_id)))
    is_replaced = and_(is_host, credentials.c.expires_at < long_ago)
    lately = func.now() - seconds(SESSIONS_KEPT_S)
    is_ended_session = and_(is_session(), or_(credentials.c.revoked_at < lately, credentials.c.expires_at < lately))
    is_gone = or_(and_(or_(~is_host, is_forgotten), is_over), is_replaced, is_ended_session)
    await conn.execute(delete(credentials).where(is_gone))


async def end(conn: AsyncConnection, *which: ColumnElement[bool]) -> None:
    """Let credentials end now, because others take their place, and notify every control plane."""
    standing = and_(*which, credentials.c.revoked_at.is_(None), credentials.c.expires_at.is_(None))
    if (await conn.execute(select(credentials.c.sha256).where(standing).limit(1))).first() is None:
        return  # nothing that anybody could know of: no need to wait for others' changes
    revision = await next_revision(conn)
    await conn.execute(update(credentials).where(standing).values(expires_at=func.now(), changed=revision))


async def next_revision(conn: AsyncConnection) -> int:
    """The revision of the change that this transaction makes; other changes wait until it ends."""
    raised = update(credential_changes).values(revision=credential_changes.c.revision + 1)
    return int((await conn.execute(raised.returning(credential_changes.c.revision))).scalar_one())


async def _host_id(conn: AsyncConnection, host_name: str) -> str:
    found = (await conn.execute(select(hosts.c.host_id).where(hosts.c.name == host_name))).scalar()
    if found is None:
        raise NotFound(f"no host {host_name!r}: `headway get hosts` lists them")
    return str(found)


def of_host(host_id: str) -> ColumnElement[bool]:
    """Rows that are credentials of this host."""
    return and_(credentials.c.role == Role.HOST, credentials.c.host_id == host_id)


def is_valid() -> ColumnElement[bool]:
    """Rows that are neither revoked nor expired."""
    is_young = or_(credentials.c.expires_at.is_(None), credentials.c.expires_at > func.now())
    return and_(credentials.c.revoked_at.is_(None), is_young)


def is_session() -> ColumnElement[bool]:
    """Rows that are sign-ins of browsers."""
    return credentials.c.session_of.is_not(None)


def serves(known: Known) -> bool:
    """Whether it is neither revoked nor expired."""
    return not known.is_revoked and (known.expires_in_s is None or known.expires_in_s > 0)


def _known() -> Any:
    """What ``Known`` is made of. Times become spans by Postgres's clock."""
    return select(
        credentials.c.sha256,
        credentials.c.role,
        func.coalesce(hosts.c.name, credentials.c.name).label("name"),
        func.coalesce(credentials.c.host_id, "").label("host_id"),
        credentials.c.used_at,
        epoch_s(credentials.c.expires_at - func.now()).label("expires_in_s"),
        epoch_s(credentials.c.renew_at - func.now()).label("renews_in_s"),
        credentials.c.revoked_at.is_not(None).label("is_revoked"),
        func.coalesce(credentials.c.session_of, "").label("session_of"),
    ).join_from(credentials, hosts, hosts.c.host_id == credentials.c.host_id, isouter=True)


def _to_known(row: Row[Any]) -> Known:
    return taken_from(Known, row, role=Role(row.role))
