"""The one word for a pool, what is wrong with it, and how old what is shown of it is."""

import re
import time
from dataclasses import replace
from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from control.http.mail_pool import mail, pool_of
from headway.cli.operator.pools_table import POOLS
from headway.control.ingest.ingest import Ingest
from headway.scaling.conditions.causes import state_of
from headway.scaling.conditions.pool_facts import NoHost, WorkerCounts
from headway.scaling.metrics.job_failures import Failures
from headway.scaling.model import BrokerPoll, Decision, Mode, QueueSample, Stoppage, Suspension, TelemetryBatch
from headway.scaling.profile import Profile
from support.known_pool import ALL_FAIL, MEASURED, known_pool
from support.seed import Seed


def stopped(since_s: float, until_s: float) -> Stoppage:
    return Stoppage(since_s=NOW_S + since_s, until_s=NOW_S + until_s)


@pytest.mark.parametrize(
    ("metrics", "values", "state"),
    [
        (MEASURED, {}, "on_time"),
        ({"sampled_at_s": None}, {}, "unseen"),
        # Its broker is polled and lists no such queue: how many wait is unknown, and neither idle nor on time.
        ({"sampled_at_s": None, "waiting_jobs": None}, {"is_broker_polled": True, "measured_age_s": None}, "unlisted"),
        ({**MEASURED, "sampled_at_s": NOW_S - 13}, {"is_broker_polled": True}, "stale"),
        ({**MEASURED, "sampled_at_s": NOW_S - 13}, {}, "stale"),
        ({**MEASURED, "sampled_at_s": NOW_S - 11}, {}, "on_time"),
        # Depths are fresh, and what the objective is about is not: nobody knows whether it is met.
        (MEASURED, {"measured_age_s": 13.0}, "stale"),
        (MEASURED, {"measured_age_s": 11.0}, "on_time"),
        ({}, {"measured_age_s": None}, "stale"),
        ({"waiting_jobs": 1, "oldest_age_s": 10.1}, {"counts": WorkerCounts(starting=1)}, "breaching"),
        # 9 s old 2 s ago: it has waited 11 s by now
        ({"sampled_at_s": NOW_S - 2, "waiting_jobs": 1, "oldest_age_s": 9.0}, {}, "breaching"),
        # What was late when it was last read stays late while nobody knows better; what was not did not become so.
        (
            {"sampled_at_s": NOW_S - 300, "waiting_jobs": 1, "oldest_age_s": 48.0},
            {"measured_age_s": 300.0},
            "breaching",
        ),
        ({"sampled_at_s": NOW_S - 300, "waiting_jobs": 1, "oldest_age_s": 4.0}, {"measured_age_s": 300.0}, "stale"),
        ({"pickup_objective_s": 12.0}, {"counts": WorkerCounts(starting=1)}, "recovering"),
        ({"waiting_jobs": 1, "oldest_age_s": 7.5}, {"counts": WorkerCounts(starting=1)}, "at_risk"),
        ({"waiting_jobs": 1, "oldest_age_s": 1.0}, {"counts": WorkerCounts(starting=1)}, "scaling"),
        ({"waiting_jobs": 1, "oldest_age_s": None}, {}, "unmeasured"),
        ({"start_rate_per_s": 1.0}, {}, "unmeasured"),
        # Its library keeps its workers from taking jobs: late, and nobody's failure. Afterwards its waits begin anew.
        ({"waiting_jobs": 9, "oldest_age_s": 500.0}, {"suspension": Suspension.LIBRARY}, "suspended"),
        ({"waiting_jobs": 9, "oldest_age_s": 500.0}, {"suspension": Suspension.NONE}, "breaching"),
        ({"waiting_jobs": 9, "oldest_age_s": 500.0}, {"suspension": None}, "breaching"),
        ({**MEASURED, "waiting_jobs": 9, "oldest_age_s": 500.0}, {"stoppage": stopped(-600.0, -5.0)}, "on_time"),
        ({"waiting_jobs": 9, "oldest_age_s": 500.0}, {"stoppage": stopped(-600.0, -8.0)}, "at_risk"),
        ({"waiting_jobs": 9, "oldest_age_s": 500.0}, {"stoppage": stopped(-600.0, -11.0)}, "breaching"),
        ({"in_flight_jobs": 0}, {}, "idle"),
        # Nobody waits for the jobs that run. Whether any runs may be unknown, and that is not idle.
        ({"in_flight_jobs": 2}, {}, "on_time"),
        ({}, {}, "on_time"),
        ({"has_unknown_rates": True}, {}, "unmeasured"),
        # How many wait is unknown, or at least five do: nobody knows that nothing waits.
        ({"waiting_jobs": None}, {}, "unmeasured"),
        ({"waiting_jobs": None, "waiting_min_jobs": 5}, {}, "unmeasured"),
        ({}, {"counts": WorkerCounts(), "target_workers": 0}, "idle"),
        (MEASURED, {"failures": (ALL_FAIL,)}, "failing"),
        # One queue of two, in which a fifth of all jobs are
        (MEASURED, {"failures": (ALL_FAIL, Failures(ended_jobs=400))}, "failing"),
        (MEASURED, {"failures": (Failures(ended_jobs=1, failed_jobs=1),)}, "on_time"),
        (MEASURED, {"is_crash_looping": True, "failures": (ALL_FAIL,)}, "crash_loop"),
        (MEASURED, {"no_host": NoHost.NONE_REACHABLE}, "no_host"),
    ],
)
def test_a_pools_state_is_the_worst_thing_that_is_true_of_it(
    metrics: dict[str, Any], values: dict[str, Any], state: str
) -> None:
    assert state_of(known_pool(metrics, **values)) == state


def without_age(aged: str) -> str:
    """A sentence with N in the place of the seconds, which Postgres's clock counts."""
    return re.sub(r"\d+ s ago", "N s ago", aged)


async def test_a_pool_is_on_time_where_everything_is_known(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    seed.pipeline()
    pool = await pool_of(client)
    assert (pool["state"], pool["causes"]) == ("on_time", [])
    assert pool["metrics"]["pickup_objective_s"] == pytest.approx(0.5, rel=0.02)
    assert (await client.get("/v1/pools?pool=other")).json()["pools"] == []


async def test_what_a_stopped_pipeline_measured_is_of_its_time_and_no_zero(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    """Depths go on coming past it, and so do decisions and reports: nothing else would show."""
    mail(seed, at_s=NOW_S - 65)
    seed.pipeline(age_s=1.0)
    seed.execute("update pipeline_health set beat_at = now() - interval '48 s', written_at = now() - interval '48 s'")
    pool = await pool_of(client)
    assert pool["state"] == "stale"
    assert pool["measured_age_s"] == 65.0, "of the bucket that it was in, perhaps it saw only the beginning"
    assert pool["causes"] == ["pickup times and rates have not been measured since 65 s ago"]
    assert pool["metrics"]["arrival_rate_per_s"] > 0, "20 jobs arrived in the minute before it stopped"
    assert any("not responding: no heartbeat for " in reason for reason in pool["health"]["reasons"])


async def test_a_quiet_pipeline_that_answers_is_at_the_present(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed, at_s=NOW_S - 205)
    seed.pipeline(age_s=3.0)
    seed.execute("delete from queue_samples")  # nothing has come for the pipeline since it last wrote
    seed.execute("update pipeline_health set beat_at = now()")
    pool = await pool_of(client)
    assert pool["measured_age_s"] == 0.0
    assert pool["metrics"]["arrival_rate_per_s"] == 0.0


async def test_what_runs_is_what_agents_report_with_its_age(client: httpx.AsyncClient, seed: Seed) -> None:
    """The last decision saw ten workers, of which all but one have left."""
    mail(seed)
    seed.decision(Decision(pool="mail", at_s=NOW_S, target_workers=10, binding="steady_state", running_workers=10))
    seed.execute(f"update hosts set reported_at = to_timestamp({NOW_S - 9})")
    pool = await pool_of(client)
    assert (pool["running_workers"], pool["reported_age_s"]) == (1, 9.0)
    history = (await client.get("/v1/pools/mail/history")).json()
    assert history["targets"][-1] == {
        "at_s": NOW_S,
        "target_workers": 10,
        "running_workers": 1,
        "starting_workers": 0,
    }


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ("delete from hosts", "no host has enrolled"),
        (
            "update hosts set lease_ends_at = now() - interval '1 minute', reported_at = now() - interval '100 s'",
            "no reachable host has template 'rq'; unreachable: a (last report N s ago)",
        ),
        (
            "update hosts set templates = '[]'",
            "no reachable host has template 'rq': no host.toml names it",
        ),
        ("update hosts set state = 'cordoned'", "every host with template 'rq' is cordoned or draining"),
    ],
)
async def test_jobs_that_wait_where_no_host_can_run_them_have_a_cause(
    client: httpx.AsyncClient, seed: Seed, change: str, cause: str
) -> None:
    mail(seed)
    seed.pipeline()
    seed.ended("a", "mail")
    seed.execute(change)
    seed.execute("update pool_states set target_workers = 0")
    seed.sample("redis/mail", at_s=NOW_S - 1, waiting_jobs=42, oldest_age_s=2.0)
    pool = await pool_of(client)
    assert (pool["state"], [without_age(each) for each in pool["causes"]]) == ("no_host", [cause])
    health = (await client.get("/v1/health")).json()
    assert health["status"] == "degraded"
    assert "1 pool has no reachable host to run on: see `headway top`" in health["reasons"]


async def test_a_pool_that_nobody_needs_needs_no_host(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    seed.pipeline()
    seed.execute("delete from hosts")
    seed.execute("update pool_states set target_workers = 0")
    assert (await pool_of(client))["causes"] == []


async def test_jobs_that_all_fail_are_an_incident_everywhere(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed, finished_jobs=0, failed_jobs=40)
    seed.pipeline()
    pool = await pool_of(client)
    assert pool["state"] == "failing"
    assert pool["causes"] == ["40 of 40 jobs (100 %) failed in the last 5 min"]
    assert pool["failures"] == {
        "window_s": 300.0,
        "ended_jobs": 40,
        "failed_jobs": 40,
        "retried_jobs": 0,
        "share": 1.0,
        "is_failing": True,
    }
    (queue,) = (await client.get("/v1/queues")).json()["queues"]
    assert queue["failures"] == pool["failures"]
    assert "1 pool has too many failing jobs: see `headway top`" in (await client.get("/v1/health")).json()["reasons"]
    metrics = (await client.get("/metrics")).text
    assert 'headway_pool_failure_share{pool="mail"} 1.0' in metrics
    assert 'headway_pool_state{pool="mail",state="failing"} 1.0' in metrics
    assert "headway_healthy 0.0" in metrics


@pytest.mark.parametrize("suspension", [Suspension.LIBRARY, Suspension.CONSUMERS_CANCELLED, Suspension.NO_CONSUMERS])
async def test_a_suspended_pool_is_named_everywhere_and_is_nobodys_crash_loop(
    client: httpx.AsyncClient, seed: Seed, suspension: Suspension
) -> None:
    mail(seed)
    seed.pipeline()
    seed.execute("update hosts set failing = jsonb_build_object('rq', extract(epoch from now()))")
    seed.execute("update queue_samples set suspension = 'library'")
    seed.decision(Decision(pool="mail", at_s=NOW_S, target_workers=9, binding="suspended", suspension=suspension))
    pool = await pool_of(client)
    assert (pool["state"], pool["suspension"], pool["unstarted_workers"]) == ("suspended", suspension, 0)
    assert pool["causes"] == [suspension.text]
    (queue,) = (await client.get("/v1/queues")).json()["queues"]
    assert queue["suspension"] == "library"
    health = (await client.get("/v1/health")).json()
    assert "suspended" in health["kinds"]
    assert "crash_loop" not in health["kinds"]
    assert 'headway_pool_state{pool="mail",state="suspended"} 1.0' in (await client.get("/metrics")).text


async def test_attempts_that_are_tried_again_are_no_failures(client: httpx.AsyncClient, seed: Seed) -> None:
    """Of 376 jobs 7 failed, and 64 attempts of others were followed by another one."""
    mail(seed, finished_jobs=369, failed_jobs=7, retried_attempts=64)
    seed.pipeline()
    pool = await pool_of(client)
    assert (pool["state"], pool["causes"]) == ("on_time", [])
    failures = pool["failures"]
    assert (failures["ended_jobs"], failures["failed_jobs"], failures["retried_jobs"]) == (376, 7, 64)
    assert POOLS.columns["failed"](pool) == "1 % of 376, 64 retried"
    assert (await client.get("/v1/health")).json()["reasons"] == []
    metrics = (await client.get("/metrics")).text
    assert 'headway_pool_failed_jobs{pool="mail"} 7.0' in metrics
    assert 'headway_pool_retried_jobs{pool="mail"} 64.0' in metrics
    window = (await client.get("/v1/pools/mail/metrics")).json()["windows"][1]
    assert (window["failed_jobs"], window["retried_attempts"]) == (7, 64)
    assert window["failure_share"] == pytest.approx(7 / 376)
    series = (await client.get(f"/v1/pools/mail/series?from_s={NOW_S - 60}&until_s={NOW_S}")).json()["columns"]
    assert (sum(map(int, filter(None, series["failed"]))), sum(map(int, filter(None, series["retried"])))) == (7, 64)


async def test_failures_of_jobs_whose_ends_nobody_reports_are_unknown(client: httpx.AsyncClient, seed: Seed) -> None:
    """Starts are reported, and ends are not: that none ended is nothing that anybody knows."""
    mail(seed, finished_jobs=0)
    seed.pipeline()
    about = {"reports_arrivals": True, "reports_starts": True, "reports_ends": False}
    seed.sample("redis/mail", at_s=NOW_S - 1, waiting_jobs=0, oldest_age_s=0.0, **about)
    pool = await pool_of(client)
    assert pool["failures"] is None
    assert POOLS.columns["failed"](pool) == "unknown"
    (queue,) = (await client.get("/v1/queues")).json()["queues"]
    assert queue["failures"] is None
    assert "headway_pool_failed_jobs{" not in (await client.get("/metrics")).text
    seed.sample("redis/mail", at_s=NOW_S - 1, waiting_jobs=0, oldest_age_s=0.0, **{**about, "reports_ends": True})
    assert POOLS.columns["failed"](await pool_of(client)) == "none ended"


async def test_workers_that_only_end_too_early_outrank_on_time(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    seed.pipeline()
    seed.execute("update hosts set failing = jsonb_build_object('rq', extract(epoch from now()))")
    pool = await pool_of(client)
    assert pool["state"] == "crash_loop"
    assert pool["causes"] == ["workers of template 'rq' crash on a: see the agent's log"]


async def test_a_host_that_does_not_report_is_in_health_without_its_name(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    seed.pipeline()
    seed.host("lost", lease_s=-5.0, reported_ago_s=50.0)
    health = (await client.get("/v1/health")).json()
    aged = [without_age(reason) for reason in health["reasons"]]
    assert aged == ["1 host is unreachable, the last report N s ago: see `headway get hosts`"]


async def test_a_host_that_is_late_with_its_report_is_reported_before_its_lease_ends(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    mail(seed)
    seed.pipeline()
    seed.host("late", reported_ago_s=30.0)
    seed.worker("late", "mail", 2)
    health = (await client.get("/v1/health")).json()
    assert health["kinds"] == ["host"]
    assert without_age(health["reasons"][0]) == (
        "1 host is overdue with a report, the last one N s ago: see `headway get hosts`"
    )
    (cause,) = (await pool_of(client))["causes"]
    assert without_age(cause) == "its workers have not been reported in time by late (last report N s ago)"


async def test_a_host_that_has_lost_its_connection_is_shown_before_its_next_report_is_due(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    mail(seed)
    seed.pipeline()
    seed.host("cut", reported_ago_s=9.0)
    seed.worker("cut", "mail", 2)
    seed.host("back", reported_ago_s=9.0)  # and has reported since
    seed.execute("update hosts set hung_up_at = now() - interval '20 s' where name = 'back'")
    seed.execute("update hosts set hung_up_at = now() - interval '4 s' where name = 'cut'")
    health = (await client.get("/v1/health")).json()
    assert health["kinds"] == ["host"]
    assert without_age(health["reasons"][0]) == (
        "1 host has lost the connection, N s ago, and not reported since: see `headway get hosts`"
    )
    (cause,) = (await pool_of(client))["causes"]
    assert without_age(cause) == "hosts of its workers have lost the connection: cut (last report N s ago)"
    hung_up_s = {host["name"]: host["hung_up_s"] for host in (await client.get("/v1/hosts")).json()["hosts"]}
    assert 4.0 <= hung_up_s["cut"] < 60.0
    assert hung_up_s["back"] is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("state_folder", "cannot write to its state folder (No space left on device), so no worker is started there"),
        ("log_folder", "cannot write to its log folder (No space left on device), so what workers print there is lost"),
    ],
)
async def test_a_host_whose_disk_is_full_is_shown_with_what_follows(
    client: httpx.AsyncClient, seed: Seed, kind: str, words: str
) -> None:
    mail(seed)
    seed.pipeline()
    seed.host("full")
    seed.worker("full", "mail", 2)
    seed.host("well")
    seed.execute(f"update hosts set problems = '{{\"{kind}\": 28, \"of_a_later_version\": 1}}' where name = 'full'")
    health = (await client.get("/v1/health")).json()
    assert health["kinds"] == ["host_disk"]
    assert health["reasons"] == [f"the agent of 1 host {words}: see `headway get hosts`"]
    assert (await pool_of(client))["causes"] == [f"the agent of full {words}"]
    problems = {host["name"]: host["problems"] for host in (await client.get("/v1/hosts")).json()["hosts"]}
    assert problems["full"] == [f"its agent {words}"]
    assert problems["well"] == []
    can_write = {host["name"]: host["can_write"] for host in (await client.get("/v1/hosts")).json()["hosts"]}
    assert (can_write["full"], can_write["well"]) == (False, True)
    words_of = {host["name"]: host["status"]["word"] for host in (await client.get("/v1/hosts")).json()["hosts"]}
    assert (words_of["full"], words_of["well"]) == ("cannot write", "reporting")
    assert 'headway_health_reason{reason="host_disk"} 1' in (await client.get("/metrics")).text


async def test_a_host_file_with_mistakes_is_shown_and_closes_no_host(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    seed.pipeline()
    seed.execute("update hosts set problems = '{\"host_file\": 0}' where name = 'a'")
    words = "goes by the host file from before: the changed one has mistakes, which the agent's log names"
    pool = await pool_of(client)
    assert (pool["state"], pool["causes"]) == ("on_time", [f"the agent of a {words}"])
    assert pool["health"]["kinds"] == ["host_file"]
    assert pool["health"]["reasons"] == [f"the agent of 1 host {words}: see `headway get hosts`"]
    (host,) = (await client.get("/v1/hosts")).json()["hosts"]
    assert (host["problems"], host["can_write"]) == ([f"its agent {words}"], True)


async def test_a_pool_whose_hosts_all_have_a_full_disk_has_none(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    seed.pipeline()
    for name in ("one", "two"):
        seed.host(name)
    seed.worker("one", "mail", 2)
    seed.execute("update hosts set problems = '{\"state_folder\": 30}'")  # and that of the seed's own host
    pool = await pool_of(client)
    assert pool["state"] == "no_host"
    assert pool["causes"][0] == "no host with template 'rq' can write to its state or log folder"
    assert pool["health"]["kinds"] == ["no_host", "host_disk"]


async def test_a_host_that_does_not_report_and_whose_certificate_has_expired_is_shown_with_that(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    mail(seed)
    seed.pipeline()
    seed.host("old", reported_ago_s=30.0)
    seed.worker("old", "mail", 2)
    seed.host("good", reported_ago_s=3.0)  # its connection is older than the end of its certificate
    seed.execute("update hosts set certificate_ends_at = now() - interval '40 s'")
    health = (await client.get("/v1/health")).json()
    assert health["kinds"] == ["host", "certificate"]
    assert without_age(health["reasons"][1]) == (
        "the certificate of a host that does not report expired N s ago: `headway keys client NAME` makes another; "
        "see `headway get hosts`"
    )
    (cause,) = (await pool_of(client))["causes"]
    assert without_age(cause) == (
        "its workers have not been reported in time by old (last report N s ago; its certificate expired N s ago)"
    )


async def test_a_pool_that_hosts_have_no_room_for_is_not_green(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    seed.pipeline()
    seed.decision(Decision(pool="mail", at_s=NOW_S, target_workers=1, binding="capacity", running_workers=1))
    pool = await pool_of(client)
    assert (pool["state"], pool["causes"]) == ("at_risk", ["the hosts have capacity for only 1 of its workers"])
    assert pool["health"]["kinds"] == ["capacity"]


@pytest.mark.parametrize(
    ("mode", "words"), [(Mode.ACT, ""), (Mode.PAUSE_UP, "paused upwards"), (Mode.RECOMMEND, "advice only")]
)
async def test_a_pool_says_its_mode_in_words(client: httpx.AsyncClient, seed: Seed, mode: Mode, words: str) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq", mode=mode))
    pool = await pool_of(client)
    assert (pool["mode"], pool["mode_words"]) == (mode, words)


@pytest.mark.parametrize(
    ("change", "unstarted"),
    [
        ({}, 2),
        ({"ago_s": 1.0}, 0),  # asked for a moment ago
        ({"ago_s": 1.0, "previous_workers": 3}, 2),  # and said again a moment ago
        ({"state": "starting"}, 0),  # starts take turns
        ({"state": "draining"}, 0),
        ({"state": "backing_off"}, 2),
        ({"mode": Mode.RECOMMEND}, 0),
        ({"binding": "capacity"}, 0),
    ],
)
async def test_workers_that_no_host_gets_to_start_are_reported(
    api, seed: Seed, change: dict[str, Any], unstarted: int
) -> None:
    """An agent that hangs keeps its lease for 45 s, and the pool was `scaling` and well all that time."""
    now_s = time.time()  # decisions are dated by Postgres
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq", mode=change.get("mode", Mode.ACT)))
    seed.bucket("redis/mail", at_s=now_s - 7, pickups_s=[0.5] * 20)
    seed.sample("redis/mail", at_s=now_s - 1, waiting_jobs=0, oldest_age_s=0.0)
    seed.leader()
    seed.pipeline()
    seed.host("a")
    seed.worker("a", "mail", 1)
    if "state" in change:
        seed.worker("a", "mail", 2, state=change["state"])
    decision = Decision(pool="mail", at_s=now_s, target_workers=3, binding=change.get("binding", "standing"))
    seed.decision(decision, previous_workers=change.get("previous_workers", 1), ago_s=change.get("ago_s", 9.0))
    transport = httpx.ASGITransport(api(clock=time.time))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        pool = await pool_of(client)
    assert pool["unstarted_workers"] == unstarted
    assert ("unstarted" in pool["health"]["kinds"]) == (unstarted > 0)
    if unstarted:
        assert pool["state"] == "at_risk"
        why = "1 ended too early" if "state" in change else "no host has started them yet"
        assert pool["causes"] == [
            f"2 workers that were asked for a while ago do not run, and {why}: see the agent's log"
        ]


async def test_a_queue_that_nobody_reads_names_its_broker(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed, at_s=NOW_S - 27)
    seed.pipeline()
    seed.sample("redis/mail", at_s=NOW_S - 20)
    (cause, *_) = (await pool_of(client))["causes"]
    assert cause == "its queues were last read 20 s ago: see whether `headway collect` runs and reaches broker 'redis'"


async def test_a_queue_that_was_never_seen_has_a_cause(client: httpx.AsyncClient, seed: Seed) -> None:
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    pool = await pool_of(client)
    assert (pool["state"], pool["causes"][0]) == (
        "unseen",
        "no collector or producer has reported all its queues: redis/mail",
    )


async def test_a_queue_that_its_polled_broker_does_not_list_is_a_note(client: httpx.AsyncClient, seed: Seed) -> None:
    """A Redis has no key for an empty list: before its first job, a queue of a new application is not there."""
    seed.leader()
    seed.pipeline()
    seed.profile(Profile(pool="mail", queues=("redis/mail", "second/mail"), template="rq"))
    sight = "insert into collectors (connection, producer) values (%s, 'collect-a')"
    seed.execute_with(sight, "redis")
    assert (await pool_of(client))["state"] == "unseen", "nobody polls the second broker"
    seed.execute_with(sight, "second")
    pool = await pool_of(client)
    assert (pool["state"], pool["kinds"]) == ("unlisted", ["unlisted"])
    found = "its collector has never found redis/mail, second/mail in the broker"
    assert pool["causes"] == [f"{found}; a queue that is right is seen with its first job"]
    assert (pool["metrics"]["waiting_jobs"], pool["metrics"]["sampled_at_s"], pool["target_workers"]) == (None,) * 3
    assert (await client.get("/v1/health")).json()["status"] == "ok"
    text = (await client.get("/metrics")).text
    assert re.search(r'headway_pool_state\{[^}]*state="unlisted"\} 1', text)
    seed.execute("update collectors set seen_at = now() - interval '9 s' where connection = 'second'")
    pool = await pool_of(client)
    assert (pool["state"], pool["kinds"]) == ("unseen", ["unseen"])


async def test_a_new_application_is_a_note_until_its_first_job(
    client: httpx.AsyncClient, seed: Seed, ingest: Ingest
) -> None:
    seed.leader()
    seed.pipeline()
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    poll = BrokerPoll(connection="redis", at_s=NOW_S, until_s=NOW_S, finds_all=True)
    sent = TelemetryBatch(producer="collect-redis-a", sequence=1, sent_at_s=NOW_S, polls=(poll,))
    assert (await pool_of(client))["state"] == "unseen"
    await ingest.accept(sent)
    assert (await pool_of(client))["state"] == "unlisted"
    sample = QueueSample(queue="redis/mail", at_s=NOW_S, waiting_jobs=1, oldest_age_s=0.0)
    await ingest.accept(replace(sent, sequence=2, samples=(sample,)))
    pool = await pool_of(client)
    assert "unlisted" not in pool["kinds"]
    assert pool["metrics"]["waiting_jobs"] == 1


async def test_one_of_several_brokers_that_is_not_read_is_in_health(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed)
    seed.pipeline()
    seed.profile(Profile(pool="other", queues=("second/other",), template="rq"))
    seed.sample("second/other", at_s=NOW_S - 1)
    assert (await pool_of(client))["health"]["status"] == "ok"
    seed.execute("update queue_samples set received_at = now() - interval '30 s' where queue = 'redis/mail'")
    health = (await pool_of(client))["health"]
    assert health["kinds"] == ["broker"]
    assert health["reasons"][0].startswith("1 of 2 brokers has not been read for 3")


async def test_the_chart_ends_where_the_table_is(client: httpx.AsyncClient, seed: Seed) -> None:
    """Both are the objective's own percentile over its own window, and not that of a span of 5 s."""
    mail(seed, at_s=NOW_S - 15, pickups_s=[9.0] * 50)
    seed.bucket("redis/mail", at_s=NOW_S - 10, pickups_s=[4.0] * 50)
    seed.bucket("redis/mail", at_s=NOW_S - 5, pickups_s=[1.0])
    seed.pipeline()
    history = (await client.get("/v1/pools/mail/history?minutes=1")).json()
    assert history["buckets"][-1]["pickup_p95_s"] == pytest.approx(1.0, rel=0.02)
    assert history["buckets"][-1]["pickup_objective_s"] == (await pool_of(client))["metrics"]["pickup_objective_s"]
    assert history["buckets"][-1]["pickup_objective_s"] == pytest.approx(9.0, rel=0.02)
    assert history["buckets"][-1]["pickup_p50_s"] == (await pool_of(client))["metrics"]["pickup_p50_s"]
    assert history["buckets"][-1]["pickup_p50_s"] == pytest.approx(4.0, rel=0.02)


async def test_a_chart_begins_with_what_its_windows_reach_before_it(client: httpx.AsyncClient, seed: Seed) -> None:
    mail(seed, at_s=NOW_S - 100, pickups_s=[9.0] * 50)
    seed.bucket("redis/mail", at_s=NOW_S - 50, pickups_s=[1.0])
    (point,) = (await client.get("/v1/pools/mail/history?minutes=1")).json()["buckets"]
    assert point["pickup_objective_s"] == pytest.approx(9.0, rel=0.02)


@pytest.mark.parametrize(
    ("held", "is_known", "state"),
    [
        ({"in_flight_jobs": 2}, True, "on_time"),
        ({"in_flight_min_jobs": 2, "oldest_age_s": None}, False, "unmeasured"),  # these may all wait
        ({"in_flight_min_jobs": 2, "reserved_jobs": 0}, True, "on_time"),
    ],
)
def test_a_pool_whose_workers_hold_jobs_that_may_not_have_begun_is_not_known_to_be_on_time(
    held: dict[str, Any], is_known: bool, state: str
) -> None:
    seen = known_pool({"start_rate_per_s": 0.0, **held})
    assert (seen.is_wait_known, state_of(seen)) == (is_known, state)


async def test_what_may_wait_in_the_hands_of_workers_shows_in_queues_and_pools(
    client: httpx.AsyncClient, seed: Seed
) -> None:
    mail(seed, waiting_jobs=0)
    seed.sample("redis/mail", at_s=NOW_S - 1, in_flight_min_jobs=2)
    shown = await pool_of(client)
    (queue,) = (await client.get("/v1/queues")).json()["queues"]
    for row in (shown, queue):
        assert (row["is_wait_known"], row["metrics"]["oldest_age_s"]) == (False, None)
    assert POOLS.columns["waiting"](shown) == "0 +unknown reserved"
