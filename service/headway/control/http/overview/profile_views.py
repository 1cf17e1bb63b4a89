"""Profiles as they are shown: with what was set by hand, and with what they cannot keep."""

from collections.abc import Iterator, Mapping, Sequence

from headway.control.http.schemas.responses import ProfileOut
from headway.scaling.model import NoteKind
from headway.scaling.planning.doubtful_percentiles import doubtful_percentiles
from headway.scaling.planning.early_cuts import early_cuts
from headway.scaling.planning.feasibility import feasibility
from headway.scaling.planning.pattern_notes import pattern_notes
from headway.scaling.planning.shared_pool import unowned_remarks
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.queue_patterns import is_pattern
from headway.scaling.reading.pool_times import LAG_S, PoolTimes
from headway.scaling.reading.pooled_queue import pooled
from headway.store.engine import Connection
from headway.store.hosts.template_counts import TemplateFacts, read_queues_allowed, read_template_facts
from headway.store.metrics.service_percentiles import read_service_p99_s
from headway.store.pools.decisions import DecisionQuery, StoredDecision, latest_decisions, list_decisions
from headway.store.pools.profiles import StoredProfile, read_owned
from headway.store.pools.queue_ownership import read_made, read_unserved, read_written

NOT_KNOWN = TemplateFacts(slots=1, start_up_s=None)


async def shown(conn: Connection, stored: StoredProfile, *, now_s: float) -> ProfileOut:
    """One profile."""
    newest = await list_decisions(conn, query=DecisionQuery(pool=stored.profile.pool), limit=1)
    (made,) = await _shown(conn, [stored], {each.decision.pool: each for each in newest}, now_s=now_s)
    return made


async def all_shown(conn: Connection, every: Sequence[StoredProfile], *, now_s: float) -> list[ProfileOut]:
    """Several profiles, in their order."""
    return await _shown(conn, every, await latest_decisions(conn), now_s=now_s)


async def _shown(
    conn: Connection, every: Sequence[StoredProfile], newest: Mapping[str, StoredDecision], *, now_s: float
) -> list[ProfileOut]:
    facts = await read_template_facts(conn, {stored.in_force_at(now_s).template for stored in every})
    service_p99_s = await _service_p99_s(conn, every, facts, now_s=now_s)
    owned = await read_owned(conn, {queue for stored in every for queue in stored.profile.helps})
    of_patterns = await _pattern_notes(conn, every)
    made = []
    for stored in every:
        profile = stored.in_force_at(now_s)
        template = facts.get(profile.template, NOT_KNOWN)
        cuts = early_cuts(
            profile.template,
            service_p99_s=service_p99_s.get(profile.pool),
            drain_timeout_s=template.drain_timeout_s,
            job_limit_s=template.job_limit_s,
            job_limit=template.job_limit,
        )
        notes = [
            *of_patterns.get(profile.pool, ()),
            *_notes(profile, template, newest.get(profile.pool)),
            *unowned_remarks(profile, owned),
            *cuts,
        ]
        made.append(ProfileOut.of(stored, now_s=now_s, notes=notes, early_cuts=cuts))
    return made


async def _pattern_notes(conn: Connection, every: Sequence[StoredProfile]) -> Mapping[str, Sequence[str]]:
    """Pool -> what its patterns do not bring to a worker."""
    starred = {each.written.pool: each for each in every if any(map(is_pattern, each.written.queues))}
    if not starred:
        return {}
    allowed = await read_queues_allowed(conn, {each.written.template for each in starred.values()})
    unserved, made = await read_unserved(conn), await read_made(conn)
    return {
        each.pool: tuple(
            pattern_notes(
                each,
                stored.profile.queues if stored.has_queues else made.get(each.pool, ()),
                unserved=unserved.get(each.pool, ()),
                template=stored.written.template,
                allowed=allowed.get(stored.written.template, {}),
                pools_max=stored.written.pools_max,
            )
        )
        for each in await read_written(conn)
        if (stored := starred.get(each.pool)) is not None
    }


async def _service_p99_s(
    conn: Connection, every: Sequence[StoredProfile], facts: Mapping[str, TemplateFacts], *, now_s: float
) -> Mapping[str, float]:
    """What nearly all jobs take, of those pools whose templates have a bound that may be below it."""
    bounded = {name for name, each in facts.items() if each.drain_timeout_s is not None or each.job_limit_s is not None}
    pools = [stored.profile.pool for stored in every if stored.profile.template in bounded]
    return await read_service_p99_s(conn, pools, now_s=now_s)


def _notes(profile: Profile, template: TemplateFacts, newest: StoredDecision | None) -> Iterator[str]:
    """What ``profile`` cannot keep on known hosts, with the load of its newest decision."""
    if template is NOT_KNOWN:  # one that is spelt otherwise on the hosts looks like this
        yield f"no reachable host has template {profile.template!r}: its workers cannot run until a host.toml names it"
    yield from doubtful_percentiles(profile)
    queue = pooled(newest.decision.metrics) if newest else None
    for note in feasibility(
        profile,
        PoolTimes(known_start_up_s=template.start_up_s, lag_s=LAG_S, service_guess_s=profile.service_time_guess_s),
        slots_per_worker=template.slots,
        arrival_rate_per_s=queue.arrival_rate_per_s if queue else None,
        service_time_s=queue.service_time_s if queue else None,
    ):
        yield note.text
    if newest and (apart := newest.decision.note_of(NoteKind.SEPARATE_POOLS)):
        yield apart
