"""Who leads. A session advisory lock makes one leader; the epoch fences whatever an older one still tries to write.

The lock lives on a connection of its own, never one of a pool: it is lost exactly when that session ends. TCP settings
end a session that the network has cut off within seconds; the server's defaults take two hours.
"""

from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Unavailable
from headway.store.tables import leader_epoch, leader_heartbeat

LEADER_LOCK = 0x4845_4144  # "HEAD": any number that no other program of this database takes

SESSION_OPTIONS = (
    "-c tcp_keepalives_idle=2 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3 -c tcp_user_timeout=5000 "
    "-c statement_timeout=5000"
)


class Superseded(Unavailable):
    """Another leader took a later epoch; nothing of this transaction was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What the leader last showed of itself, by Postgres's clock."""

    epoch: int
    leader: str
    age_s: float


class LeaderSession:
    """A session that holds, or tries to hold, the leader's lock.

    Every method raises ``Unavailable`` when the session is gone, and the lead with it.
    """

    def __init__(self, connection: psycopg.AsyncConnection[tuple[Any, ...]]) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, database_url: str) -> "LeaderSession":
        """A session of its own."""
        try:
            connection = await psycopg.AsyncConnection.connect(
                database_url,
                autocommit=True,
                connect_timeout=5,
                options=SESSION_OPTIONS,
                application_name="headway leader",
            )
        except psycopg.OperationalError as error:
            raise Unavailable(f"cannot open the leader's session: {str(error).strip()}") from error
        return cls(connection)

    async def try_lead(self, leader: str) -> int | None:
        """The new epoch if the lock is free now, else ``None``.

        The epoch is above every one that any host has seen, so that a restored database does not lock agents out.
        """
        ((is_mine,),) = await self._rows("select pg_try_advisory_lock(%s)", LEADER_LOCK)
        if not is_mine:
            return None
        ((epoch,),) = await self._rows(
            """
            update leader_epoch set
                epoch = greatest(epoch, coalesce((select max(epoch_seen) from hosts), 0)) + 1,
                leader = %s, backend_pid = pg_backend_pid(), taken_at = now()
            returning epoch
            """,
            leader,
        )
        await self.renew(epoch)
        return int(epoch)

    async def renew(self, epoch: int) -> None:
        """Show that this leader lives."""
        await self._rows(
            "update leader_heartbeat set epoch = %s, renewed_at = clock_timestamp() returning epoch", epoch
        )

    async def end_silent_leader(self, *, lease_s: float) -> bool:
        """End the session of a leader that has not renewed for ``lease_s``. Returns whether one was ended."""
        ended = await self._rows(
            """
            select pg_terminate_backend(holder.pid)
            from pg_locks holder, leader_heartbeat
            where holder.locktype = 'advisory' and holder.granted and holder.classid = 0 and holder.objid = %s
              and holder.pid <> pg_backend_pid()
              and leader_heartbeat.renewed_at < clock_timestamp() - make_interval(secs => %s)
            """,
            LEADER_LOCK,
            lease_s,
        )
        return any(is_ended for (is_ended,) in ended)

    async def close(self) -> None:
        """End the session and with it the lead."""
        await self._connection.close()

    async def _rows(self, sql: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        """The rows ``sql`` returns. Raises ``Unavailable`` when the session is gone."""
        try:
            cursor = await self._connection.execute(sql, values)
            return await cursor.fetchall()
        except psycopg.Error as error:
            raise Unavailable(f"the leader's session ended: {str(error).strip()}") from error


async def fence(connection: AsyncConnection, *, epoch: int) -> None:
    """Lock the epoch for this transaction: the next leader's bump waits for it, or has already refused it.

    Raises:
        Superseded: when ``epoch`` is no longer the leader's.
    """
    row = await connection.execute(
        select(leader_epoch.c.epoch).where(leader_epoch.c.epoch == epoch).with_for_update(read=True)
    )
    if row.first() is None:
        raise Superseded(f"epoch {epoch} was superseded; this process no longer leads")


async def heartbeat(connection: AsyncConnection) -> Heartbeat:
    """The leader's newest sign of life."""
    row = (
        await connection.execute(
            select(
                leader_heartbeat.c.epoch,
                leader_epoch.c.leader,
                func.extract("epoch", func.clock_timestamp() - leader_heartbeat.c.renewed_at).label("age_s"),
            ).join_from(leader_heartbeat, leader_epoch, leader_epoch.c.is_only == leader_heartbeat.c.is_only)
        )
    ).one()
    return Heartbeat(epoch=row.epoch, leader=row.leader, age_s=float(row.age_s))
