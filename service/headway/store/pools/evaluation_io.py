"""What a tick reads and writes.

It gathers in one transaction and applies in one, which the leader's epoch fences.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any
from uuid import UUID

from sqlalchemy import Text, bindparam, cast, func, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from headway.errors import Invalid
from headway.scaling.allocation.host_demand import HostsWanted
from headway.scaling.allocation.undecided_hosts import found_rows
from headway.scaling.group import Group
from headway.scaling.mapping import from_mapping
from headway.scaling.measure import BucketRow
from headway.scaling.model import MEMORY_VERSION, Assignment, Decision, Host, Memory, Mode, PoolEvent, QueueSample
from headway.scaling.policy.stabilization import HOLDS_TICKS
from headway.scaling.profile_keys.schedule import UTC_NAME, day_of, span_s
from headway.store.engine import notify_viewers, snapshot, transaction
from headway.store.hosts.host_lease import pass_over
from headway.store.hosts.hosts import load_hosts, now_s
from headway.store.hosts.worker_hours import worker_hours_since
from headway.store.leadership import fence, notify_hosts
from headway.store.outbox.pool_events import PossibleEvents, add_events, events_of, note_predictions
from headway.store.overview import read_buckets, read_samples
from headway.store.pools.behaviours import Learned, save_learned
from headway.store.pools.decisions import decision_to_json, insert_decisions
from headway.store.pools.groups import read_groups
from headway.store.pools.host_demand import read_hosts_wanted, save_hosts_wanted
from headway.store.pools.profiles import in_force
from headway.store.pools.queue_ownership import OWNED
from headway.store.pools.restarts import read_generations
from headway.store.tables import assignments, hosts, pool_states, profiles
from headway.zones import zone_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """What is remembered of a pool between ticks."""

    memory: Memory
    target_workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Everything one tick reads."""

    at_s: float
    """When it was so, by Postgres's clock."""
    revision: int
    """The newest bucket revision; the next tick reads on from it."""
    buckets: tuple[BucketRow, ...]
    profiles: Mapping[str, Mapping[str, Any]]
    """Pool -> profile in force; turning one into a value may fail, and only that pool with it."""
    states: Mapping[str, PoolState]
    hosts: tuple[Host, ...]
    assignments: tuple[Assignment, ...]
    """Where deciding starts: what is stored, but on ``undecided`` hosts what these run."""
    direct: Mapping[str, QueueSample]
    """The newest reading of each queue that came round the pipeline."""
    worker_hours_today: Mapping[str, float]
    """Pool with a budget of the day that its memory has no count of -> what its workers have run on that day, where it
    is known."""
    groups: tuple[Group, ...] = ()
    """Caps over several pools."""
    restarts: Mapping[str, int] = field(default_factory=dict)
    """Pool -> the restart generation that its workers are to be of, where it was ever restarted."""
    wanted: tuple[HostsWanted, ...] = ()
    """The last record of hosts that are missing."""
    stored: tuple[Assignment, ...] = ()
    """Every row that is stored: what is written is how it differs from these."""
    undecided: frozenset[str] = frozenset()
    """Hosts whose decision starts from what they run: they receive the result, even if it stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """What a tick wants written."""

    remembered: Sequence[tuple[Decision, Memory]]
    decisions: Sequence[Decision]
    assignments: Sequence[Assignment]
    wanted: tuple[HostsWanted, ...] = ()
    learned: Mapping[str, Learned] = field(default_factory=dict)
    """Pool -> what was learned of it, where that is to be written down now."""
    events: PossibleEvents | None = None
    """The events that may follow; ``None``: no receiver subscribes to any."""


def require_storable(decision: Decision, memory: Memory) -> None:
    """Return if a tick that holds these two can be written: what others' strategies leave may be anything.

    Raises:
        Invalid: it could not, and no other pool's decision with it.
    """
    if not isinstance(decision.burst_workers, int):
        raise Invalid(f"its strategy asks for {decision.burst_workers!r} burst workers, which is no whole number")
    try:
        written = json.dumps([decision_to_json(decision), asdict(memory)], allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"its strategy leaves what JSON cannot hold: {error}") from error
    if "\\u0000" in written:
        raise Invalid("its strategy leaves a zero character, which Postgres does not store")


async def gather(
    engine: AsyncEngine,
    *,
    revision: int,
    from_s: float,
    clock_s: float | None = None,
    recommends_only: bool = False,
) -> Gathered:
    """What a tick reads; of the buckets, those written after ``revision`` that start at ``from_s`` or later.

    Args:
        engine: where to read.
        revision: the newest that was read before.
        from_s: of older buckets none is read.
        recommends_only: whether every profile is read as one of mode ``recommend``.
        clock_s: the time by which decisions are made, and what was set by hand expires; ``None``: Postgres's.
    """
    async with snapshot(engine) as connection:
        buckets, newest = await read_buckets(connection, from_s=from_s, after_revision=revision)
        decided_s = await now_s(connection) if clock_s is None else clock_s
        wanted = await _profiles(connection, at_s=decided_s)
        if recommends_only:
            wanted = {pool: _recommended(body) for pool, body in wanted.items()}
        states = await _pool_states(connection)
        uncounted = [
            pool
            for pool, body in wanted.items()
            if body.get("budget_per_day") is not None and (pool not in states or states[pool].memory.day_paid is None)
        ]
        present = await load_hosts(connection)
        stored = await _assignments(connection)
        undecided = frozenset(host.host_id for host in present if host.is_known and host.is_undecided)
        return Gathered(
            at_s=await now_s(connection),
            revision=newest,
            buckets=tuple(buckets),
            profiles=wanted,
            states=states,
            hosts=present,
            assignments=(*(row for row in stored if row.host_id not in undecided), *found_rows(present)),
            stored=stored,
            undecided=undecided,
            wanted=await read_hosts_wanted(connection),
            groups=await read_groups(connection),
            restarts=await read_generations(connection),
            direct=await read_samples(connection, in_pools=True),
            worker_hours_today=await _worker_hours_today(connection, uncounted, wanted, at_s=decided_s)
            if uncounted
            else {},
        )


async def hold_hosts(engine: AsyncEngine, *, since_s: float, epoch: int) -> None:
    """Let no host count as silent for the time since then: nobody checked, and perhaps no report could arrive.

    Raises:
        Superseded: another process leads under a later epoch; nothing was written.
    """
    async with transaction(engine) as connection:
        await fence(connection, epoch=epoch)
        await pass_over(connection, since_s=since_s)


async def apply(
    engine: AsyncEngine,
    result: EvaluationResult,
    gathered: Gathered,
    *,
    epoch: int,
    recommends_only: bool = False,
) -> None:
    """Write what a tick decided, all or nothing, and notify the hosts and viewers concerned.

    It also keeps the events that follow for receivers, and the decisions that the events name.
    Where this control plane ``recommends_only``, no assignment changes, whatever the tick asks for.

    Raises:
        Superseded: another process leads under a later epoch; nothing was written.
    """
    async with transaction(engine) as connection:
        await fence(connection, epoch=epoch)
        possible = result.events
        events: list[PoolEvent] = []
        if possible is not None:
            stored = [decision for decision, _ in result.remembered]
            events = await events_of(connection, stored, possible, at_s=gathered.at_s)
        if result.remembered:
            states = [
                {"pool": decision.pool, "target_workers": decision.target_workers, "memory": asdict(memory)}
                for decision, memory in result.remembered
            ]
            await connection.execute(_SAVE_STATES, {"rows": states, "epoch": epoch})
        ids = {each.pool: UUID(each.decision_id) for each in events if each.decision_id is not None}
        new = {each.pool for each in result.decisions}
        predicted = {} if possible is None else possible.predicted
        named = {**predicted, **{decision.pool: decision for decision, _ in result.remembered}}
        decided = (*result.decisions, *(named[pool] for pool in ids if pool not in new))
        if decided:
            previous = {pool: state.target_workers for pool, state in gathered.states.items()}
            rows = [(decision, epoch, previous.get(decision.pool)) for decision in decided]
            await insert_decisions(connection, rows, ids=ids)
            await notify_viewers(connection)
        if possible is not None:
            await add_events(connection, events, possible.subscribers_of)
            if predicted:
                await note_predictions(connection, predicted.keys(), at_s=gathered.at_s)
        await save_learned(connection, result.learned)
        if recommends_only:
            return
        # Whatever the tick asks for: what is only recommended moves nothing, and a host that may run what is not known
        # here is assigned nothing.
        is_advice = profiles.c.body["mode"].astext == Mode.RECOMMEND.value
        advised = frozenset((await connection.execute(select(profiles.c.pool).where(is_advice))).scalars())
        unconfirmed = {host.host_id for host in gathered.hosts if host.is_known and not host.is_confirmed}
        kept = (row for row in gathered.assignments if row.pool in advised)
        wanted = (*(row for row in result.assignments if row.pool not in advised), *kept)
        before, after = ([row for row in rows if row.host_id not in unconfirmed] for rows in (gathered.stored, wanted))
        await _save_assignments(connection, before, after, undecided=gathered.undecided - unconfirmed, epoch=epoch)
        if result.wanted != gathered.wanted:
            await save_hosts_wanted(connection, result.wanted)


async def _worker_hours_today(
    connection: AsyncConnection, pools: Sequence[str], bodies: Mapping[str, Mapping[str, Any]], *, at_s: float
) -> dict[str, float]:
    began_s = {}
    for pool in pools:
        try:
            zone = zone_of(bodies[pool].get("budget_time_zone", UTC_NAME))
        except Invalid:  # which the pool's own evaluation reports, and only that pool's
            continue
        began_s[pool], _ = span_s(day_of(at_s, zone), zone)
    return await worker_hours_since(connection, began_s)


async def _profiles(connection: AsyncConnection, *, at_s: float) -> dict[str, Mapping[str, Any]]:
    rows = await connection.execute(select(profiles, OWNED).order_by(profiles.c.pool))
    bodies = {row.pool: in_force(row, at_s=at_s) for row in rows}
    return {pool: body for pool, body in bodies.items() if body is not None}


def _recommended(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**{key: value for key, value in body.items() if key != "pause"}, "mode": Mode.RECOMMEND.value}


async def _pool_states(connection: AsyncConnection) -> dict[str, PoolState]:
    # A memory of another version is left out: deciding starts afresh and holds what is assigned.
    rows = await connection.execute(select(pool_states.c.pool, pool_states.c.memory, pool_states.c.target_workers))
    found = {}
    for row in rows:
        if row.memory.get("version") == MEMORY_VERSION:
            try:
                found[row.pool] = PoolState(memory=_memory(row.memory), target_workers=row.target_workers)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                # One pool's, as of a version that writes more: it is written anew when the pool has been decided.
                log.warning("memory not read, begun anew: pool=%s reason=%r", row.pool, error)
    return found


def _memory(body: Mapping[str, Any]) -> Memory:
    memory = from_mapping(Memory, body)
    if memory.hold_costs is not None and len(memory.hold_costs.levels) != len(HOLDS_TICKS):
        return replace(memory, hold_costs=None)  # of a version that tried other waits: learned anew
    return memory


async def _assignments(connection: AsyncConnection) -> tuple[Assignment, ...]:
    rows = await connection.execute(select(*(assignments.c[each.name] for each in fields(Assignment))))
    return tuple(Assignment(**row) for row in rows.mappings())


# The join leaves out pools whose profile was deleted while this tick was deciding.
_SAVE_STATES = text(
    """
    insert into pool_states (pool, target_workers, memory, epoch)
    select given.pool, given.target_workers, given.memory, :epoch
    from jsonb_to_recordset(cast(:rows as jsonb)) as given(pool text, target_workers integer, memory jsonb)
    join profiles using (pool)
    on conflict (pool) do update set
        target_workers = excluded.target_workers, memory = excluded.memory,
        epoch = excluded.epoch, decided_at = now()
    """
).bindparams(bindparam("rows", type_=pool_states.c.memory.type))


async def _save_assignments(
    connection: AsyncConnection,
    before: Iterable[Assignment],
    after: Iterable[Assignment],
    *,
    undecided: Collection[str],
    epoch: int,
) -> None:
    """Turn the assignments ``before`` into ``after``, and notify ``undecided`` hosts and those that they differ on."""
    old = {(row.pool, row.host_id): row for row in before}
    new = {(row.pool, row.host_id): row for row in after}
    gone = [key for key in old if key not in new]
    changed = [row for key, row in new.items() if old.get(key) != row]
    host_ids = tuple(sorted({host_id for _, host_id in gone} | {row.host_id for row in changed} | set(undecided)))
    if not host_ids:
        return
    bumped = await connection.execute(
        update(hosts)
        .where(hosts.c.host_id == func.any(cast(list(host_ids), ARRAY(Text))))
        .values(assignment_revision=hosts.c.assignment_revision + 1, assignment_epoch=epoch)
        .returning(hosts.c.host_id, hosts.c.assignment_revision)
    )
    revisions = {row.host_id: row.assignment_revision for row in bumped}
    changed = [row for row in changed if row.host_id in revisions]  # the others were forgotten while this was decided
    if gone:
        pools, hosts_of = (list(column) for column in zip(*gone, strict=True))
        await connection.execute(_TAKE_BACK, {"pools": pools, "host_ids": hosts_of})
    if changed:
        rows = [{**asdict(row), "epoch": epoch, "revision": revisions[row.host_id]} for row in changed]
        await connection.execute(_ASSIGN, {"rows": rows})
    await notify_hosts(connection, host_ids)


_TAKE_BACK = text(
    """
    with released as (
        delete from assignments using unnest(cast(:pools as text[]), cast(:host_ids as text[])) as gone(pool, host_id)
        where assignments.pool = gone.pool and assignments.host_id = gone.host_id
        returning assignments.pool, assignments.host_id)
    insert into released_assignments (pool, host_id) select pool, host_id from released
    on conflict (pool, host_id) do update set released_at = now()
    """
)
# One statement whatever the number of hosts: their rows are locked until this commits, and their reports wait for it.
_ASSIGN = text(
    """
    insert into assignments
        (pool, host_id, template, base_workers, burst_workers, restart_generation, is_exclusive,
         is_suspended, epoch, revision)
    select pool, host_id, template, base_workers, burst_workers, restart_generation, is_exclusive,
        is_suspended, epoch, revision
    from jsonb_populate_recordset(null::assignments, :rows)
    on conflict (pool, host_id) do update set
        template = excluded.template, base_workers = excluded.base_workers, burst_workers = excluded.burst_workers,
        restart_generation = excluded.restart_generation, is_exclusive = excluded.is_exclusive,
        is_suspended = excluded.is_suspended, epoch = excluded.epoch, revision = excluded.revision
    """
).bindparams(bindparam("rows", type_=JSONB))
