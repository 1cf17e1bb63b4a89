"""How a host is let in: with its own credential, with a join token, or for the time being with the shared token."""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Forbidden, Unauthenticated
from headway.store.access.credentials import (
    Known,
    Role,
    digest,
    end,
    find,
    host_facts,
    is_held_by_other,
    is_valid,
    issue,
    move,
    of_host,
    serves,
)
from headway.store.audit import Actor, record_act
from headway.store.hosts.host_allowance import allow, allowance_of
from headway.store.hosts.hosts import Enrolment, enrol
from headway.store.tables import credentials, hosts, seconds

ENROLMENT_ASK_AGAIN_S = 600.0  # for so long an answer with a credential may be lost and asked for again


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A host that is known. ``credential``: what it shows from now on; empty: what it has shown."""

    host_id: str
    credential: str = ""


async def join(conn: AsyncConnection, enrolment: Enrolment, *, caller: Known | None, is_trusted: bool) -> Joined:
    """Make a host known to whom ``caller`` or a join token entitles, and give it a credential unless it has shown one.

    Args:
        conn: the transaction.
        enrolment: who asks.
        caller: the host's own credential, if the call shows one.
        is_trusted: the call shows the installation's shared token.

    Raises:
        Conflict: another machine has this name.
        Forbidden: what was shown does not entitle to this host.
        Unauthenticated: nothing was shown, or a join token that does not serve.
    """
    if caller is not None:
        if enrolment.host_id not in {"", caller.host_id}:
            raise Forbidden(f"the credential of host {caller.name!r} does not speak for host {enrolment.host_id!r}")
        return await _join_by_credential(conn, enrolment, caller)
    if enrolment.join_token:
        return await _join_by_token(conn, enrolment)
    if not is_trusted:
        raise Unauthenticated(
            "this control plane lets a host in with a join token: make one with `headway token create --join` and set "
            "HEADWAY_JOIN_TOKEN_FILE on the host"
        )
    host_id = await enrol(conn, enrolment)
    if (await host_facts(conn, host_id))[1]:
        raise Forbidden(_has_own(enrolment.name))
    credential = await issue(conn, host_id, created_by="HEADWAY_TOKEN", agent_id=_agent_of(enrolment))
    await _record(conn, enrolment, host_id, actor="HEADWAY_TOKEN")
    return Joined(host_id=host_id, credential=credential)


async def _join_by_token(conn: AsyncConnection, enrolment: Enrolment) -> Joined:
    # Two hosts that come with the last use at once: the second waits here, and finds none.
    row = (
        await conn.execute(
            select(credentials, is_valid().label("is_valid"))
            .where(credentials.c.sha256 == digest(enrolment.join_token), credentials.c.role == Role.JOIN)
            .with_for_update()
        )
    ).first()
    if row is None or not row.is_valid:
        raise Unauthenticated("the join token is not known, has expired or was revoked: ask for a new one")
    if row.host_name not in {None, enrolment.name}:
        raise Forbidden(f"the join token is for host {row.host_name!r}, not for host {enrolment.name!r}")
    if not await _asks_again(conn, row, enrolment):
        if row.uses_left < 1:
            raise Unauthenticated("the join token has been used: ask for a new one, or for one with more --uses")
        await conn.execute(
            update(credentials)
            .where(credentials.c.credential_id == row.credential_id)
            .values(uses_left=row.uses_left - 1, used_at=func.now())
        )
    await _require_unclaimed(conn, enrolment)
    host_id = await enrol(conn, enrolment)
    if await is_held_by_other(conn, host_id, agent_id=_agent_of(enrolment)):
        if row.host_name is None:
            raise Forbidden(_has_own(enrolment.name))
        await end(conn, of_host(host_id))
    await allow(conn, host_id, allowance_of(row.allowed))
    joined = await issue(
        conn,
        host_id,
        created_by=f"join token {row.name}",
        joined_by=row.credential_id,
        agent_id=_agent_of(enrolment),
    )
    await _record(conn, enrolment, host_id, actor=f"join token {row.name}", allowed=row.allowed)
    return Joined(host_id=host_id, credential=joined)


async def _record(conn: AsyncConnection, enrolment: Enrolment, host_id: str, *, actor: str, **more: Any) -> None:
    after = {"host_id": host_id, "address": enrolment.address, **more}
    by = Actor(actor, address=enrolment.address or None)
    await record_act(conn, actor=by, action="host joined", subject=f"host {enrolment.name}", after=after)


async def _require_unclaimed(conn: AsyncConnection, enrolment: Enrolment) -> None:
    """Refuse the id of a host of another name that has a credential: whoever reads an id must not become its host."""
    host_id, name = enrolment.host_id, enrolment.name
    found = (await conn.execute(select(hosts.c.name).where(hosts.c.host_id == host_id, hosts.c.name != name))).scalar()
    if found is not None and await is_held_by_other(conn, host_id, agent_id=_agent_of(enrolment)):
        raise Forbidden(_has_own(found))


def _agent_of(enrolment: Enrolment) -> str:
    """What is kept of the agent's own secret; empty where it has none."""
    return digest(enrolment.agent_id) if enrolment.agent_id else ""


async def _asks_again(conn: AsyncConnection, token: Row[Any], enrolment: Enrolment) -> bool:
    """Whether this agent has been answered already, a short while ago, and has never shown what it was given."""
    if not enrolment.agent_id:
        return False
    given = select(credentials.c.sha256).where(
        credentials.c.joined_by == token.credential_id,
        credentials.c.agent_id == _agent_of(enrolment),
        credentials.c.used_at.is_(None),
        credentials.c.revoked_at.is_(None),
        credentials.c.created_at > func.now() - seconds(ENROLMENT_ASK_AGAIN_S),
    )
    return (await conn.execute(given)).first() is not None


async def _join_by_credential(conn: AsyncConnection, enrolment: Enrolment, caller: Known) -> Joined:
    known = await find(conn, caller.sha256)  # what a control plane keeps may be a second old
    if known is None or not serves(known):
        raise Unauthenticated(f"the credential of host {caller.name!r} was revoked, or a newer one took its place")
    host_id = await enrol(conn, replace(enrolment, host_id=caller.host_id))
    if host_id == caller.host_id:
        return Joined(host_id=host_id)
    # The host was forgotten, and is back: better seen under a new id than running unseen.
    if (await host_facts(conn, host_id))[1]:
        raise Forbidden(_has_own(enrolment.name))
    await move(conn, caller.sha256, host_id=host_id)
    return Joined(host_id=host_id)


def _has_own(name: str) -> str:
    return (
        f"host {name!r} has a credential of its own, and this call does not show it: "
        f"let it in anew with `headway token create --join --host {name}`"
    )
