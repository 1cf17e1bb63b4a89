"""Profiles as they are shown: with what was set by hand, and with what they cannot keep."""

from collections.abc import Mapping, Sequence

from headway.control.http.schemas.responses import ProfileOut
from headway.scaling.planning.feasibility import feasibility
from headway.scaling.policy.deprecated_keys import deprecations
from headway.scaling.profile import Profile
from headway.scaling.view import pooled
from headway.store.engine import Connection
from headway.store.hosts.template_counts import TemplateFacts, read_template_facts
from headway.store.pools.decisions import DecisionQuery, StoredDecision, latest_decisions, list_decisions
from headway.store.pools.profiles import StoredProfile

NOT_KNOWN = TemplateFacts(slots=1, start_up_s=None)


async def shown(conn: Connection, stored: StoredProfile, *, now_s: float) -> ProfileOut:
    """One profile."""
    newest = await list_decisions(conn, query=DecisionQuery(pool=stored.profile.pool), limit=1)
    profile = stored.in_force_at(now_s)
    facts = await read_template_facts(conn, [profile.template])
    return ProfileOut.of(stored, now_s=now_s, notes=_notes(profile, facts, newest[0] if newest else None))


async def all_shown(conn: Connection, every: Sequence[StoredProfile], *, now_s: float) -> list[ProfileOut]:
    """Several profiles, in their order."""
    newest = await latest_decisions(conn)
    facts = await read_template_facts(conn, {stored.profile.template for stored in every})
    return [
        ProfileOut.of(
            stored, now_s=now_s, notes=_notes(stored.in_force_at(now_s), facts, newest.get(stored.profile.pool))
        )
        for stored in every
    ]


def _notes(profile: Profile, facts: Mapping[str, TemplateFacts], newest: StoredDecision | None) -> tuple[str, ...]:
    """What ``profile`` cannot keep on known hosts, with the load of its newest decision, and what it should not say."""
    template = facts.get(profile.template, NOT_KNOWN)
    queue = pooled(newest.decision.metrics) if newest else None
    cannot_keep = feasibility(
        profile,
        start_up_s=template.start_up_s,
        slots_per_worker=template.slots,
        arrival_rate_per_s=queue.arrival_rate_per_s if queue else None,
        service_time_s=queue.service_time_s if queue else None,
    )
    return (*_nowhere(profile, facts), *cannot_keep, *deprecations(profile))


def _nowhere(profile: Profile, facts: Mapping[str, TemplateFacts]) -> tuple[str, ...]:
    """That nothing can run its workers: a template that is spelt otherwise on the hosts looks like this."""
    if profile.template in facts:
        return ()
    return (f"no reachable host has template {profile.template!r}: its workers cannot run until a host.toml names it",)
