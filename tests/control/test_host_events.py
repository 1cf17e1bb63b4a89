"""What a host's credential may send: events of the queues of its own pools, under its own name, and nothing else."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text

from control.telemetry import NOW_S, hot_jobs, ingesting, sample
from headway.connections import AGENT
from headway.control.auth.authenticator import LOCAL, Caller
from headway.control.ingest import host_events
from headway.control.ingest.ingest import Ingest
from headway.control.ingest.reported_jobs import source_of
from headway.errors import Forbidden
from headway.scaling.model import (
    BrokerPoll,
    EventKind,
    JobEvent,
    PolledQueue,
    QueueCounts,
    QueueReceptions,
    TelemetryBatch,
    WorkerActivity,
)
from headway.store.access.credentials import Role
from headway.store.engine import Engine, transaction
from headway.store.hosts.host_assignments import read_queues, read_standings

HOST = Caller(role=Role.HOST, name="web-1", host_id="h1", sha256="a" * 64)
PROGRAM = Caller(role=Role.INGEST, name="shop", sha256="b" * 64)


def events(*queues: str, sequence: int = 1, producer: str = f"{AGENT}h1", **more: tuple) -> TelemetryBatch:
    """A batch with one start in each of ``queues``."""
    sent = tuple(
        JobEvent(queue=queue, job_id=f"{queue} {sequence}", kind=EventKind.STARTED, at_s=NOW_S) for queue in queues
    )
    return TelemetryBatch(producer=producer, sequence=sequence, sent_at_s=NOW_S, events=sent, **more)


async def act(engine: Engine, *statements: str) -> None:
    async with transaction(engine) as connection:
        for statement in statements:
            await connection.execute(text(statement))


ASSIGN_MAIL = (
    "insert into assignments (pool, host_id, template, base_workers, epoch, revision) "
    "values ('mail', 'h1', 't', 1, 1, 1)"
)


@pytest.fixture
async def ingest(engine: Engine, migrated_url: str, tmp_path: Path) -> AsyncIterator[Ingest]:
    """An ingest beside host h1, which runs pool mail (queues celery/mail and celery/urgent); pool bulk is elsewhere."""
    await act(
        engine,
        "insert into hosts (host_id, name, boot_id) values ('h1', 'web-1', 'b')",
        "insert into profiles (pool, body) values ('mail', '{}'), ('bulk', '{}')",
        "insert into profile_queues (queue, pool, rank) values "
        "('celery/urgent', 'mail', 0), ('celery/mail', 'mail', 1), ('celery/bulk', 'bulk', 0)",
        ASSIGN_MAIL,
    )
    async with ingesting(migrated_url, tmp_path) as ingest:
        yield ingest


async def test_a_host_reports_jobs_of_its_own_pools(ingest: Ingest, tmp_path: Path) -> None:
    receipt = await ingest.accept(events("celery/mail", "celery/urgent"), HOST)
    assert (receipt.accepted_events, receipt.refused_items) == (2, 0)
    assert hot_jobs(tmp_path) == ["celery/mail 1", "celery/urgent 1"]


async def test_events_of_other_queues_are_left_out_and_the_receipt_says_so(ingest: Ingest, tmp_path: Path) -> None:
    receipt = await ingest.accept(events("celery/bulk", "celery/mail", "celery/nobody"), HOST)
    assert (receipt.accepted_events, receipt.refused_items) == (1, 2)
    assert receipt.refused == "host 'web-1' runs no pool of these queues: celery/bulk, celery/nobody"
    assert hot_jobs(tmp_path) == ["celery/mail 1"]


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (events("celery/bulk"), "runs no pool of these queues: celery/bulk"),
        (events("celery/mail", producer=f"{AGENT}h2"), "host 'web-1' sends as 'agent-h1'"),
        (events("celery/mail", producer=f"{AGENT}h12"), "host 'web-1' sends as 'agent-h1'"),
        (events("celery/mail", producer="collect-celery"), "host 'web-1' sends as 'agent-h1'"),
        (events("celery/mail", samples=(sample("celery/mail", 0),)), "no samples, activities or counts"),
        (
            events("celery/mail", activities=(WorkerActivity(host="web-2", pid=1, is_busy=False),)),
            "no samples, activities or counts",
        ),
        (
            events("celery/mail", polls=(BrokerPoll(connection="celery", at_s=NOW_S, until_s=NOW_S),)),
            "no samples, activities or counts",
        ),
        (
            events("celery/mail", counts=(QueueCounts(queue="celery/mail", at_s=NOW_S, epoch="e"),)),
            "no samples, activities or counts",
        ),
    ],
)
async def test_a_host_sends_nothing_else(ingest: Ingest, tmp_path: Path, batch: TelemetryBatch, says: str) -> None:
    with pytest.raises(Forbidden, match=re.escape(says)):
        await ingest.accept(batch, HOST)
    assert hot_jobs(tmp_path) == []


async def test_receptions_of_other_queues_are_left_out(ingest: Ingest) -> None:
    """They would make another pool's pickup times wrong. Of an own queue none waits, as far as this host knows."""
    polled = BrokerPoll(
        connection="celery",
        at_s=NOW_S - 5.0,
        until_s=NOW_S - 5.0,
        queues=(PolledQueue(queue="celery/bulk", waiting_jobs=1, held_jobs=0, consumers=0, is_ordered=True),),
    )
    await ingest.accept(TelemetryBatch(producer="collect-a", sequence=1, sent_at_s=NOW_S, polls=(polled,)))
    forged = QueueReceptions(queue="celery/bulk", since_s=NOW_S - 9.0, until_s=NOW_S, received_at_s=(NOW_S,))
    await ingest.accept(events("celery/mail", receptions=(forged,)), HOST)
    assert "celery/bulk" not in ingest.entries.reported_queues


async def test_a_draining_worker_reports_its_last_jobs_after_its_pool_has_left_the_host(
    ingest: Ingest, engine: Engine
) -> None:
    await act(
        engine,
        "delete from assignments",
        "insert into released_assignments (pool, host_id) values ('mail', 'h1')",
    )
    assert (await ingest.accept(events("celery/mail"), HOST)).accepted_events == 1


async def test_a_pool_that_comes_to_the_host_may_be_reported_soon(
    ingest: Ingest, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Forbidden):
        await ingest.accept(events("celery/bulk"), HOST)
    await act(engine, ASSIGN_MAIL.replace("mail", "bulk"))
    monkeypatch.setattr(host_events, "HOST_QUEUES_REREAD_S", 0.0)
    assert (await ingest.accept(events("celery/bulk", sequence=2), HOST)).accepted_events == 1


async def test_a_host_with_a_renewed_credential_goes_on_under_its_name(ingest: Ingest) -> None:
    renewed = Caller(role=Role.HOST, name="web-1", host_id="h1", sha256="c" * 64)
    assert (await ingest.accept(events("celery/mail"), HOST)).accepted_events == 1
    assert (await ingest.accept(events("celery/mail", sequence=2), renewed)).accepted_events == 1


async def test_a_program_cannot_send_as_an_agent(ingest: Ingest) -> None:
    with pytest.raises(Forbidden, match=r"names that begin with 'agent-' are of agents"):
        await ingest.accept(events("celery/mail"), PROGRAM)


async def test_agents_of_a_control_plane_without_tokens_may_send(ingest: Ingest) -> None:
    assert (await ingest.accept(events("celery/mail"), LOCAL)).accepted_events == 1


async def test_a_job_that_its_application_reports_too_counts_once(ingest: Ingest, tmp_path: Path) -> None:
    await ingest.accept(events("celery/mail"), HOST)
    receipt = await ingest.accept(events("celery/mail", producer="emit-shop"), PROGRAM)
    assert hot_jobs(tmp_path) == ["celery/mail 1"]
    assert not receipt.is_duplicate
    assert ingest.counts.repeated_events == 1


def test_all_agents_are_one_source() -> None:
    assert source_of("agent-h1") == source_of("agent-h2-x") != source_of("emit-a") == source_of("emit-b")


async def test_a_poll_names_the_queues_of_the_pools_that_the_host_runs(ingest: Ingest, engine: Engine) -> None:
    async with transaction(engine) as connection:
        standing = (await read_standings(connection, ["h1"]))["h1"]
    assert [(each.pool, each.queues) for each in standing.pools] == [("mail", ("celery/urgent", "celery/mail"))]


async def test_a_host_may_report_jobs_of_queues_that_its_pools_help_with(ingest: Ingest, engine: Engine) -> None:
    """Of the others as well: a list of queues that is no list gives none, and takes no poll down with it."""
    async with transaction(engine) as connection:
        for helps in ('["shop/bulk", "shop/later"]', '"shop/bulk"'):
            body = f"update profiles set body = body || jsonb_build_object('helps', '{helps}'::jsonb)"
            await connection.execute(text(f"{body} where pool = 'mail'"))
            (pool,) = (await read_standings(connection, ["h1"]))["h1"].pools
            own, helped = ("celery/urgent", "celery/mail"), ("shop/bulk", "shop/later")
            assert pool.queues == (own + helped if helps.startswith("[") else (*own, "shop/bulk"))
            assert await read_queues(connection, "h1") == frozenset(pool.queues)


async def test_a_queues_name_cannot_forge_a_line_of_the_refusal(ingest: Ingest) -> None:
    with pytest.raises(Forbidden) as refused:
        await ingest.accept(events("celery/\n\x1b[2Jall is well"), HOST)
    assert str(refused.value).isprintable()
