"""Where a back-test's jobs come from: the event log, what Postgres keeps, or trace files; and whose they are."""

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headway.cli.profiles_file import load_profiles_file
from headway.cli.rehearse.behaviour_source import known
from headway.cli.rehearse.recorded_history import workload_of
from headway.cli.rehearse.rehearsal import base_profile
from headway.cli.rehearse.trace_files import columns_of, read_trace
from headway.errors import Invalid, Misconfigured
from headway.scaling.measure import BUCKET_S, CLASS_BUCKET_S, BucketRow, in_order, merged, sketch_value_s
from headway.scaling.metrics.attainment import Attained, attained
from headway.scaling.metrics.behaviour import Behaviour
from headway.scaling.profile import Profile
from headway.store.engine import create_engine, transaction
from headway.store.metrics.windows import measured_until_s, read_window_rows
from headway.store.pools.behaviours import read_summaries, read_timings, with_timings
from headway.store.pools.profiles import list_profiles
from headway.store.retention import BUCKETS_KEPT_S, MINUTES_KEPT_S
from headway.zones import refuse_unknown_zones
from headway_spark.studies.history import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which past is meant: one of the three sources, a stretch of time and some pools."""

    event_log: Path | None = None
    database_url: str | None = None
    traces: tuple[Path, ...] = ()
    columns: str | None = None
    from_s: float | None = None
    until_s: float | None = None
    pools: tuple[str, ...] = ()
    profiles_file: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        sources = [self.event_log is not None, self.database_url is not None, bool(self.traces)]
        if sum(sources) != 1:
            raise Invalid(
                "say whose past is played: one of --event-log DIR, --database-url postgresql://… and --trace FILE"
            )
        if self.event_log is not None and not self.event_log.is_dir():
            raise Misconfigured(f"--event-log={self.event_log} is no folder: name the one with hot/ and archive/ in it")
        if self.from_s is not None and self.until_s is not None and self.from_s >= self.until_s:
            raise Invalid("--from must be earlier than --until")


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What is known before Spark starts."""

    loads: tuple[Load, ...]
    """Of traces and of Postgres; the event log is read by Spark."""
    profiles: Mapping[str, Profile]
    """By pool; of an event log without a file of profiles none: there each queue is a pool."""
    skipped: Mapping[str, str]
    """Pools that cannot be rehearsed, and why."""
    behaviours: Mapping[str, Behaviour] = field(default_factory=dict)
    """Pool -> what the control plane has learned of it, where it is asked for."""
    attained: Mapping[str, Attained] = field(default_factory=dict)
    """Pool -> how its jobs were started, by its objective; of Postgres."""
    until_s: float | None = None
    """The end of what was asked for (Unix seconds); of Postgres."""

    @property
    def pools_by_queue(self) -> dict[str, str] | None:
        """Queue -> pool; ``None``: each queue is a pool of its own."""
        return {queue: pool for pool, profile in self.profiles.items() for queue in profile.queues} or None


def past_of(asked: Asked, *, with_behaviours: bool = False) -> Past:
    """The profiles, and the jobs where it is not Spark that reads them; also what was learned of how pools behave.

    Raises:
        HeadwayError: something cannot be read, or is none of what is expected.
    """
    named = () if asked.profiles_file is None else load_profiles_file(asked.profiles_file).profiles
    profiles = {profile.pool: base_profile(profile) for profile in named}
    if asked.traces:
        past = _of_traces(asked, profiles)
    elif asked.database_url is not None:
        past = _of_database(asked, profiles)
    else:
        past = Past(loads=(), profiles=profiles, skipped={})
    if asked.pools and (past.profiles or asked.event_log is None):
        unknown = [pool for pool in asked.pools if pool not in past.profiles]
        if unknown:
            there = ", ".join(sorted(past.profiles)) or "none"
            raise Invalid(f"--pools: {', '.join(unknown)} is not there; there is {there}")
        chosen = {pool: past.profiles[pool] for pool in asked.pools}
        past = replace(past, profiles=chosen, loads=tuple(load for load in past.loads if load.pool in chosen))
    for profile in past.profiles.values():
        refuse_unknown_zones(profile)
    if with_behaviours and asked.database_url is not None:
        past = replace(past, behaviours=asyncio.run(_learned(asked.database_url, past.profiles)))
    return past


def profile_of_queue(queue: str) -> Profile:
    """The policy of a queue that no profile names: the defaults, with room enough."""
    return replace(base_profile(None), pool=queue, queues=(queue if "/" in queue else f"jobs/{queue}",))


def _of_traces(asked: Asked, profiles: Mapping[str, Profile]) -> Past:
    """A pool a file. Its profile is that of its name, else the only one there is, else the defaults."""
    loads: list[Load] = []
    taken: dict[str, Profile] = {}
    for path in asked.traces:
        workload = read_trace(path, columns_of(asked.columns))
        pool, number = workload.name, 1
        while pool in taken:
            number += 1
            pool = f"{workload.name} ({number})"
        if workload.name in profiles:
            taken[pool] = profiles[workload.name]
        elif len(profiles) > 1:
            raise Invalid(
                f"{asked.profiles_file} has no pool {workload.name!r}, which {path} is the trace of; "
                f"it has {', '.join(profiles)}"
            )
        else:
            taken[pool] = next(iter(profiles.values()), base_profile(None))
        loads.append(Load(pool=pool, jobs=workload.jobs, begins_at_s=workload.begins_at_s))
    return Past(loads=tuple(loads), profiles=taken, skipped={})


def _of_database(asked: Asked, profiles: Mapping[str, Profile]) -> Past:
    """What Postgres keeps, of the pools of the file, else of those that it has profiles of."""
    rows, stored, until_s = asyncio.run(_recorded(asked, tuple(profiles.values())))
    known = dict(profiles) or {profile.pool: base_profile(profile) for profile in stored}
    loads, skipped, started = [], {}, {}
    for pool, profile in known.items():
        if asked.pools and pool not in asked.pools:
            continue
        mine = [row for row in rows if row.queue in profile.queues]
        started[pool] = _attained(profile, mine)
        try:
            loads.append(_load(pool, mine, seed=asked.seed))
        except Invalid as error:
            skipped[pool] = str(error)
    return Past(loads=tuple(loads), profiles=known, skipped=skipped, attained=started, until_s=until_s)


def _attained(profile: Profile, rows: Sequence[BucketRow]) -> Attained:
    """The jobs of a pool that started, those of each queue in time or late by the objective of that queue."""
    parts = [
        attained(
            (row.pickup_sketch for row in rows if row.queue == queue), target_s=profile.objective_of(queue).target_s
        )
        for queue in profile.queues
    ]
    return Attained(jobs=sum(each.jobs for each in parts), late_jobs=sum(each.late_jobs for each in parts))


async def _learned(database_url: str, profiles: Mapping[str, Profile]) -> dict[str, Behaviour]:
    """What was learned of the pools of ``profiles``, where a worker was seen to start."""
    engine = create_engine(database_url)
    try:
        async with transaction(engine) as conn:
            summaries = await read_summaries(conn, list(profiles))
            timings = await read_timings(conn, {profile.template for profile in profiles.values()})
    finally:
        await engine.dispose()
    found = {}
    for pool, profile in profiles.items():
        learned, _ = summaries.get(pool, (Behaviour(), None))
        if (behaviour := known(with_timings(learned, timings.get(profile.template)))) is not None:
            found[pool] = behaviour
    return found


async def _recorded(asked: Asked, profiles: Sequence[Profile]) -> tuple[list[BucketRow], list[Profile], float]:
    assert asked.database_url is not None
    engine = create_engine(asked.database_url)
    try:
        async with transaction(engine) as conn:
            stored = [each.profile for each in await list_profiles(conn)]
            queues = {queue for profile in profiles or stored for queue in profile.queues}
            until_s = asked.until_s or await measured_until_s(conn) or 0.0
            from_s = asked.from_s or until_s - MINUTES_KEPT_S
            found = await read_window_rows(
                conn, queues=sorted(queues), until_s=until_s, from_s=from_s, fine_from_s=until_s - BUCKETS_KEPT_S
            )
    finally:
        await engine.dispose()
    # The first minute that is known by 5 s: minutes hold what was before.
    fine_s = min((row.bucket_s for row in found.buckets), default=until_s)
    fine_from_s = max(from_s, math.ceil(fine_s / CLASS_BUCKET_S) * CLASS_BUCKET_S)
    rows = [
        *(row for row in found.minutes if from_s <= row.bucket_s < fine_from_s),
        *(row for row in found.buckets if fine_from_s <= row.bucket_s),
    ]
    return [row for row in rows if row.bucket_s < until_s], stored, until_s


def _load(pool: str, rows: Sequence[BucketRow], *, seed: int) -> Load:
    """The jobs of ``rows``, as `headway simulate --history` makes them."""
    sketch = merged(row.service_sketch for row in rows)
    arrived: Counter[tuple[float, float]] = Counter()
    retried: Counter[tuple[float, float]] = Counter()
    for row in rows:
        arrived[row.bucket_s, row.span_s] += row.arrived_jobs
        retried[row.bucket_s, row.span_s] += row.retried_jobs
    history = {
        "pool": pool,
        "bucket_s": BUCKET_S,
        "from_s": min((at_s for at_s, _ in arrived), default=0.0),
        "buckets": [
            {"at_s": at_s, "span_s": span_s, "arrived_jobs": jobs, "retried_jobs": retried[at_s, span_s]}
            for (at_s, span_s), jobs in sorted(arrived.items())
        ],
        "service_times": [{"service_s": sketch_value_s(index), "jobs": sketch[index]} for index in in_order(sketch)],
    }
    workload = workload_of(history, seed=seed)
    return Load(pool=pool, jobs=workload.jobs, begins_at_s=workload.begins_at_s)
