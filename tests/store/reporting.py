"""Single reports and assignments, as tests write and read them."""

from sqlalchemy.ext.asyncio import AsyncConnection

from headway.store.hosts.host_assignments import HostAssignments, read_standings, unknown
from headway.store.hosts.host_reports import HostReport, Outcome, record_reports


async def record_report(conn: AsyncConnection, report: HostReport) -> bool:
    """Make ``report`` what is known of its host. Returns whether it was; ``NotFound`` for an unknown host."""
    outcome = (await record_reports(conn, [report]))[report.host_id]
    if outcome is Outcome.UNKNOWN:
        raise unknown(report.host_id)
    return outcome is Outcome.TAKEN


async def read_assignments(conn: AsyncConnection, host_id: str) -> HostAssignments:
    """What the host is to run. Raises ``NotFound`` for a host nobody knows."""
    found = (await read_standings(conn, [host_id])).get(host_id)
    if found is None:
        raise unknown(host_id)
    return found
