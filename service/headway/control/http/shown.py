"""Profiles as they are shown: with what was set by hand, and with what they cannot keep."""

from collections.abc import Sequence

from headway.control.http.answers import ProfileOut
from headway.scaling.feasibility import feasibility
from headway.scaling.model import Host
from headway.scaling.profile import Profile
from headway.scaling.view import pooled
from headway.store.decisions import StoredDecision, latest_decisions, list_decisions
from headway.store.engine import Connection
from headway.store.overview import read_hosts
from headway.store.profiles import StoredProfile


async def shown(conn: Connection, stored: StoredProfile, *, now_s: float) -> ProfileOut:
    """One profile."""
    newest = await list_decisions(conn, pool=stored.profile.pool, limit=1)
    hosts = [row.host for row in await read_hosts(conn)]
    return ProfileOut.of(stored, now_s=now_s, notes=_notes(stored.in_force, hosts, newest[0] if newest else None))


async def all_shown(conn: Connection, every: Sequence[StoredProfile], *, now_s: float) -> list[ProfileOut]:
    """Several profiles, in their order."""
    newest = await latest_decisions(conn)
    hosts = [row.host for row in await read_hosts(conn)]
    return [
        ProfileOut.of(stored, now_s=now_s, notes=_notes(stored.in_force, hosts, newest.get(stored.profile.pool)))
        for stored in every
    ]


def _notes(profile: Profile, hosts: Sequence[Host], newest: StoredDecision | None) -> tuple[str, ...]:
    """What ``profile`` cannot keep on these hosts, with the load of its newest decision."""
    templates = [
        template for host in hosts if host.is_known for template in host.templates if template.name == profile.template
    ]
    queue = pooled(newest.decision.metrics) if newest else None
    return feasibility(
        profile,
        start_up_s=max((each.start_up_s for each in templates if each.start_up_s is not None), default=None),
        slots_per_worker=min((template.slots for template in templates), default=1),
        arrival_rate_per_s=queue.arrival_rate_per_s if queue else None,
        service_time_s=queue.service_time_s if queue else None,
    )
