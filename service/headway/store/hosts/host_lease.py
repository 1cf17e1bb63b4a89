"""How long a host is known without a report, by Postgres's clock.

Each report renews the lease (host_reports.py). While nobody evaluates, no host's lease runs out.
"""

from sqlalchemy import text

from headway.store.engine import Connection

HOST_LEASE_S = 45.0  # three reports: one that is lost loses no host
# Evaluations are five seconds apart. After a longer pause than this a process, or Postgres, stood still, or its clock
# was set on: that is no silence of a host's.
EVALUATION_PAUSE_S = 15.0


async def pass_over(conn: Connection, *, since_s: float) -> None:
    """Take the time since then, by Postgres's clock, out of the silence of hosts that have not reported since."""
    await conn.execute(_PASS_OVER, {"since_s": since_s})


# A report from before the lead was taken stays so: that shows whether it is of this database.
_PASS_OVER = text(
    """
    update hosts set
        lease_ends_at = least(
            hosts.lease_ends_at + (now() - to_timestamp(:since_s)), now() + make_interval(secs => :lease_s)),
        reported_at = hosts.reported_at + case when hosts.reported_at >= leader_epoch.taken_at
            then now() - to_timestamp(:since_s) else interval '0' end
    from leader_epoch, (select host_id from hosts for update skip locked) free
    where hosts.host_id = free.host_id and hosts.reported_at <= to_timestamp(:since_s)
    """
).bindparams(lease_s=HOST_LEASE_S)
