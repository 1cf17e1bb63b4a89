"""Hosts: who they are, and what is known of them.

A host is known while its lease holds, by Postgres's clock.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import Conflict, Invalid
from headway.scaling.fields import taken_from
from headway.scaling.mapping import from_mapping, to_mapping
from headway.scaling.model import (
    Host,
    HostCapacity,
    HostProblem,
    HostProblemKind,
    HostState,
    QueueOrder,
    Template,
    Worker,
    WorkerState,
)
from headway.store.audit import Actor, record_act
from headway.store.hosts.host_lease import HOST_LEASE_S
from headway.store.hosts.worker_evidence import BROKERS_WORD, EVIDENCE
from headway.store.tables import (
    age_s,
    cluster,
    epoch_s,
    hosts,
    leader_epoch,
    template_exits,
    template_start_ups,
    worker_activities,
    workers,
)

HOST_FAILING_S = 600.0  # as long as a worker must be well for its agent to forget that it failed


async def read_cluster_id(conn: AsyncConnection) -> str:
    """The id of this installation: epochs and revisions mean something only beside it."""
    return str((await conn.execute(select(cluster.c.cluster_id))).scalar_one())


# --- enrolment -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """A host that asks to be known. ``host_id`` is that of an earlier enrolment, empty at the first."""

    name: str
    host_id: str
    boot_id: str
    agent_version: str
    agent_id: str = ""
    """A secret of the agent's own, by which it is known again when it asks a second time."""
    join_token: str = ""
    hosts_max: int | None = None
    address: str = ""
    """Where the call comes from, for the audit log."""


async def enrol(conn: AsyncConnection, enrolment: Enrolment) -> str:
    """The id of the host: that which it comes with if it was given here, else the one its name has, else a new one.

    Whether the caller may enrol it has been found out.

    Raises:
        Conflict: another machine has this name.
        Invalid: ``hosts_max`` hosts are known already.
    """
    name, host_id = enrolment.name, enrolment.host_id
    # Of two first calls for one name the second waits here for the first, and then finds what that has made.
    made = await conn.execute(
        insert(hosts)
        .from_select(
            ["host_id", "name"],
            select(literal_column("gen_random_uuid()::text"), bindparam("name", name)).where(
                ~select(hosts.c.host_id).where(hosts.c.host_id == host_id).exists()
            ),
        )
        .on_conflict_do_nothing(index_elements=["name"])
    )
    if made.rowcount and enrolment.hosts_max is not None:
        await _require_room(conn, name, hosts_max=enrolment.hosts_max)
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
    is_taken = own.host_id != host_id and own.is_leased and own.boot_id != enrolment.boot_id
    if is_taken or (named is not None and named.host_id != own.host_id):
        raise Conflict(
            f"host {name!r}: another machine has this name; give one of the two another HEADWAY_HOST_NAME, "
            f"or wait {HOST_LEASE_S:.0f} s if that machine is gone"
        )
    if own.name != name:
        # Its labels and its certificate stay: whoever watches names must see that one has another now.
        await record_act(
            conn,
            actor=Actor(f"host {own.name}", address=enrolment.address or None),
            action="host renamed",
            subject=f"host {name}",
            before={"name": own.name},
            after={"name": name, "host_id": own.host_id},
        )
    known = update(hosts).where(hosts.c.host_id == own.host_id)
    await conn.execute(known.values(name=name, agent_version=enrolment.agent_version))
    return str(own.host_id)


async def _require_room(conn: AsyncConnection, name: str, *, hosts_max: int) -> None:
    known = (await conn.execute(select(func.count()).select_from(hosts))).scalar_one() - 1
    if known >= hosts_max:
        raise Invalid(
            f"host {name!r}: {known} hosts are known, as many as HEADWAY_HOSTS allows: forget those that are gone "
            "(`headway host forget`), or raise it"
        )


# --- what is known of hosts ------------------------------------------------------------------------------------------


async def note_certificate(conn: AsyncConnection, host_id: str, *, ends_at_s: float | None) -> None:
    """Write down when the certificate ends that the host shows now; ``None``: it shows none."""
    ends_at = None if ends_at_s is None else func.to_timestamp(ends_at_s)
    await conn.execute(update(hosts).where(hosts.c.host_id == host_id).values(certificate_ends_at=ends_at))


async def now_s(conn: AsyncConnection) -> float:
    """Unix seconds by Postgres's clock, when this transaction began."""
    return float((await conn.execute(select(epoch_s(func.now())))).scalar_one())


async def load_hosts(conn: AsyncConnection) -> tuple[Host, ...]:
    """Every host with its templates and the workers it last reported, by id."""
    timings = {(row.host_id, row.template): row for row in await conn.execute(_TIMINGS)}
    running = (await conn.execute(_RUNNING)).all()
    known = (await conn.execute(_HOSTS)).all()
    # Of ten thousand hosts that is most of a second, in which agents and people shall be answered as well.
    return await asyncio.to_thread(_hosts, known, running, timings)


# Not the single observations: a hundred of each template and host are for rehearsals.
_TIMINGS = select(
    template_start_ups.c.host_id,
    template_start_ups.c.template,
    template_start_ups.c.start_up_s,
    template_start_ups.c.start_up_p95_s,
    template_start_ups.c.start_up_cpu_s,
    template_exits.c.exit_s,
).join(
    template_exits,
    and_(
        template_exits.c.host_id == template_start_ups.c.host_id,
        template_exits.c.template == template_start_ups.c.template,
    ),
    isouter=True,
)


def _has_reported_since(moment: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.coalesce(hosts.c.reported_at >= select(moment).scalar_subquery(), False)


def while_shut(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """What was set of a host by hand, as long as that holds; then null."""
    until_s = hosts.c.cordoned_until_s
    return case((or_(until_s.is_(None), until_s > epoch_s(func.now())), column))


def state_now() -> ColumnElement[str]:
    """What people have said of a host, and have not given an end that is over."""
    return func.coalesce(while_shut(hosts.c.state), HostState.SERVING.value)


# A restored database knows older orders than its hosts act on, and older workers than they have. What they report from
# then on is the truth, and where deciding starts.
_ACTS_ON_LOST_ORDERS = and_(
    hosts.c.epoch_seen > hosts.c.assignment_epoch,
    hosts.c.epoch_seen <= select(leader_epoch.c.epoch).scalar_subquery(),  # else it takes no orders of this leader
)
_HAS_REPORTED_SINCE = _has_reported_since(leader_epoch.c.taken_at)
_IS_OF_THIS_DATABASE = _has_reported_since(leader_epoch.c.hosts_heard_from)
_HOSTS = select(
    hosts.c.host_id,
    hosts.c.name,
    hosts.c.cpu_cores,
    hosts.c.memory_bytes,
    hosts.c.gpus,
    hosts.c.cpu_pressure,
    hosts.c.memory_pressure,
    cast(hosts.c.templates, Text).label("templates"),
    cast(hosts.c.labels, Text).label("labels"),
    state_now().label("state"),
    hosts.c.failing,
    hosts.c.problems,
    func.coalesce(hosts.c.lease_ends_at > func.now(), False).label("is_known"),
    age_s(hosts.c.reported_at).label("silent_s"),
    epoch_s(func.now()).label("now_s"),
    or_(hosts.c.assignment_revision == 0, and_(_ACTS_ON_LOST_ORDERS, _HAS_REPORTED_SINCE)).label("is_undecided"),
    and_(_IS_OF_THIS_DATABASE, or_(not_(_ACTS_ON_LOST_ORDERS), _HAS_REPORTED_SINCE)).label("is_confirmed"),
).order_by(hosts.c.host_id)


_WEIGHED = (
    epoch_s(workers.c.started_at).label("started_at_s"),
    *EVIDENCE,
    cast(workers.c.running, Text).label("running"),
    epoch_s(workers.c.state_since).label("state_since_s"),
    epoch_s(workers.c.state_reported_at).label("state_reported_s"),
)
"""Of a worker: what is not read as its column has it."""


def _running() -> Select[Any]:
    """The workers of every host, oldest first, each with the evidence that counts."""
    weighed = {column.name for column in _WEIGHED}
    as_stored = (each.name for each in fields(Worker) if each.name in workers.c and each.name not in weighed)
    return (
        select(workers.c.host_id, *(workers.c[name] for name in as_stored), *_WEIGHED)
        .join_from(workers, hosts, hosts.c.host_id == workers.c.host_id)
        .join(worker_activities, BROKERS_WORD, isouter=True)
        .order_by(workers.c.started_at, workers.c.worker_id)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A worker, the host that runs it, and how old what is known of it is."""

    worker: Worker
    host: str
    is_reachable: bool
    """Whether its host's lease holds; else it may be gone."""
    seen_age_s: float | None
    """Since its host reported last."""


async def list_workers(
    conn: AsyncConnection,
    *,
    pool: str | None = None,
    host: str | None = None,
    state: WorkerState | None = None,
    limit: int,
    after: str | None = None,
) -> list[WorkerRow]:
    """Workers by their ids, at most ``limit``, of those that come ``after`` an id: all, or those that are asked for."""
    query = (
        _running()
        .add_columns(
            hosts.c.name,
            func.coalesce(hosts.c.lease_ends_at > func.now(), False),
            age_s(hosts.c.reported_at),
        )
        .order_by(None)
        .order_by(workers.c.worker_id)
        .limit(limit)
    )
    for column, value in ((workers.c.pool, pool), (hosts.c.name, host), (workers.c.state, state)):
        if value is not None:
            query = query.where(column == value)
    if after is not None:
        query = query.where(workers.c.worker_id > after)
    found = []
    for row in await conn.execute(query):
        _, *values, name, is_reachable, seen_age_s = row
        found.append(WorkerRow(worker=_worker(values), host=name, is_reachable=is_reachable, seen_age_s=seen_age_s))
    return found


_RUNNING = _running()
_OF_WORKERS = tuple(column.name for column in _RUNNING.selected_columns)[1:]


def _worker(values: Sequence[Any]) -> Worker:
    worker = dict(zip(_OF_WORKERS, values, strict=True))
    return from_mapping(Worker, {**worker, "running": json.loads(worker["running"])})


def _hosts(known: Sequence[Any], running: Sequence[Any], timings: Mapping[tuple[str, str], Any]) -> tuple[Host, ...]:
    workers_of: dict[str, list[Worker]] = {}
    for row in running:
        host_id, *values = row
        workers_of.setdefault(host_id, []).append(_worker(values))
    return tuple(
        taken_from(
            Host,
            row,
            capacity=taken_from(HostCapacity, row),
            templates=tuple(
                _timed(template, timings.get((row.host_id, template.name))) for template in templates_of(row.templates)
            ),
            workers=tuple(workers_of.get(row.host_id, ())),
            labels=dict(_labels(row.labels)),
            state=HostState(row.state),
            failing=frozenset(name for name, at_s in row.failing.items() if row.now_s - at_s <= HOST_FAILING_S),
            problems=tuple(
                HostProblem(kind=HostProblemKind(kind), error_number=number)
                for kind, number in sorted(row.problems.items())
                if kind in _PROBLEM_KINDS
            ),
        )
        for row in known
    )


def _timed(template: Template, timing: Any) -> Template:
    if timing is None:
        return template
    return replace(template, **{name: getattr(timing, name) for name in _LEARNED})


_PROBLEM_KINDS = frozenset(HostProblemKind)
_LEARNED = ("start_up_s", "start_up_p95_s", "start_up_cpu_s", "exit_s")
"""Of a template: what is measured, and not reported."""


def template_to_json(template: Template) -> Mapping[str, Any]:
    """The template as a host's row has it."""
    return {name: value for name, value in to_mapping(template).items() if name not in _LEARNED}


# Most hosts report the same as many others.
@lru_cache(maxsize=4096)
def templates_of(body: str) -> tuple[Template, ...]:
    """The templates that a host's row has, of its JSON."""
    return tuple(map(_template, json.loads(body)))


def _template(values: Mapping[str, Any]) -> Template:
    template = from_mapping(Template, values)
    return template if template.queue_order in set(QueueOrder) else replace(template, queue_order=None)


@lru_cache(maxsize=4096)
def _labels(body: str) -> Mapping[str, str]:
    found: dict[str, str] = json.loads(body)
    return found
