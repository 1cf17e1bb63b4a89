"""What people set of hosts by hand: cordoned, draining, serving again, forgotten. Each is a line of the audit log."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Conflict, NotFound
from headway.scaling.model import HostState
from headway.store.audit import record_act
from headway.store.engine import notify_viewers
from headway.store.hosts.hosts import state_now, while_shut
from headway.store.tables import age_s, hosts

ACTIONS: Mapping[HostState, str] = {
    HostState.SERVING: "host uncordoned",
    HostState.CORDONED: "host cordoned",
    HostState.DRAINING: "host draining",
}


async def set_host_state(
    conn: AsyncConnection,
    name: str,
    state: HostState,
    *,
    reason: str | None,
    actor: str,
    until_s: float | None = None,
) -> None:
    """Make the host ``name`` be in ``state`` from the leader's next tick on. The same again changes nothing.

    From ``until_s`` on, Unix seconds of Postgres's clock, it serves again by itself.

    Raises:
        NotFound: there is no such host.
    """
    row = await _locked(conn, name)
    before, after = _state_of(row), _said(state.value, reason, until_s)
    if before == after:
        return
    is_shut = state is not HostState.SERVING
    await conn.execute(
        update(hosts)
        .where(hosts.c.host_id == row.host_id)
        .values(
            state=state.value,
            cordoned_at=func.now() if is_shut else None,
            cordoned_by=actor if is_shut else None,
            cordon_reason=reason if is_shut else None,
            cordoned_until_s=until_s if is_shut else None,
        )
    )
    await _record(conn, actor=actor, action=ACTIONS[state], name=name, before=before, after=after)


async def forget_host(conn: AsyncConnection, name: str, *, reason: str, actor: str) -> None:
    """Forget a host that is gone: nothing of it is waited for any more. One that comes back enrols anew.

    Raises:
        NotFound: there is no such host.
        Conflict: it still reports.
    """
    row = await _locked(conn, name)
    if row.is_known:
        raise Conflict(
            f"host {name!r} still reports, {row.silent_s:.0f} s ago: `headway host drain {name}` empties it; "
            "forget it once its agent has ended"
        )
    await conn.execute(delete(hosts).where(hosts.c.host_id == row.host_id))
    silent_s = None if row.silent_s is None else round(row.silent_s)
    before = {**_state_of(row), "host_id": row.host_id, "silent_s": silent_s}
    await _record(conn, actor=actor, action="host forgotten", name=name, before=before, after={"reason": reason})


async def _locked(conn: AsyncConnection, name: str) -> Row[Any]:
    """The host's row, which nobody else changes until this transaction ends: a report would make it known again."""
    is_known = func.coalesce(hosts.c.lease_ends_at > func.now(), False).label("is_known")
    columns = (
        hosts.c.host_id,
        state_now().label("state"),
        while_shut(hosts.c.cordon_reason).label("cordon_reason"),
        while_shut(hosts.c.cordoned_until_s).label("cordoned_until_s"),
        is_known,
        age_s(hosts.c.reported_at).label("silent_s"),
    )
    row = (await conn.execute(select(*columns).where(hosts.c.name == name).with_for_update())).one_or_none()
    if row is None:
        raise NotFound(f"no host {name!r}: `headway get hosts` lists them")
    return row


def _state_of(row: Row[Any]) -> dict[str, Any]:
    return _said(row.state, row.cordon_reason, row.cordoned_until_s)


def _said(state: str, reason: str | None, until_s: float | None) -> dict[str, Any]:
    return {"state": state, "reason": reason, **({} if until_s is None else {"until_s": until_s})}


async def _record(
    conn: AsyncConnection, *, actor: str, action: str, name: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    await record_act(conn, actor=actor, action=action, subject=f"host {name}", before=before, after=after)
    await notify_viewers(conn)
