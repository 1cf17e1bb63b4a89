"""The daily partitions of ``decisions``: made ahead of time, dropped whole when their day has expired.

A partition is named after its day in UTC, ``decisions_20260131``; days are counted by Postgres's clock.
"""

from datetime import UTC, date, datetime, time, timedelta

from psycopg import sql
from sqlalchemy import text

from headway.store.engine import Engine, transaction

PARTITION_DAYS_AHEAD = 7  # upkeep may fail for a week before a decision finds no partition
DAYS_KEPT = 14
PARTITION_LOCK_WAIT_S = 1  # less than a tick waits for a lock; there is a week to try again
_UPKEEP_LOCK = 0x6865_6164_7761_7901  # control planes take turns

_TAKE_LOCK = text("select pg_advisory_xact_lock(:number)")
TODAY = text("select (now() at time zone 'utc')::date")
_PARTITIONS = text(
    """
    select child.relname from pg_inherits join pg_class child on child.oid = inhrelid
    where inhparent = 'decisions'::regclass
    """
)
_LIMIT_WAIT = text("select set_config('lock_timeout', :wait, true)")
_CREATE = sql.SQL("create table {name} partition of decisions for values from ({begins}) to ({ends})")
_DROP = sql.SQL("drop table {name}")


async def keep_partitions(engine: Engine) -> tuple[list[str], list[str]]:
    """Create what is missing up to ``PARTITION_DAYS_AHEAD`` days ahead and drop what is older than ``DAYS_KEPT`` days.

    Harmless when repeated, and when several control planes do it at once. Touches the table only where something is
    to do: each creation or drop locks it for a moment.

    Returns:
        The names created and the names dropped.

    Raises:
        Unavailable: Postgres cannot be reached, or the table is locked for too long.
    """
    async with transaction(engine) as connection:
        await connection.execute(_TAKE_LOCK, {"number": _UPKEEP_LOCK})
        today: date = (await connection.execute(TODAY)).scalar_one()
        present = set((await connection.execute(_PARTITIONS)).scalars())
        # Names sort as their days do.
        expired = sorted(name for name in present if name < _name(today - timedelta(days=DAYS_KEPT)))
        created = {name: create for name, create in partitions_from(today).items() if name not in present}
        if created or expired:
            # Either locks the whole table for a moment. Waiting for that, it would make each tick wait behind it.
            await connection.execute(_LIMIT_WAIT, {"wait": f"{PARTITION_LOCK_WAIT_S}s"})
        for statement in (*created.values(), *(_DROP.format(name=sql.Identifier(name)) for name in expired)):
            await connection.exec_driver_sql(statement.as_string())
        return list(created), expired


def partitions_from(today: date) -> dict[str, sql.Composed]:
    """Name -> the statement that creates the partition, of today and of each of the next ``PARTITION_DAYS_AHEAD``."""
    created = {}
    for day in (today + timedelta(days=ahead) for ahead in range(PARTITION_DAYS_AHEAD + 1)):
        begins, name = datetime.combine(day, time(), UTC), _name(day)
        ends = begins + timedelta(days=1)
        created[name] = _CREATE.format(name=sql.Identifier(name), begins=sql.Literal(begins), ends=sql.Literal(ends))
    return created


def _name(day: date) -> str:
    return f"decisions_{day:%Y%m%d}"
