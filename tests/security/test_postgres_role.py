"""The least role of Postgres that the documents give: enough for everything that runs, over many days, and no more."""

import re
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from headway.control.http.overview.health_reasons import health_of
from headway.control.scheduler.maintenance import Maintenance, maintain
from headway.scaling.conditions.installation_facts import InstallationFacts
from headway.scaling.measure import CLASS_BUCKET_S, BucketRow
from headway.store import migrate
from headway.store.decision_partitions import DAYS_KEPT, PARTITION_DAYS_AHEAD, keep_partitions
from headway.store.engine import create_engine, snapshot
from headway.store.metrics.metrics_sink import MetricsSink
from headway.store.metrics.pipeline_heartbeat import PipelineHeartbeat
from headway.store.metrics.rollups import tend
from headway.store.metrics.seasons import train_due
from headway.store.missing_rights import MissingRights
from headway.store.overview import read_health
from headway.store.retention import SERVED, forget_old
from security.planes import serving
from store.progress import Progress
from support.tree import ROOT

pytestmark = pytest.mark.e2e

PAGE = ROOT / "docs/how-to/postgres-role.md"
DATABASE = "least_role"
# Days pass by a function that is found before Postgres's own.
CLOCK = """
create schema clock; create table clock.ahead (days integer); insert into clock.ahead values (0);
create function clock.now() returns timestamptz language sql stable as
    'select pg_catalog.now() + make_interval(days => days) from clock.ahead';
grant usage on schema clock to public; grant select on clock.ahead to public;
"""


def blocks() -> list[str]:
    return [block.replace("database headway ", f"database {DATABASE} ") for block in _fenced(PAGE.read_text())]


def _fenced(page: str) -> list[str]:
    return re.findall(r"```sql\n(.*?)```", page, flags=re.DOTALL)


def as_role(url: str, role: str, number: int) -> str:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{role}:change-me-{number}@{place}", path=f"/{DATABASE}").geturl()


@pytest.fixture
def roles(postgres_url: str) -> Iterator[tuple[str, str]]:
    """URLs of the owner and of who runs, set up as the page says."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        try:
            for statement in filter(str.strip, blocks()[0].split(";")):
                admin.execute(statement)
            owner, control = (
                as_role(postgres_url, role, number)
                for number, role in enumerate(("headway_owner", "headway_control"), 1)
            )
            yield owner, control
        finally:
            admin.execute(f"drop database if exists {DATABASE} with (force)")
            for role in ("headway_control", "headway_owner"):
                admin.execute(f"drop role if exists {role}")


async def test_the_documented_role_runs_a_control_plane_and_its_upkeep_for_weeks(
    roles: tuple[str, str], postgres_url: str, tmp_path: Path
) -> None:
    owner, control = roles
    migrate.upgrade(owner)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(blocks()[1])
    with serving(control, tmp_path) as plane, plane.client() as people:
        sample = {"queue": "x/q", "at_s": 1.8e9, "waiting_jobs": 1}
        batch = {"producer": "p", "sequence": 1, "sent_at_s": 1.8e9, "samples": [sample]}
        assert people.post("/v1/telemetry", json=batch).status_code == 200
        profile = {"queues": ["x/q"], "template": "rq"}
        assert people.put("/v1/profiles/q", json=profile, headers={"If-None-Match": "*"}).status_code == 201
        assert people.delete("/v1/profiles/q", headers={"If-Match": "*"}).status_code in {204, 422}
    assert not [line for line in plane.said if "permission denied" in line or "Traceback" in line]

    admin_url = urlsplit(postgres_url)._replace(path=f"/{DATABASE}").geturl()
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(CLOCK)
        engine = create_engine(
            f"{control}{'&' if '?' in control else '?'}options=-csearch_path%3Dpublic,clock,pg_catalog"
        )
        for day in range(1, DAYS_KEPT + 3):
            admin.execute("update clock.ahead set days = %s", [day])
            created, dropped = await keep_partitions(engine)
            assert len(created) == 1
            assert len(dropped) == (1 if day > DAYS_KEPT else 0)
        for table in SERVED:
            await forget_old(engine, table)
        async with snapshot(engine) as conn:
            row = await read_health(conn)
        assert row.partition_days == PARTITION_DAYS_AHEAD
        # Upkeep that fails: two days later people read it, with five left before decisions find no place.
        admin.execute("update clock.ahead set days = days + 2")
        async with snapshot(engine) as conn:
            row = await read_health(conn)
        assert any(
            "decisions can be stored for 5 days more" in each
            for each in health_of(InstallationFacts(known=row)).reasons
        )
        await engine.dispose()


def of_day(url: str, day: int) -> list[BucketRow]:
    """What a pipeline writes on the simulated day: two minutes, with a class of jobs."""
    with psycopg.connect(url) as connection:
        now_s = float(connection.execute("select extract(epoch from now())").fetchone()[0])
    from_s = now_s // 3600 * 3600
    rows = [
        BucketRow(queue="x/q", bucket_s=from_s + 5.0 * n, arrived_jobs=day, started_jobs=day, finished_jobs=day)
        for n in range(24)
    ]
    classes = [
        BucketRow(
            queue="x/q", job_class="C", bucket_s=from_s, span_s=CLASS_BUCKET_S, started_jobs=day, finished_jobs=day
        )
    ]
    return rows + classes


async def test_the_documented_role_runs_the_pipelines_writer_for_eight_days_and_through_a_migration(
    roles: tuple[str, str], postgres_url: str
) -> None:
    """With rollups, seasons, signs of life and upkeep; what it lacks a right for is named by health."""
    owner, control = roles
    migrate.upgrade(owner)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(blocks()[1])
    admin_url = urlsplit(postgres_url)._replace(path=f"/{DATABASE}").geturl()
    url = f"{control}{'&' if '?' in control else '?'}options=-csearch_path%3Dpublic,clock,pg_catalog"
    sink, beat, engine, lacks = MetricsSink(url), PipelineHeartbeat(url), create_engine(url), MissingRights()
    with (
        psycopg.connect(admin_url, autocommit=True) as admin,
        psycopg.connect(url, autocommit=True) as writer,
    ):
        admin.execute(CLOCK)

        async def reasons() -> list[str]:
            async with snapshot(engine) as conn:
                return health_of(InstallationFacts(known=await read_health(conn))).reasons

        for day in range(1, 9):
            admin.execute("update clock.ahead set days = %s", [day])
            if day == 4:  # an upgrade, by the other role
                migrate.upgrade(owner)
                with psycopg.connect(owner, autocommit=True) as connection:
                    connection.execute(blocks()[1])
            assert sink.write(of_day(url, day), Progress()) is not None
            tend(writer, is_stopping=lambda: False, lacks=lacks)
            assert lacks.text is None
            train_due(writer, UTC, is_stopping=lambda: False)
            beat.write()
            assert len((await keep_partitions(engine))[0]) == 1
            for table in SERVED:
                await forget_old(engine, table)
            # Of a decision of this day; the leader's own are of the real one.
            writer.execute(
                "insert into decisions (decided_at, pool, epoch, target_workers, binding, body) "
                "values (now(), 'q', 1, 1, 'steady_state', '{}')"
            )
            assert not any("upkeep" in each or "rolled up" in each for each in await reasons())
        days = writer.execute("select count(distinct bucket_s::bigint / 86400) from rollup_minutes").fetchone()
        assert days == (8,)
        assert writer.execute("select count(*) from decisions").fetchone() == (8,)
        # Without the right, nothing is made or forgotten any more, and people read it.
        admin.execute("revoke update on rollup_progress from headway_control")
        admin.execute("update clock.ahead set days = 9")
        sink.write(of_day(url, 9), Progress())
        tend(writer, is_stopping=lambda: False, lacks=lacks)
        denied = "permission denied for table rollup_progress"
        assert lacks.text == f"rollups of metrics: {denied}; totals of queues: {denied}"
        assert any("metrics are not rolled up for" in each for each in await reasons())
    sink.close()
    beat.close()
    await engine.dispose()


@pytest.mark.parametrize(
    ("right", "lacks"),
    [
        ("insert on rollup_minutes", "metrics of job classes: permission denied for table rollup_minutes"),
        ("select on profile_queues", "which pools have to wake: permission denied for table profile_queues"),
        ("insert, update on queue_seasons", None),  # none is due yet
        ("update on pipeline_health", None),  # where it would be written: its log has it
    ],
)
async def test_a_right_that_is_missing_ends_one_thing_and_is_shown(
    roles: tuple[str, str], right: str, lacks: str | None
) -> None:
    """A missing right on `rollup_minutes` ended every batch."""
    owner, control = roles
    migrate.upgrade(owner)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(blocks()[1])
        sink = MetricsSink(control)
        sink.ready()
        connection.execute(f"revoke {right} from headway_control")
        for _ in range(2):  # the second says what the first could not do
            assert sink.write(of_day(control, 1), Progress()) is not None
        sink.close()
        assert connection.execute("select count(*) from queue_buckets").fetchone() == (24,)
        (stored,) = connection.execute("select lacks from pipeline_health").fetchone()
        assert stored is None if lacks is None else lacks in stored
    engine = create_engine(owner)
    async with snapshot(engine) as conn:
        reasons = health_of(InstallationFacts(known=await read_health(conn))).reasons
    await engine.dispose()
    assert any("pipeline main lacks a right in Postgres and leaves out" in each for each in reasons) == bool(lacks)


async def test_of_upkeep_a_right_that_is_missing_ends_one_part(roles: tuple[str, str]) -> None:
    owner, control = roles
    migrate.upgrade(owner)
    engine, upkeep = create_engine(control), Maintenance()
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(blocks()[1])
        connection.execute("revoke delete on event_batches from headway_control")
        connection.execute(
            "insert into queue_samples (queue, sampled_at_s, waiting_jobs, received_at) "
            "values ('gone', 1, 1, now() - interval '1 year')"
        )
        await maintain(engine, upkeep)
        assert connection.execute("select count(*) from queue_samples").fetchone() == (0,)
    await engine.dispose()
    assert upkeep.failing == {"old rows of event_batches": "permission denied for table event_batches"}


def test_the_documented_role_can_do_no_more(roles: tuple[str, str]) -> None:
    owner, control = roles
    migrate.upgrade(owner)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(blocks()[1])
    with psycopg.connect(control, autocommit=True) as connection:
        connection.execute("create temporary table arrived as select * from queue_buckets")  # as the pipeline does
        for statement in (
            "drop table audit_log",
            "alter table profiles add column x int",
            "create role more",
            "create database more",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
