"""Jobs that were cut: kept once, shown in causes, health and an incident. A person may have a worker killed."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from control.polls import held
from headway.control.agents.agent_service import AgentService, AppliedAssignment
from headway.control.http.overview.alerting import Alerting, conditions_of
from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.scaling.conditions.job_troubles import DEATHS
from headway.scaling.measure import sketch_index
from headway.scaling.model import CutCause, CutJob, HostCapacity, Inability, RunningJob, Worker, WorkerState
from headway.scaling.profile import Profile
from headway.store.engine import Engine, transaction
from headway.store.hosts.host_assignments import read_standings
from headway.store.hosts.host_reports import HostReport, Outcome, record_reports
from headway.store.hosts.job_cuts import list_cuts
from support.seed import Seed

JOB = RunningJob(job_id="j1", queue="redis/mail", job_class="shop.send", attempt=2, started_at_s=NOW_S - 90.0)


def cut(cut_id: str = "c1", **values: Any) -> CutJob:
    given = {
        "worker_id": "w1",
        "pool": "mail",
        "template": "rq",
        "cause": CutCause.DRAIN_DEADLINE,
        "is_certain": True,
        "cut_at_s": NOW_S - 30.0,
        "job": JOB,
    }
    return CutJob(cut_id=cut_id, **(given | values))


PERHAPS = {"is_certain": False, "job": None, "cause": CutCause.REBOOT}


@pytest.fixture(autouse=True)
def _mail(seed: Seed) -> None:
    seed.leader()
    seed.pipeline()
    seed.host("a")
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    seed.sample("redis/mail", at_s=NOW_S)


async def reported(engine: Engine, *cuts: CutJob, sequence: int = 1, **values: Any) -> None:
    report = HostReport(
        host_id="id-a",
        boot_id="b",
        sequence=sequence,
        epoch_seen=1,
        received_at_s=NOW_S,
        capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1),
        cuts=cuts,
        **values,
    )
    async with transaction(engine) as conn:
        assert await record_reports(conn, [report]) == {"id-a": Outcome.TAKEN}


# --- kept ------------------------------------------------------------------------------------------------------------


async def test_a_cut_is_kept_once_however_often_its_host_reports_it(engine: Engine, client: httpx.AsyncClient) -> None:
    for sequence in (1, 2, 3):
        await reported(engine, cut(), cut("c2", **PERHAPS), sequence=sequence)
    answer = (await client.get("/v1/cuts", params={"pool": "mail"})).json()["cuts"]
    assert [(each["worker_id"], each["host"], each["job_id"], each["cause"], each["attempt"]) for each in answer] == [
        ("w1", "a", "j1", "drain_deadline", 2),
        ("w1", "a", None, "reboot", None),
    ]
    assert 29.0 <= answer[0]["recorded_at_s"] - answer[0]["cut_at_s"] <= 31.0
    assert answer[0]["sentence"] == (
        "1 job was cut: j1 of shop.send on a: its worker had not ended by the drain deadline of its template and was "
        "killed"
    )
    assert (await client.get("/v1/cuts", params={"pool": "other"})).json() == {"cuts": []}
    assert len((await client.get("/v1/cuts", params={"limit": 1})).json()["cuts"]) == 1


async def test_of_pools_that_nobody_has_nothing_is_kept(engine: Engine) -> None:
    """A host may make them up."""
    await reported(engine, cut(pool="made-up"))
    async with transaction(engine) as conn:
        assert await list_cuts(conn) == []


async def test_a_host_reports_no_more_than_so_many_a_day(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.store.hosts.job_cuts.CUTS_PER_HOST_DAY_MAX", 2)
    for sequence in range(1, 5):
        await reported(engine, cut(f"c{sequence}"), sequence=sequence)
    async with transaction(engine) as conn:
        assert len(await list_cuts(conn)) == 2


# --- shown -----------------------------------------------------------------------------------------------------------


async def test_a_cut_job_is_the_first_cause_of_its_pool_and_a_number_in_health(
    engine: Engine, client: httpx.AsyncClient
) -> None:
    await reported(engine, cut(), cut("c2", **PERHAPS), cut("c3", **PERHAPS))
    (pool,) = (await client.get("/v1/pools")).json()["pools"]
    assert (pool["cut_jobs"], pool["perhaps_cut_jobs"]) == (1, 2)
    assert pool["causes"][0] == (
        "1 job was cut, and 2 workers may have lost one: j1 of shop.send on a: its worker had not ended by the drain "
        "deadline of its template and was killed"
    )
    health = (await client.get("/v1/health")).json()
    assert "3 jobs were cut, or may have been, in the last 15 min: see `headway events`" in health["reasons"]
    assert "cut_jobs" in health["kinds"]


@pytest.mark.parametrize(
    ("cuts", "severity", "summary"),
    [
        ((cut(),), "page", "1 job was cut: j1 of shop.send on a"),
        ((cut(job=None),), "page", "1 job was cut on a: its worker had not ended"),
        ((cut("c2", **PERHAPS),), "ticket", "1 worker may have lost a job: the newest, on a: the host of a worker reb"),
    ],
)
async def test_a_cut_is_an_incident_at_once_and_for_a_while(
    engine: Engine, client: httpx.AsyncClient, seed: Seed, cuts: tuple[CutJob, ...], severity: str, summary: str
) -> None:
    epoch = int(seed.rows("select epoch from leader_epoch")[0][0])
    overviews = OverviewBuilder(engine=engine, clock=lambda: NOW_S)
    alerting = Alerting(engine=engine, overviews=overviews, epoch=lambda: epoch)
    await reported(engine, *cuts)
    await alerting.evaluate()

    async def firing() -> list[dict[str, Any]]:
        alerts = (await client.get("/v1/alerts", params={"pool": "mail"})).json()["alerts"]
        return [each for each in alerts if each["rule"] == "jobs_cut" and each["until_s"] is None]

    (alert,) = await firing()
    assert (alert["severity"], alert["summary"][: len(summary)]) == (severity, summary)
    seed.execute("update job_cuts set recorded_at = now() - interval '16 minutes'")
    await alerting.evaluate()
    assert await firing() == []


DEATH = {"cause": CutCause.SIGNAL}


async def test_a_job_whose_workers_died_three_times_is_poisonous_in_every_view(
    engine: Engine, client: httpx.AsyncClient, seed: Seed
) -> None:
    epoch = int(seed.rows("select epoch from leader_epoch")[0][0])
    overviews = OverviewBuilder(engine=engine, clock=lambda: NOW_S)
    await reported(engine, *(cut(f"c{number}", worker_id=f"w{number}", **DEATH) for number in range(3)))
    sentence = "job j1 of shop.send is poisonous: its workers died with it 3 times"
    (pool,) = (await client.get("/v1/pools")).json()["pools"]
    (poison,) = pool["poison_jobs"]
    assert (poison["job_id"], poison["job_class"], poison["deaths"]) == ("j1", "shop.send", 3)
    assert sentence in pool["causes"]
    health = (await client.get("/v1/health")).json()
    assert "poison_jobs" in health["kinds"]
    assert not any("j1" in reason or "shop.send" in reason for reason in health["reasons"]), "shown without a token"
    assert 'headway_pool_poison_jobs{pool="mail"} 1' in (await client.get("/metrics")).text
    await Alerting(engine=engine, overviews=overviews, epoch=lambda: epoch).evaluate()
    alerts = (await client.get("/v1/alerts", params={"pool": "mail"})).json()["alerts"]
    (alert,) = [each for each in alerts if each["rule"] == "job_poisonous"]
    assert (alert["summary"], alert["severity"]) == (sentence, "ticket")
    assert "Headway removes no job" in alert["action"]
    assert "poison_jobs" not in {key.kind for key in conditions_of(await overviews.of_pools())}, (
        "a page beside the ticket"
    )


@pytest.mark.parametrize(
    ("cuts", "aged"),
    [
        ([cut(f"c{number}", **DEATH) for number in range(2)], ""),  # two may be a machine without memory
        ([cut(f"c{cause}", cause=cause) for cause in CutCause if cause not in DEATHS], ""),  # people, deadlines, hosts
        ([cut(f"c{number}", is_certain=False, **DEATH) for number in range(3)], ""),
        ([cut(f"c{number}", job=None, **DEATH) for number in range(3)], ""),
        ([cut(f"c{number}", job=replace(JOB, job_id=f"j{number}"), **DEATH) for number in range(3)], ""),
        ([cut(f"c{number}", **DEATH) for number in range(3)], "61 minutes"),  # perhaps somebody removed it
    ],
)
async def test_what_no_job_did_to_its_workers_poisons_none(
    engine: Engine, client: httpx.AsyncClient, seed: Seed, cuts: list[CutJob], aged: str
) -> None:
    await reported(engine, *cuts)
    if aged:
        seed.execute(f"update job_cuts set recorded_at = now() - interval '{aged}'")
    (pool,) = (await client.get("/v1/pools")).json()["pools"]
    assert pool["poison_jobs"] == []
    assert "poison_jobs" not in (await client.get("/v1/health")).json()["kinds"]


async def test_a_crash_loop_names_the_job_that_the_last_worker_had_begun(
    engine: Engine, client: httpx.AsyncClient
) -> None:
    backing_off = Worker(
        worker_id="w1", pool="mail", template="rq", pid=0, state=WorkerState.BACKING_OFF, started_at_s=NOW_S - 5.0
    )
    await reported(engine, cut(**DEATH), workers=(backing_off,))
    (pool,) = (await client.get("/v1/pools")).json()["pools"]
    (cause,) = [each for each in pool["causes"] if "crash" in each]
    assert cause.endswith("see the agent's log; the last one had begun job j1 of shop.send")


async def test_what_a_worker_has_left_and_what_takes_no_jobs_is_shown(
    engine: Engine, client: httpx.AsyncClient
) -> None:
    left = Worker(
        worker_id="w1-left",
        pool="mail",
        template="rq",
        pid=7,
        state=WorkerState.DRAINING,
        started_at_s=NOW_S - 60.0,
        is_left_behind=True,
        goes_to_background=True,
    )
    stopped = Worker(
        worker_id="w2",
        pool="mail",
        template="rq",
        pid=8,
        state=WorkerState.RUNNING,
        started_at_s=NOW_S - 60.0,
        inability=Inability.STOPPED,
    )
    await reported(engine, workers=(left, stopped))
    one, two = (await client.get("/v1/workers")).json()["workers"]
    assert (one["is_left_behind"], one["goes_to_background"], one["inability"]) == (True, True, None)
    assert (two["is_left_behind"], two["goes_to_background"], two["inability"]) == (False, False, "stopped")


# --- killed by a person ----------------------------------------------------------------------------------------------


async def kills(engine: Engine) -> list[tuple[str, str]]:
    async with transaction(engine) as conn:
        standing = (await read_standings(conn, ["id-a"]))["id-a"]
    return [(each.worker_id, each.requested_by) for each in standing.kills]


@pytest.mark.parametrize("body", [{}, {"reason": "hangs in a lock"}])
async def test_an_order_to_kill_reaches_the_host_until_it_reports_the_worker_gone(
    client: httpx.AsyncClient, engine: Engine, seed: Seed, body: dict[str, str]
) -> None:
    seed.worker("a", "mail", 1)
    for _ in range(2):
        assert (await client.post("/v1/workers/a-mail-1/kill", json=body)).status_code == 202
    assert await kills(engine) == [("a-mail-1", "local")]
    acts = seed.rows("select action, actor, subject, after from audit_log")
    assert acts == [("worker killed", "local", "profile mail", {"worker": "a-mail-1", "host": "a", **body})]
    await reported(engine)
    assert await kills(engine) == []
    answer = await client.post("/v1/workers/a-mail-1/kill", json={})
    assert (answer.status_code, "no worker 'a-mail-1'" in answer.json()["detail"]) == (404, True)


@pytest.mark.parametrize(
    ("state", "why"), [("unknown", "kills none but its own workers"), ("backing_off", "has no process")]
)
async def test_what_is_no_worker_of_its_agent_is_not_killed(
    client: httpx.AsyncClient, engine: Engine, seed: Seed, state: str, why: str
) -> None:
    seed.worker("a", "mail", 1, state=state)
    answer = await client.post("/v1/workers/a-mail-1/kill", json={})
    assert (answer.status_code, why in answer.json()["detail"]) == (409, True)
    assert await kills(engine) == []


async def test_a_held_poll_is_answered_once_there_is_an_order(
    engine: Engine, client: httpx.AsyncClient, seed: Seed
) -> None:
    seed.worker("a", "mail", 1)
    seed.execute("update hosts set assignment_epoch = 1, assignment_revision = 1")
    service = AgentService(engine=engine)
    having = AppliedAssignment(cluster_id=await service.cluster_id(), host_id="id-a", epoch=1, revision=1)
    poll = asyncio.create_task(service.poll(having, wait_s=60.0))
    await held(service, "id-a")
    await client.post("/v1/workers/a-mail-1/kill", json={})
    service.host_changed("id-a")
    standing = await asyncio.wait_for(poll, 30.0)
    assert [each.worker_id for each in standing.kills] == ["a-mail-1"]
    with pytest.raises(TimeoutError):  # the same order is not sent again and again
        await asyncio.wait_for(service.poll(having, wait_s=60.0), 0.5)


# --- workers that take long to end -----------------------------------------------------------------------------------


def draining(worker_id: str, *, for_s: float, **values: Any) -> Worker:
    return Worker(
        worker_id=worker_id,
        pool="mail",
        template="rq",
        pid=7,
        state=WorkerState.DRAINING,
        started_at_s=NOW_S - 90_000.0,
        state_since_s=NOW_S - for_s,
        **values,
    )


@pytest.mark.parametrize(
    ("service_s", "for_s", "is_overdue"),
    [
        (40.0, 110.0, False),  # 3 x 40 s
        (40.0, 135.0, True),
        (2.0, 50.0, False),  # a minute is nobody's incident
        (2.0, 75.0, True),
        (None, 3_500.0, False),  # where nobody knows how long jobs take
        (None, 3_700.0, True),
    ],
)
async def test_a_worker_that_drains_for_longer_than_its_jobs_take_is_an_incident_with_its_cure(
    engine: Engine, api: Any, seed: Seed, service_s: float | None, for_s: float, is_overdue: bool
) -> None:
    (now_s,) = seed.rows("select extract(epoch from now())::float8")[0]
    if service_s is not None:
        index = sketch_index(service_s)
        seed.bucket("redis/mail", at_s=now_s - 30.0, finished_jobs=100, service_sketch=json.dumps({index: 100}))
    await reported(engine, workers=(draining("w1", for_s=for_s, running=(JOB,)),))
    overviews = OverviewBuilder(engine=engine, clock=lambda: now_s)
    (pool,) = (await overviews.of_pools()).pools
    assert (pool.overdue is not None) == is_overdue
    assert pool.overdue_workers == int(is_overdue)
    assert pool.awaited is not None
    assert "w1 on a, draining for" in pool.awaited
    assert pool.awaited.endswith("; it runs job j1 of shop.send")
    rules = {key.rule: each for key, each in conditions_of(await overviews.of_pools()).items()}
    assert ("drain_overdue" in rules) == is_overdue
    if is_overdue:
        assert "worker w1 on a (process 7) has been draining for" in rules["drain_overdue"].summary
        assert "`headway kill WORKER`" in rules["drain_overdue"].action


async def test_a_worker_that_takes_no_jobs_is_no_capacity_and_a_cause(
    engine: Engine, client: httpx.AsyncClient
) -> None:
    able, unable = (
        replace(draining(name, for_s=5.0), state=WorkerState.RUNNING, inability=why)
        for name, why in (("w1", None), ("w2", Inability.STOPPED))
    )
    await reported(engine, workers=(able, unable, draining("w3", for_s=5.0, goes_to_background=True)))
    (pool,) = (await client.get("/v1/pools")).json()["pools"]
    assert pool["running_workers"] == 1
    cause = "1 worker takes no jobs: its process is stopped on a (process 7)"
    assert cause in pool["causes"]
    assert (pool["unable_workers"], pool["unable"]) == (1, cause)
    health = (await client.get("/v1/health")).json()
    assert "unable_workers" in health["kinds"]
    assert "1 worker is there and takes no jobs: see `headway top`" in health["reasons"]
    assert 'headway_pool_unable_workers{pool="mail"} 1' in (await client.get("/metrics")).text
    overviews = OverviewBuilder(engine=engine, clock=lambda: NOW_S)
    found = {key.rule: condition for key, condition in conditions_of(await overviews.of_pools()).items()}
    assert found["worker_unable"].summary == cause
    assert found["worker_unable"].severity == "ticket"
    assert "degraded" not in found, "a page beside the ticket"
    assert any("goes to the background" in cause and "remove --detach" in cause for cause in pool["causes"])
