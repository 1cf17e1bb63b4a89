"""Hosts: who they are, what they last reported, and what they are to run.

A host is known while its lease holds, by Postgres's clock. Agents tell durations; their clocks count nowhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    and_,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Conflict, NotFound
from headway.scaling.model import Assignment, Host, HostCapacity, Template, Worker, WorkerState
from headway.store.tables import assignments, cluster, hosts, template_start_ups, worker_activities, workers

LEASE_S = 45.0  # three reports: one that is lost loses no host
START_UP_WEIGHT = 0.3  # of the newest start-up: after ten of them what was before counts 3 %
ACTIVITY_FRESH_S = 15.0  # what a broker said of a worker longer ago says nothing of it now
HINT_AGE_MAX_S = 30.0  # no agent has a use for older ones


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What an agent tells of its host."""

    host_id: str
    boot_id: str
    sequence: int
    """Grows from report to report within one boot of the host."""
    epoch_seen: int
    received_at_s: float
    """By the clock that the workers' starts are told in."""
    capacity: HostCapacity
    templates: tuple[Template, ...] = ()
    workers: tuple[Worker, ...] = ()
    start_ups: tuple[tuple[str, float], ...] = ()
    """Template, and seconds from spawn to ready, of each worker that became ready since the last report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """What the broker says of one worker process of a host."""

    pid: int
    is_busy: bool
    since_age_s: float | None
    """How long it has been busy; ``None`` where the broker does not say."""
    age_s: float
    """How old this knowledge is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a host is to run, and what the broker says of its workers. Revision 0: nobody has decided yet."""

    epoch: int
    revision: int
    assignments: tuple[Assignment, ...] = ()
    hints: tuple[Hint, ...] = ()


async def read_cluster_id(conn: AsyncConnection) -> str:
    """The id of this installation: epochs and revisions mean something only beside it."""
    return str((await conn.execute(select(cluster.c.cluster_id))).scalar_one())


# --- enrolment -------------------------------------------------------------------------------------------------------


async def enrol(conn: AsyncConnection, *, name: str, host_id: str, boot_id: str, agent_version: str) -> str:
    """The id of the host ``name``: that which it comes with if it was given here, else the one it has, else a new one.

    Raises:
        Conflict: another machine has this name.
    """
    # Of two first calls for one name the second waits here for the first, and then finds what that has made.
    await conn.execute(
        insert(hosts)
        .from_select(
            ["host_id", "name"],
            select(literal_column("gen_random_uuid()::text"), bindparam("name", name)).where(
                ~select(hosts.c.host_id).where(hosts.c.host_id == host_id).exists()
            ),
        )
        .on_conflict_do_nothing(index_elements=["name"])
    )
    is_leased = func.coalesce(hosts.c.lease_ends_at > func.now(), False).label("is_leased")
    rows = await conn.execute(
        select(hosts.c.host_id, hosts.c.name, hosts.c.boot_id, is_leased).where(
            (hosts.c.host_id == host_id) | (hosts.c.name == name)
        )
    )
    found = {row.host_id: row for row in rows}
    named = next((row for row in found.values() if row.name == name), None)
    own = found.get(host_id, named)
    assert own is not None, "inserted above, and hosts are not deleted in the same breath"
    # One that lost its state folder comes without its id, but from the same boot or after the time a reboot takes.
    is_taken = own.host_id != host_id and own.is_leased and own.boot_id != boot_id
    if is_taken or (named is not None and named.host_id != own.host_id):
        raise Conflict(
            f"host {name!r}: another machine has this name; give one of the two another HEADWAY_HOST_NAME, "
            f"or wait {LEASE_S:.0f} s if that machine is gone"
        )
    await conn.execute(
        update(hosts).where(hosts.c.host_id == own.host_id).values(name=name, agent_version=agent_version)
    )
    return str(own.host_id)


# --- reports ---------------------------------------------------------------------------------------------------------


async def record_report(conn: AsyncConnection, report: HostReport) -> bool:
    """Make ``report`` what is known of its host, and hold the host for known for another lease.

    Returns:
        Whether it was: a report older than another one of the same boot changes nothing.

    Raises:
        NotFound: no host has this id.
    """
    taken = await conn.execute(
        update(hosts)
        .where(
            hosts.c.host_id == report.host_id,
            (hosts.c.boot_id != report.boot_id) | (hosts.c.report_sequence < report.sequence),
        )
        .values(
            boot_id=report.boot_id,
            report_sequence=report.sequence,
            epoch_seen=func.greatest(hosts.c.epoch_seen, report.epoch_seen),
            cpu_cores=report.capacity.cpu_cores,
            memory_bytes=report.capacity.memory_bytes,
            templates=[_template_to_json(template) for template in report.templates],
            reported_at=func.now(),
            lease_ends_at=func.now() + _seconds(bindparam("lease_s", LEASE_S)),
        )
    )
    if taken.rowcount == 0:
        await _require_host(conn, report.host_id)
        return False
    await _replace_workers(conn, report)
    for template, start_ups_s in _by_template(report.start_ups).items():
        await _learn_start_up(conn, report.host_id, template, start_ups_s)
    return True


async def _require_host(conn: AsyncConnection, host_id: str) -> None:
    if (await conn.execute(select(hosts.c.host_id).where(hosts.c.host_id == host_id))).first() is None:
        raise NotFound(f"no host has the id {host_id!r}: its agent must enrol again")


async def _replace_workers(conn: AsyncConnection, report: HostReport) -> None:
    """Leave exactly the workers of ``report`` that are not gone."""
    present = [worker for worker in report.workers if worker.state is not WorkerState.GONE]
    await conn.execute(
        delete(workers).where(
            workers.c.host_id == report.host_id,
            workers.c.worker_id.not_in([worker.worker_id for worker in present]),
        )
    )
    if not present:
        return
    # One round trip for all. A start stays as first told: later tellings differ by the time they were on the way.
    statement = text(
        """
        insert into workers as known
            (worker_id, host_id, pool, template, pid, state, is_burst, is_busy, restart_generation, started_at)
        select worker_id, :host_id, pool, template, pid, state, is_burst, is_busy, restart_generation,
            now() - make_interval(secs => age_s)
        from jsonb_to_recordset(:rows) as given(
            worker_id text, pool text, template text, pid bigint, state text, is_burst boolean, is_busy boolean,
            restart_generation bigint, age_s double precision)
        on conflict (worker_id) do update set
            pid = excluded.pid, state = excluded.state, is_busy = excluded.is_busy, reported_at = now()
        where known.host_id = excluded.host_id
        """
    ).bindparams(bindparam("rows", type_=JSONB))
    rows = [_worker_to_json(worker, now_s=report.received_at_s) for worker in present]
    await conn.execute(statement, {"host_id": report.host_id, "rows": rows})


async def _learn_start_up(conn: AsyncConnection, host_id: str, template: str, start_ups_s: list[float]) -> None:
    """Fold new start-ups into what is known, each with its weight, in the order they came."""
    kept = (1.0 - START_UP_WEIGHT) ** len(start_ups_s)
    first, *later = start_ups_s
    folded_s = first
    for start_up_s in later:
        folded_s += START_UP_WEIGHT * (start_up_s - folded_s)
    # With nothing known before, the first counts whole; else it has the weight of every other.
    added_s = folded_s - first * kept
    known = template_start_ups.c
    await conn.execute(
        insert(template_start_ups)
        .values(host_id=host_id, template=template, start_up_s=folded_s, starts=len(start_ups_s))
        .on_conflict_do_update(
            index_elements=["host_id", "template"],
            set_={"start_up_s": known.start_up_s * kept + added_s, "starts": known.starts + len(start_ups_s)},
        )
    )


def _by_template(start_ups: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    grouped: dict[str, list[float]] = {}
    for template, start_up_s in start_ups:
        grouped.setdefault(template, []).append(start_up_s)
    return dict(sorted(grouped.items()))


# --- what a host is to run -------------------------------------------------------------------------------------------


async def read_standing(conn: AsyncConnection, host_id: str) -> Standing:
    """What the host is to run, in one statement: the revision and its rows belong together.

    Raises:
        NotFound: no host has this id.
    """
    told = func.coalesce(func.jsonb_agg(literal_column("told")), literal_column("'[]'::jsonb"))
    rows = select(
        *(
            assignments.c[name]
            for name in ("pool", "host_id", "template", "base_workers", "burst_workers", "restart_generation")
        )
    ).where(assignments.c.host_id == hosts.c.host_id)
    seen = select(
        worker_activities.c.pid,
        worker_activities.c.is_busy,
        _age_s(func.to_timestamp(worker_activities.c.busy_since_s)).label("since_age_s"),
        _age_s(worker_activities.c.seen_at).label("age_s"),
    ).where(
        worker_activities.c.host_name == hosts.c.name,
        worker_activities.c.seen_at > func.now() - _seconds(bindparam("hint_age_max_s", HINT_AGE_MAX_S)),
    )
    statement = select(
        hosts.c.assignment_epoch,
        hosts.c.assignment_revision,
        select(told).select_from(rows.correlate(hosts).subquery("told")).scalar_subquery().label("assignments"),
        select(told).select_from(seen.correlate(hosts).subquery("told")).scalar_subquery().label("hints"),
    ).where(hosts.c.host_id == host_id)
    row = (await conn.execute(statement)).one_or_none()
    if row is None:
        raise NotFound(f"no host has the id {host_id!r}: its agent must enrol again")
    return Standing(
        epoch=row.assignment_epoch,
        revision=row.assignment_revision,
        assignments=tuple(sorted((Assignment(**each) for each in row.assignments), key=lambda each: each.pool)),
        hints=tuple(Hint(**each) for each in row.hints),
    )


# --- what is known of hosts ------------------------------------------------------------------------------------------


async def load_hosts(conn: AsyncConnection) -> tuple[Host, ...]:
    """Every host with its templates and the workers it last reported, by id."""
    start_ups: dict[str, dict[str, float]] = {}
    for row in await conn.execute(select(template_start_ups)):
        start_ups.setdefault(row.host_id, {})[row.template] = row.start_up_s
    running = await _workers(conn)
    rows = await conn.execute(
        select(
            hosts.c.host_id,
            hosts.c.name,
            hosts.c.cpu_cores,
            hosts.c.memory_bytes,
            hosts.c.templates,
            func.coalesce(hosts.c.lease_ends_at > func.now(), False).label("is_known"),
        ).order_by(hosts.c.host_id)
    )
    return tuple(
        Host(
            host_id=row.host_id,
            name=row.name,
            capacity=HostCapacity(cpu_cores=row.cpu_cores, memory_bytes=row.memory_bytes),
            templates=tuple(
                Template(**template, start_up_s=start_ups.get(row.host_id, {}).get(template["name"]))
                for template in row.templates
            ),
            workers=tuple(running.get(row.host_id, ())),
            is_known=row.is_known,
        )
        for row in rows
    )


async def _workers(conn: AsyncConnection) -> dict[str, list[Worker]]:
    """The workers of each host, oldest first. What the broker just said of one counts more than its agent's guess."""
    said = and_(
        worker_activities.c.host_name == hosts.c.name,
        worker_activities.c.pid == workers.c.pid,
        worker_activities.c.seen_at > func.now() - _seconds(bindparam("activity_fresh_s", ACTIVITY_FRESH_S)),
        worker_activities.c.seen_at > workers.c.started_at,  # before that its pid was another process's
    )
    rows = await conn.execute(
        select(
            workers.c.host_id,
            workers.c.worker_id,
            workers.c.pool,
            workers.c.template,
            workers.c.pid,
            workers.c.state,
            func.extract("epoch", workers.c.started_at).label("started_at_s"),
            workers.c.is_burst,
            func.coalesce(worker_activities.c.is_busy, workers.c.is_busy).label("is_busy"),
            case((worker_activities.c.is_busy == true(), worker_activities.c.busy_since_s)).label("busy_since_s"),
            workers.c.restart_generation,
        )
        .join_from(workers, hosts, hosts.c.host_id == workers.c.host_id)
        .join(worker_activities, said, isouter=True)
        .order_by(workers.c.started_at, workers.c.worker_id)
    )
    found: dict[str, list[Worker]] = {}
    for row in rows.mappings():
        values = {name: value for name, value in row.items() if name != "host_id"}
        values |= {"state": WorkerState(row["state"]), "started_at_s": float(row["started_at_s"])}
        found.setdefault(row["host_id"], []).append(Worker(**values))
    return found


# --- rows and values -------------------------------------------------------------------------------------------------


def _template_to_json(template: Template) -> Mapping[str, Any]:
    return {
        "name": template.name,
        "content_hash": template.content_hash,
        "slots": template.slots,
        "cpu_cores": template.cpu_cores,
        "memory_bytes": template.memory_bytes,
    }


def _worker_to_json(worker: Worker, *, now_s: float) -> Mapping[str, Any]:
    return {
        "worker_id": worker.worker_id,
        "pool": worker.pool,
        "template": worker.template,
        "pid": worker.pid,
        "state": worker.state.value,
        "is_burst": worker.is_burst,
        "is_busy": worker.is_busy,
        "restart_generation": worker.restart_generation,
        "age_s": max(0.0, now_s - worker.started_at_s),
    }


def _seconds(value: BindParameter[float]) -> ColumnElement[Any]:
    # In make_interval seconds are the last of seven.
    return func.make_interval(0, 0, 0, 0, 0, 0, value)


def _age_s(moment: ColumnElement[Any]) -> ColumnElement[Any]:
    # Of a NULL Postgres would make the greatest of the others, and "not known" must not become 0.
    return case((moment.is_not(None), func.greatest(0, func.extract("epoch", func.now() - moment))))
