"""Agents' reports become what is known of their hosts.

A host is known while its lease holds, by Postgres's clock. Agents report durations; their clocks count nowhere.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum, auto
from typing import Any

from sqlalchemy import Text, bindparam, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import printable
from headway.scaling.mapping import to_mapping
from headway.scaling.model import CutJob, Exit, HostCapacity, HostProblem, StartUp, Template, Worker, WorkerState
from headway.store.audit import Actor, record_act
from headway.store.hosts.forced_kills import count_forced
from headway.store.hosts.host_allowance import admitted, allowance_of
from headway.store.hosts.host_lease import HOST_LEASE_S
from headway.store.hosts.hosts import template_to_json
from headway.store.hosts.job_cuts import record_cuts
from headway.store.hosts.start_timings import learn_exits, learn_start_ups
from headway.store.tables import audit_log, hosts, seconds, workers

REFUSED = "host report refused"  # the audit log's word for labels and templates that the join token does not allow
AUDITED_EVERY_S = 3600.0
EVIDENCE_STEP_S = 2.0  # ages are rounded up to it, a beat: evidence as fresh as before is no change to be written
STAYS_AFTER_S = 10.0  # a worker that ends sooner has failed, by its agent

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What an agent reports of its host."""

    host_id: str
    boot_id: str
    sequence: int
    """Grows from report to report within one boot of the host."""
    epoch_seen: int
    received_at_s: float
    """By the clock of the workers' reported starts."""
    capacity: HostCapacity
    templates: tuple[Template, ...] = ()
    workers: tuple[Worker, ...] = ()
    start_ups: tuple[StartUp, ...] = ()
    """Of each worker that became ready since the last report."""
    exits: tuple[Exit, ...] = ()
    """Of each worker that ended since then and had no job when it was asked to stop."""
    labels: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[HostProblem, ...] = ()
    """What keeps the agent from its work."""
    cuts: tuple[CutJob, ...] = ()
    """What ends of workers have cut, or may have, as far as no answered report had it."""
    refused: tuple[str, ...] = ()
    """What the host reported and may not claim, in the sentences of ``admitted``."""
    address: str | None = None
    """From where it came."""


class Outcome(Enum):
    """What became of a report."""

    TAKEN = auto()
    LATE = auto()
    """It is older than another report of the same boot: nothing was changed."""
    ASTRAY = auto()
    """Of a pulse: what is known is not the report that it follows. A whole report is needed."""
    LOCKED = auto()
    """Somebody else writes what is known of the host: ask again."""
    UNKNOWN = auto()
    """No host has its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What an agent reports anew where all else is as in its report ``follows``."""

    host_id: str
    boot_id: str
    sequence: int
    follows: int
    epoch_seen: int
    capacity: HostCapacity


async def record_reports(conn: AsyncConnection, received: Sequence[HostReport | Pulse]) -> dict[str, Outcome]:
    """Make each of ``received`` what is known of its host, and hold the host for known for another lease.

    At most one a host. None waits for whoever else writes to its host, so that this transaction and one that writes to
    many hosts cannot wait for each other.

    Returns:
        Host id -> what became of its report.
    """
    bounds = await _bounds(conn, [each.host_id for each in received if isinstance(each, HostReport)])
    kept = [_within(each, bounds.get(each.host_id)) if isinstance(each, HostReport) else each for each in received]
    reports = [each for each in kept if isinstance(each, HostReport)]
    pulses = {each.host_id for each in received if isinstance(each, Pulse)}
    rows = [_host_to_json(each) if isinstance(each, HostReport) else _measured_to_json(each) for each in kept]
    found = await conn.execute(_RECORD, {"rows": rows, "lease_s": HOST_LEASE_S})
    outcomes = {row.host_id: _outcome(row, is_pulse=row.host_id in pulses) for row in found}
    taken = [report for report in reports if outcomes[report.host_id] is Outcome.TAKEN]
    if taken:
        await _replace_workers(conn, taken)
    for report in taken:
        bound = bounds.get(report.host_id)
        if bound is not None and report.refused and list(report.refused) != bound.refused:
            await _audit(conn, bound.name, report.refused, address=report.address)
    await learn_start_ups(conn, ((report.host_id, report.start_ups) for report in taken))
    await learn_exits(conn, ((report.host_id, report.exits) for report in taken))
    await record_cuts(conn, ((each.host_id, each.received_at_s, cut) for each in taken for cut in each.cuts))
    return outcomes


def _outcome(row: Any, *, is_pulse: bool) -> Outcome:
    if not row.is_known:
        return Outcome.UNKNOWN
    if not row.is_free:
        return Outcome.LOCKED
    if row.is_taken:
        return Outcome.TAKEN
    return Outcome.ASTRAY if is_pulse else Outcome.LATE


async def _bounds(conn: AsyncConnection, host_ids: Sequence[str]) -> Mapping[str, Any]:
    """Of those hosts that may not say everything: their names, what they may, and what they were refused last."""
    rows = await conn.execute(
        select(hosts.c.host_id, hosts.c.name, hosts.c.allowed, hosts.c.refused).where(
            hosts.c.host_id.in_(host_ids), hosts.c.allowed.is_not(None)
        )
    )
    return {row.host_id: row for row in rows}


def _within(report: HostReport, bound: Any) -> HostReport:
    """What the host's join token leaves of ``report``."""
    if bound is None:
        return report
    allowance = allowance_of(bound.allowed)
    kept = admitted(allowance, report.labels, report.templates)
    return replace(
        report,
        labels=kept.labels,
        templates=kept.templates,
        refused=kept.refused,
        # What is learned of a template holds for other hosts' workers as well.
        start_ups=tuple(each for each in report.start_ups if allowance.allows_template(each.template)),
        exits=tuple(each for each in report.exits if allowance.allows_template(each.template)),
    )


async def _audit(conn: AsyncConnection, name: str, refused: Sequence[str], *, address: str | None) -> None:
    """Write down what a host was refused, but not at its will."""
    lately = audit_log.c.acted_at > func.now() - seconds(AUDITED_EVERY_S)
    host = printable(f"host {name}")
    known = select(audit_log.c.audit_id).where(lately, audit_log.c.action == REFUSED, audit_log.c.actor == host)
    if (await conn.execute(known.limit(1))).first() is None:
        log.warning("refused of host=%s: %s", name, "; ".join(refused))
        by = Actor(host, address=address)
        await record_act(conn, actor=by, action=REFUSED, subject=host, after={"refused": list(refused)})


_RECORD = text(
    """
    with given as (
        select * from jsonb_to_recordset(:rows) as given(
            host_id text, boot_id text, sequence bigint, follows bigint, epoch_seen bigint, cpu_cores double precision,
            memory_bytes bigint, gpus integer, cpu_pressure double precision, memory_pressure double precision,
            labels jsonb, templates jsonb, refused jsonb, running jsonb, failing jsonb,
            problems jsonb)
    ), free as (
        select host_id from hosts where host_id in (select host_id from given) for no key update skip locked
    ), taken as (
        update hosts set
            boot_id = given.boot_id,
            report_sequence = given.sequence,
            epoch_seen = greatest(hosts.epoch_seen, given.epoch_seen),
            cpu_cores = given.cpu_cores,
            memory_bytes = given.memory_bytes,
            gpus = given.gpus,
            cpu_pressure = given.cpu_pressure,
            memory_pressure = given.memory_pressure,
            labels = coalesce(given.labels, hosts.labels),
            templates = coalesce(given.templates, hosts.templates),
            refused = coalesce(given.refused, hosts.refused),
            problems = coalesce(given.problems, hosts.problems),
            -- Template -> when its workers were last seen to fail: now where all of them do, never where one stays.
            failing = case when given.failing is null or hosts.failing = '{}' and given.failing = '[]'
                then hosts.failing else
                (hosts.failing - array(select jsonb_array_elements_text(given.running))) || coalesce(
                    (select jsonb_object_agg(failed.template, extract(epoch from now()))
                     from jsonb_array_elements_text(given.failing) as failed(template)), '{}') end,
            reported_at = now(),
            lease_ends_at = now() + make_interval(secs => :lease_s)
        from given join free using (host_id)
        where hosts.host_id = given.host_id
            and case when given.follows is null
                then hosts.boot_id is distinct from given.boot_id or hosts.report_sequence < given.sequence
                else hosts.boot_id = given.boot_id and hosts.report_sequence = given.follows end
        returning hosts.host_id
    )
    select given.host_id, free.host_id is not null as is_free, taken.host_id is not null as is_taken,
        hosts.host_id is not null as is_known
    from given left join free using (host_id) left join taken using (host_id) left join hosts using (host_id)
    """
).bindparams(bindparam("rows", type_=JSONB))


def _host_to_json(report: HostReport) -> Mapping[str, Any]:
    running = {worker.template for worker in report.workers if worker.state is WorkerState.RUNNING}
    # In a crash loop one keeps trying: that it was ready for a moment does not show that such workers stay, and ends
    # no failing that is known. Nor does one that fails beside others show that all of them will: it begins none.
    stays = {
        worker.template
        for worker in report.workers
        if worker.state is WorkerState.RUNNING and report.received_at_s - worker.started_at_s >= STAYS_AFTER_S
    }
    failing = {worker.template for worker in report.workers if worker.state is WorkerState.BACKING_OFF} - running
    return {
        **_measured_to_json(report),
        "labels": dict(report.labels),
        "templates": [template_to_json(template) for template in report.templates],
        "refused": list(report.refused),
        "problems": {each.kind: each.error_number for each in report.problems},
        "running": sorted(stays),
        "failing": sorted(failing),
    }


def _measured_to_json(received: HostReport | Pulse) -> Mapping[str, Any]:
    names = ("host_id", "boot_id", "sequence", "epoch_seen", "follows")  # the last of a pulse only
    return {**{name: getattr(received, name, None) for name in names}, **to_mapping(received.capacity)}


async def _replace_workers(conn: AsyncConnection, reports: Sequence[HostReport]) -> None:
    """Leave, of each host, exactly the workers of its report that are not gone."""
    gone = ((each.host_id, worker) for each in reports for worker in each.workers if worker.state is WorkerState.GONE)
    await count_forced(conn, ((host_id, worker.worker_id) for host_id, worker in gone if worker.is_forced))
    rows = [
        {"host_id": report.host_id, **_worker_to_json(worker, now_s=report.received_at_s)}
        for report in reports
        for worker in report.workers
        if worker.state is not WorkerState.GONE
    ]
    await conn.execute(_LEAVE, {"host_ids": [report.host_id for report in reports], "rows": rows})
    if rows:
        await conn.execute(_UPSERT, {"rows": rows})


_LEAVE = text(
    """
    delete from workers where host_id = any(:host_ids) and not exists (
        select from jsonb_to_recordset(:rows) as given(host_id text, worker_id text)
        where given.host_id = workers.host_id and given.worker_id = workers.worker_id)
    """
).bindparams(bindparam("rows", type_=JSONB), bindparam("host_ids", type_=ARRAY(Text)))
# A start stays as first reported: later reports differ by the time they were on the way. What has not changed is not
# written, which with four workers a host is most of what there would be to write.
_UPSERT = text(
    """
    insert into workers as known
        (worker_id, host_id, pool, template, pid, state, is_burst, is_busy, restart_generation, template_hash,
         memory_bytes, activity_source, activity_age_s, running_jobs, running, is_left_behind, inability,
         goes_to_background, start_failure, moves_due_jobs, started_at, state_since, state_reported_at)
    select distinct on (worker_id) worker_id, host_id, pool, template, pid, state, is_burst, is_busy,
        restart_generation, template_hash, memory_bytes, activity_source, activity_age_s, running_jobs, running,
        is_left_behind, inability, goes_to_background, start_failure, coalesce(moves_due_jobs, false),
        now() - make_interval(secs => age_s), now() - make_interval(secs => coalesce(state_age_s, 0)), now()
    from jsonb_to_recordset(:rows) as given(
        worker_id text, host_id text, pool text, template text, pid bigint, state text, is_burst boolean,
        is_busy boolean, restart_generation bigint, template_hash text, memory_bytes bigint, age_s double precision,
        activity_source text, activity_age_s double precision, running_jobs bigint, running jsonb,
        is_left_behind boolean, inability text, goes_to_background boolean, start_failure text,
        moves_due_jobs boolean, state_age_s double precision)
    order by worker_id, host_id
    on conflict (worker_id) do update set
        pid = excluded.pid, state = excluded.state, is_busy = excluded.is_busy,
        memory_bytes = excluded.memory_bytes, activity_source = excluded.activity_source,
        activity_age_s = excluded.activity_age_s, running_jobs = excluded.running_jobs, running = excluded.running,
        inability = excluded.inability, start_failure = excluded.start_failure,
        moves_due_jobs = excluded.moves_due_jobs, reported_at = now(),
        state_since = case when known.state = excluded.state then known.state_since else excluded.state_since end,
        state_reported_at = case when known.state = excluded.state then known.state_reported_at else now() end
    where known.host_id = excluded.host_id
        and (known.pid, known.state, known.is_busy, known.memory_bytes, known.activity_source, known.activity_age_s,
             known.running_jobs, known.running, known.inability, known.start_failure, known.moves_due_jobs)
            is distinct from (excluded.pid, excluded.state, excluded.is_busy, excluded.memory_bytes,
             excluded.activity_source, excluded.activity_age_s, excluded.running_jobs, excluded.running,
             excluded.inability, excluded.start_failure, excluded.moves_due_jobs)
    """
).bindparams(bindparam("rows", type_=JSONB))


def _evidence_age_s(worker: Worker, *, now_s: float) -> float | None:
    """How old the word on the worker is, in steps; never older than the worker."""
    if worker.activity_known_at_s is None:
        return None
    steps = math.ceil((now_s - worker.activity_known_at_s) / EVIDENCE_STEP_S)
    return max(0.0, min(EVIDENCE_STEP_S * steps, now_s - worker.started_at_s))


_AS_REPORTED = tuple(each.name for each in fields(Worker) if each.name in workers.c)


def _worker_to_json(worker: Worker, *, now_s: float) -> Mapping[str, Any]:
    return {
        **{name: to_mapping(getattr(worker, name)) for name in _AS_REPORTED},
        "activity_age_s": _evidence_age_s(worker, now_s=now_s),
        "age_s": max(0.0, now_s - worker.started_at_s),
        "state_age_s": None if worker.state_since_s is None else max(0.0, now_s - worker.state_since_s),
    }
