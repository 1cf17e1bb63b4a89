"""What was learned of pools, on a real Postgres."""

import psycopg
import pytest
from sqlalchemy import text

from headway.scaling.metrics.behaviour import Behaviour, Spread, Timings
from headway.scaling.metrics.prediction_error import PredictionError
from headway.scaling.model import Exit, HostCapacity, StartUp
from headway.store.engine import Engine, transaction
from headway.store.hosts.host_reports import HostReport
from headway.store.hosts.hosts import Enrolment, enrol
from headway.store.pools.behaviours import (
    Learned,
    read_learned,
    read_summaries,
    read_timings,
    save_learned,
    with_timings,
)
from store.reporting import record_report

LEARNED = Learned(
    body={"sample_lag_s": [1.0, 2.0]},
    behaviour=Behaviour(sample_lag=Spread(p50_s=1.0, p95_s=2.0, count=2), dispatch_overhead_s=0.034),
    prediction=PredictionError(p50_s=0.4, p95_s=2.1, bias_s=-0.2, count=118),
)


@pytest.fixture
def connection(migrated_url: str):
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("insert into profiles (pool, body) values ('mail', '{}'), ('news', '{}')")
        yield connection


async def test_what_is_saved_is_read_again_and_goes_with_its_profile(
    engine: Engine, connection: psycopg.Connection
) -> None:
    async with transaction(engine) as conn:
        await save_learned(conn, {"mail": LEARNED, "gone": LEARNED})
        assert await read_learned(conn) == {"mail": LEARNED.body}
        assert await read_summaries(conn) == {"mail": (LEARNED.behaviour, LEARNED.prediction)}
        assert await read_summaries(conn, ["news"]) == {}
        await save_learned(conn, {"mail": Learned(body={})})
        assert await read_summaries(conn, ["mail"]) == {"mail": (Behaviour(), None)}
    connection.execute("delete from profiles where pool = 'mail'")
    async with transaction(engine) as conn:
        assert await read_learned(conn) == {}


async def test_predictions_of_long_ago_are_not_reported(engine: Engine, connection: psycopg.Connection) -> None:
    async with transaction(engine) as conn:
        await save_learned(conn, {"mail": LEARNED})
    connection.execute("update pool_behaviours set written_at = now() - interval '61 minutes'")
    async with transaction(engine) as conn:
        assert await read_summaries(conn) == {"mail": (LEARNED.behaviour, None)}


async def test_timings_are_of_all_hosts_together(engine: Engine) -> None:
    starts = {"a": (1.0,) * 18, "b": (3.0, 5.0)}
    async with transaction(engine) as conn:
        assert await read_timings(conn) == {}
        for name, start_ups_s in starts.items():
            host_id = await enrol(conn, Enrolment(name=name, host_id="", boot_id="boot", agent_version="1"))
            report = HostReport(
                host_id=host_id,
                boot_id="boot",
                sequence=1,
                epoch_seen=0,
                received_at_s=0.0,
                capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1),
                start_ups=tuple(
                    StartUp(template="rq", start_up_s=each, cpu_s=0.5, waited_s=each / 2 if each < 5.0 else None)
                    for each in start_ups_s
                ),
                exits=(Exit(template="rq", exit_s=0.7, cpu_s=0.2, waited_s=0.2), Exit(template="odd", exit_s=2.0)),
            )
            await record_report(conn, report)
        found = await read_timings(conn)
        assert found["rq"].start_up == Spread(p50_s=1.0, p95_s=3.0, count=20)
        assert found["rq"].start_up_cpu_s == pytest.approx(0.5)
        assert found["rq"].start_up_of_late_s == pytest.approx(3.0 + 0.3 * 2.0), "the slowest host's"
        assert found["rq"].start_up_alone == Spread(p50_s=0.5, p95_s=1.5, count=19), "of one it was not measured"
        assert found["rq"].exit == Spread(p50_s=0.7, p95_s=0.7, count=2)
        assert found["rq"].exit_alone == Spread(p50_s=0.7 - 0.2, p95_s=0.7 - 0.2, count=2)
        assert found["rq"].exit_cpu_s == pytest.approx(0.2)
        assert found["odd"] == Timings(exit=Spread(p50_s=2.0, p95_s=2.0, count=2))
        assert set(await read_timings(conn, ["odd", "never"])) == {"odd"}
        whole = with_timings(LEARNED.behaviour, found["rq"])
        assert (whole.sample_lag, whole.start_up) == (LEARNED.behaviour.sample_lag, found["rq"].start_up)
        assert with_timings(LEARNED.behaviour, None) == LEARNED.behaviour


async def test_what_a_clock_rounded_below_nothing_counts_as_nothing(engine: Engine) -> None:
    """A report may say a little less than 0; a spread and a behaviour may not."""
    async with transaction(engine) as conn:
        host_id = await enrol(conn, Enrolment(name="a", host_id="", boot_id="boot", agent_version="1"))
        report = HostReport(
            host_id=host_id,
            boot_id="boot",
            sequence=1,
            epoch_seen=0,
            received_at_s=0.0,
            capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1),
            start_ups=(StartUp(template="rq", start_up_s=-0.001, cpu_s=-0.001, waited_s=0.5),),
            exits=(Exit(template="rq", exit_s=-0.001, cpu_s=-0.001, waited_s=0.5),),
        )
        await record_report(conn, report)
        whole = with_timings(LEARNED.behaviour, (await read_timings(conn))["rq"])
    nothing = Spread(p50_s=0.0, p95_s=0.0)
    assert (whole.start_up, whole.start_up_alone, whole.exit, whole.exit_alone) == (nothing,) * 4
    assert (whole.start_up_cpu_s, whole.exit_cpu_s) == (0.0, 0.0)


@pytest.mark.parametrize("exits_a_report", [3, 400])
async def test_a_mean_that_fades_for_ever_never_keeps_a_report_out(engine: Engine, exits_a_report: int) -> None:
    """Ends that take no time which a clock can show, after one that did: the mean falls towards the smallest float."""
    async with transaction(engine) as conn:
        host_id = await enrol(conn, Enrolment(name="a", host_id="", boot_id="boot", agent_version="1"))
        for sequence, exits in enumerate([(0.01,), *[(0.0,) * exits_a_report] * (2_400 // exits_a_report)], 1):
            report = HostReport(
                host_id=host_id,
                boot_id="boot",
                sequence=sequence,
                epoch_seen=0,
                received_at_s=0.0,
                capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1),
                exits=tuple(Exit(template="rq", exit_s=each, cpu_s=each) for each in exits),
            )
            await record_report(conn, report)
        found = (await read_timings(conn))["rq"]
    assert found.exit_cpu_s == 0.0


async def test_of_many_hosts_each_lists_its_newest_few(engine: Engine) -> None:
    async with transaction(engine) as conn:
        await conn.execute(
            text(
                """
                with made as (
                    insert into hosts (host_id, name) select 'h' || n, 'h' || n from generate_series(1, 500) as n
                    returning host_id
                )
                select from made
                """
            )
        )
        await conn.execute(
            text(
                "insert into template_start_ups (host_id, template, start_up_s, starts, recent_s) "
                "select host_id, 'rq', 1, 100, array_fill(1.0, array[2]) || array_fill(9.0, array[98]) from hosts"
            )
        )
        assert (await read_timings(conn))["rq"].start_up == Spread(p50_s=1.0, p95_s=1.0, count=1_000)
