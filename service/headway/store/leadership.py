"""Who leads. A session advisory lock makes one leader; the epoch fences whatever an older one still tries to write.

The lock lives on a connection of its own, never one of a pool: it is lost exactly when that session ends. TCP settings
end a session that the network has cut off within seconds, on both sides; the defaults take up to two hours.

A database that was restored from a backup knows older epochs and revisions than its hosts do. The hosts report theirs:
a leader takes an epoch above every one they have seen. What it knows of a host counts once that has reported to the
restored database; of one that acts on orders which were lost, deciding starts from what it runs (``store.hosts``).

A host that is broken, or in the wrong hands, may report any epoch. So a host's report is bounded twice. Epochs follow
the clock: one more than ``AHEAD_MAX_S`` ahead of it was no leader's and moves nothing. It cannot use the numbers up,
nor carry them away from the time, which keeps a restored database from giving one twice. And one host moves the lead
``MOVES_AT_ONCE`` times at once, as when a database is restored again and again, and from then on once in
``MOVE_EVERY_S``, however often it reports a later epoch: each time costs the second that a take-over takes.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg
from sqlalchemy import Text, cast, func, select, true, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Unavailable
from headway.store.engine import KEEPALIVES, connect_parameters, first_line
from headway.store.hosts.host_lease import HOST_LEASE_S
from headway.store.tables import hosts, leader_epoch

LEADER_LOCK = 0x4845_4144  # "HEAD": any number that no other program of this database takes

LEADER_LEASE_S = 8.0  # a leader silent for longer has its session ended by whoever stands by
LEADER_ANSWER_S = 5.0  # whoever has not answered the leader by then is hung or cut off
SESSION_OPTIONS = (
    "-c tcp_keepalives_idle=2 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3 -c tcp_user_timeout=5000 "
    "-c statement_timeout=4000"
)
# A leader that hangs inside a transaction holds the epoch's row: the next one's bump waits for no longer than this.
FENCED_IDLE_S = 5
FENCED_LOCK_S = 3  # rather miss one tick than the lease: what holds a host's row is a report, or hangs and is ended
NAMED_MAX = 3  # hosts, in a line of the log
HOSTS_A_NOTICE = 100  # their ids with commas between: half of the 8,000 bytes that Postgres takes
REVISION_MAX = 1 << 62  # a host that reports a nonsensical revision must not use the numbers up
# A restored database may run by another clock than the lost one did: a day is more than a wrong time zone.
AHEAD_MAX_S = 86_400.0
# A leader that hangs is replaced within ten seconds. Where nobody has led for longer, the database may be a backup's.
PERHAPS_RESTORED_S = 15.0
MOVES_AT_ONCE = 4
MOVE_EVERY_S = 900.0


class Superseded(Unavailable):
    """Another leader took a later epoch; nothing of this transaction was written."""


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
            connection = await psycopg.AsyncConnection.connect(**_parameters(database_url), autocommit=True)
        except psycopg.OperationalError as error:
            raise Unavailable(f"cannot open the leader's session: {first_line(error)}") from error
        return cls(connection)

    async def try_lead(self, leader: str) -> int | None:
        """The new epoch if the lock is free now, else ``None``.

        The epoch is above every one that any host has seen and can be believed, so that a restored database does not
        lock agents out. It is above the time, too, in Unix seconds: the next leader of a restored database does not
        know which epochs were taken on the day that is lost, and the same number twice would hold two orders for one.

        Hosts that were known when the last leader fell silent are held for known as long as they were then: while
        nobody led, perhaps nobody could receive their reports. They must report anew what they run, if this may be a
        backup: where Postgres was started since the last sign of life, or that is long ago.
        """
        ((is_mine,),) = await self._rows("select pg_try_advisory_lock(%s)", LEADER_LOCK)
        if not is_mine:
            return None
        ((epoch,),) = await self._rows(
            """
            with prolonged as (
                update hosts set lease_ends_at = least(
                    hosts.lease_ends_at + (now() - last.renewed_at), now() + make_interval(secs => %s))
                from leader_heartbeat last, (select host_id from hosts for update skip locked) free
                where hosts.host_id = free.host_id
                  and hosts.lease_ends_at between last.renewed_at and now() + make_interval(secs => %s)
            )
            update leader_epoch set
                epoch = 1 + greatest(
                    leader_epoch.epoch,
                    (select max(epoch_seen) from hosts
                     where epoch_seen <= extract(epoch from clock_timestamp()) + %s),
                    extract(epoch from clock_timestamp())::bigint),
                leader = %s, backend_pid = pg_backend_pid(), taken_at = now(),
                hosts_heard_from = case
                    when leader_epoch.epoch > 0 and last.renewed_at < greatest(
                        pg_postmaster_start_time(), now() - make_interval(secs => %s))
                    then now() else hosts_heard_from end
            from leader_heartbeat last
            returning leader_epoch.epoch
            """,
            HOST_LEASE_S,
            HOST_LEASE_S,
            AHEAD_MAX_S,
            leader,
            PERHAPS_RESTORED_S,
        )
        await self.renew(epoch)
        return int(epoch)

    async def renew(self, epoch: int) -> tuple[str, ...]:
        """Show that this leader lives.

        Returns:
            Hosts that report a later epoch and are not believed: they take no assignment.

        Raises:
            Superseded: a host has seen a later epoch: no order of this one would be taken there.
        """
        ((seen, followed, doubted),) = await self._rows(
            _RENEW,
            ahead_max_s=AHEAD_MAX_S,
            all_but_one_s=(MOVES_AT_ONCE - 1) * MOVE_EVERY_S,
            all_s=MOVES_AT_ONCE * MOVE_EVERY_S,
            move_s=MOVE_EVERY_S,
            epoch=epoch,
        )
        if seen is not None:
            names = ", ".join(followed[:NAMED_MAX])
            raise Superseded(f"host {names} has seen epoch {seen}, later than {epoch}: this database was restored")
        return tuple(doubted or ())

    async def end_silent_leader(self, *, lease_s: float) -> bool:
        """End the session of a leader that has not renewed for ``lease_s``. Returns whether one was ended.

        One that has just got the lock and waits for its epoch has not renewed either: its query identifies it.
        """
        ended = await self._rows(
            """
            select pg_terminate_backend(holder.pid)
            from leader_heartbeat, pg_locks holder join pg_stat_activity activity using (pid)
            where holder.locktype = 'advisory' and holder.granted and holder.classid = 0 and holder.objid = %s
              and holder.database = (select oid from pg_database where datname = current_database())
              and holder.pid <> pg_backend_pid()
              and leader_heartbeat.renewed_at < clock_timestamp() - make_interval(secs => %s)
              and coalesce(activity.query_start, '-infinity') < clock_timestamp() - make_interval(secs => %s)
            """,
            LEADER_LOCK,
            lease_s,
            lease_s,
        )
        return any(is_ended for (is_ended,) in ended)

    async def close(self) -> None:
        """End the session and with it the lead."""
        await self._connection.close()

    async def _rows(self, sql: LiteralString, *values: object, **named: object) -> list[tuple[Any, ...]]:
        """The rows ``sql`` returns. Raises ``Unavailable`` when the session is gone, or does not answer in time."""
        patience = asyncio.get_running_loop().call_later(LEADER_ANSWER_S, self._hang_up)
        try:
            cursor = await self._connection.execute(sql, named or values)
            return await cursor.fetchall()
        except psycopg.Error as error:
            raise Unavailable(f"the leader's session ended: {first_line(error)}") from error
        finally:
            patience.cancel()

    def _hang_up(self) -> None:
        # Cancelling would ask the server, which does not answer. Whoever waits for the socket sees its end.
        with (
            contextlib.suppress(OSError, psycopg.Error),
            socket.socket(fileno=os.dup(self._connection.fileno())) as line,
        ):
            line.shutdown(socket.SHUT_RDWR)


def _parameters(database_url: str) -> dict[str, Any]:
    """As everybody's, so that the URL's own options hold for the leader as well, but with less patience."""
    parameters = connect_parameters(database_url)
    options = f"{parameters['options']} {SESSION_OPTIONS}"  # of one that is named twice the last counts
    return {**parameters, **KEEPALIVES, "options": options, "application_name": "headway leader"}


# Hosts whose rows are locked are read the next time: renewing waits for nobody. What counts for longer than all
# moves together do was written by another clock, and is no reason to leave a host alone.
_RENEW: LiteralString = """
    with ahead as (
        select host_id, name, epoch_seen,
            epoch_seen <= extract(epoch from clock_timestamp()) + %(ahead_max_s)s and not coalesce(
                lead_moves_count_until > clock_timestamp() + make_interval(secs => %(all_but_one_s)s)
                and lead_moves_count_until <= clock_timestamp() + make_interval(secs => %(all_s)s), false
            ) as is_followed
        from hosts where epoch_seen > %(epoch)s
        for no key update skip locked
    ), noted as (
        update hosts set lead_moves_count_until = make_interval(secs => %(move_s)s) + case
            when lead_moves_count_until between
                clock_timestamp() and clock_timestamp() + make_interval(secs => %(all_s)s)
            then lead_moves_count_until else clock_timestamp() end
        from ahead where hosts.host_id = ahead.host_id and is_followed
    )
    update leader_heartbeat set epoch = %(epoch)s, renewed_at = clock_timestamp()
    returning
        (select max(epoch_seen) from ahead where is_followed),
        (select array_agg(name order by name) from ahead where is_followed),
        (select array_agg(name order by name) from ahead where not is_followed)
    """


async def fence(connection: AsyncConnection, *, epoch: int) -> None:
    """Lock the epoch for this transaction: the next leader's bump waits for it, or has already refused it.

    Raises:
        Superseded: when ``epoch`` is no longer the leader's.
    """
    row = await connection.execute(
        select(
            leader_epoch.c.epoch,
            func.set_config("idle_in_transaction_session_timeout", f"{FENCED_IDLE_S}s", true()),
            func.set_config("lock_timeout", f"{FENCED_LOCK_S}s", true()),
        )
        .where(leader_epoch.c.epoch == epoch)
        .with_for_update(read=True)
    )
    if row.first() is None:
        raise Superseded(f"epoch {epoch} was superseded; this process no longer leads")


async def notify_hosts(connection: AsyncConnection, host_ids: Sequence[str]) -> None:
    """Notify, when this commits, whoever holds the polls of these hosts that their assignments have changed."""
    packs = [",".join(host_ids[begin : begin + HOSTS_A_NOTICE]) for begin in range(0, len(host_ids), HOSTS_A_NOTICE)]
    channels = func.unnest(cast(packs, ARRAY(Text)))
    await connection.execute(select(func.pg_notify("headway_assignments", channels)))


async def note_ahead(connection: AsyncConnection, host_id: str, *, epoch: int, revision: int) -> None:
    """A host acts on orders that this database does not know, since it was restored.

    Its assignment here is void then, and it receives none, until the leader has decided anew, from what it runs.
    """
    if max(epoch, revision) >= REVISION_MAX:
        return
    is_host = hosts.c.host_id == host_id
    await connection.execute(
        update(hosts)
        .where(is_host, hosts.c.assignment_epoch == epoch, hosts.c.assignment_revision < revision)
        .values(assignment_epoch=0)
    )
    await connection.execute(update(hosts).where(is_host, hosts.c.epoch_seen < epoch).values(epoch_seen=epoch))
