"""The last record of hosts that are missing: one row, written when it changes."""

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.scaling.allocation.host_demand import HostsWanted
from headway.scaling.mapping import from_mapping, to_mapping
from headway.store.engine import notify_viewers
from headway.store.tables import hosts_wanted

KEY = "now"


async def read_hosts_wanted(conn: AsyncConnection) -> tuple[HostsWanted, ...]:
    """Hosts that are missing."""
    body = (await conn.execute(select(hosts_wanted.c.body).where(hosts_wanted.c.key == KEY))).scalar_one_or_none()
    return tuple(from_mapping(HostsWanted, each) for each in body or () if each.get("sign") != "spare")  # as of 0.1.0


async def save_hosts_wanted(conn: AsyncConnection, wanted: tuple[HostsWanted, ...]) -> None:
    """Store which hosts are missing, and notify those who watch."""
    statement = insert(hosts_wanted).values(key=KEY, body=[to_mapping(each) for each in wanted])
    await conn.execute(
        statement.on_conflict_do_update(
            index_elements=["key"], set_={"body": statement.excluded.body, "since_at": func.now()}
        )
    )
    await notify_viewers(conn)
