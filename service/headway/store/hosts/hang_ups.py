"""When a host's connection ended, as the control plane that held it knows. A report ends that."""

from collections.abc import Collection, Mapping

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.store.tables import hosts

# Nobody is waited for, so that this and another transaction that writes to many hosts cannot wait for each other.
_HUNG_UP = text(
    """
    with ended as (select * from jsonb_to_recordset(:rows) as ended(host_id text, age_s double precision)),
    free as (select host_id, age_s from hosts join ended using (host_id) for no key update of hosts skip locked)
    update hosts set hung_up_at = now() - make_interval(secs => free.age_s) from free
    where hosts.host_id = free.host_id returning hosts.host_id
    """
).bindparams(bindparam("rows", type_=JSONB))


async def note_hung_up(conn: AsyncConnection, ages_s: Mapping[str, float]) -> frozenset[str]:
    """Write down how long ago the connections of hosts ended. Returns those of which it was written."""
    if not ages_s:
        return frozenset()
    rows = [{"host_id": host_id, "age_s": age_s} for host_id, age_s in ages_s.items()]
    return frozenset((await conn.execute(_HUNG_UP, {"rows": rows})).scalars())


async def note_back(conn: AsyncConnection, host_ids: Collection[str]) -> None:
    """These hosts have called again."""
    if host_ids:
        free = hosts.c.host_id.in_(sorted(host_ids))
        await conn.execute(hosts.update().where(free).values(hung_up_at=None))
