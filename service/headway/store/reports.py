"""What agents tell of their hosts becomes what is known of them.

A host is known while its lease holds, by Postgres's clock. Agents tell durations; their clocks count nowhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Text, bindparam, cast, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from headway.errors import NotFound
from headway.scaling.model import HostCapacity, Template, Worker, WorkerState
from headway.store.hosts import LEASE_S, seconds
from headway.store.tables import hosts, template_start_ups, workers

START_UP_WEIGHT = 0.3  # of the newest start-up: after ten of them what was before counts 3 %


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
    labels: Mapping[str, str] = field(default_factory=dict)


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
            gpus=report.capacity.gpus,
            cpu_pressure=report.capacity.cpu_pressure,
            memory_pressure=report.capacity.memory_pressure,
            labels=dict(report.labels),
            failing=_failing(report.workers),
            templates=[_template_to_json(template) for template in report.templates],
            reported_at=func.now(),
            lease_ends_at=func.now() + seconds(bindparam("lease_s", LEASE_S)),
        )
    )
    if taken.rowcount == 0:
        await _require_host(conn, report.host_id)
        return False
    await _replace_workers(conn, report)
    for template, start_ups_s in _by_template(report.start_ups).items():
        await _learn_start_up(conn, report.host_id, template, start_ups_s)
    return True


def _failing(told: Iterable[Worker]) -> ColumnElement[Any]:
    """Template -> when its workers were last seen to fail: now where all of them do, never where one of them runs."""
    running = sorted({worker.template for worker in told if worker.state is WorkerState.RUNNING})
    failing = sorted({worker.template for worker in told if worker.state is WorkerState.BACKING_OFF} - set(running))
    known: ColumnElement[Any] = hosts.c.failing
    if running:
        known = known.op("-")(cast(running, ARRAY(Text)))
    if failing:
        now_s = func.extract("epoch", func.now())
        known = known.op("||")(func.jsonb_build_object(*(each for name in failing for each in (name, now_s))))
    return known


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
            (worker_id, host_id, pool, template, pid, state, is_burst, is_busy, restart_generation, template_hash,
             memory_bytes, started_at)
        select worker_id, :host_id, pool, template, pid, state, is_burst, is_busy, restart_generation, template_hash,
            memory_bytes, now() - make_interval(secs => age_s)
        from jsonb_to_recordset(:rows) as given(
            worker_id text, pool text, template text, pid bigint, state text, is_burst boolean, is_busy boolean,
            restart_generation bigint, template_hash text, memory_bytes bigint, age_s double precision)
        on conflict (worker_id) do update set
            pid = excluded.pid, state = excluded.state, is_busy = excluded.is_busy,
            memory_bytes = excluded.memory_bytes, reported_at = now()
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


def _template_to_json(template: Template) -> Mapping[str, Any]:
    return {
        "name": template.name,
        "content_hash": template.content_hash,
        "slots": template.slots,
        "cpu_cores": template.cpu_cores,
        "memory_bytes": template.memory_bytes,
        "gpus": template.gpus,
        "labels": dict(template.labels),
        "isolation_drain_after_s": template.isolation_drain_after_s,
        "drain_timeout_s": template.drain_timeout_s,
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
        "template_hash": worker.template_hash,
        "memory_bytes": worker.memory_bytes,
        "age_s": max(0.0, now_s - worker.started_at_s),
    }
