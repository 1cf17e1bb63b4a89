"""`headway describe` and `headway top` against a real control plane's HTTP API."""

import json
import re
import time

import pytest

from headway.__main__ import main
from headway.cli.operator import top as top_module
from headway.cli.operator.top import refreshed
from headway.control.ingest.reported_jobs import source_of
from headway.errors import Unavailable
from headway.scaling.metrics.behaviour import Behaviour, Spread
from headway.scaling.metrics.prediction_error import PredictionError
from headway.scaling.model import DayBudget, Decision, Demand, QueueMetrics, SharedJobs, Step
from headway.scaling.profile import Profile
from headway.store.pools.behaviours import Learned
from support.seed import Seed

pytestmark = pytest.mark.usefixtures("served")


@pytest.fixture(autouse=True)
def mail(seed: Seed) -> None:
    """A pool of two queues, decided a moment ago, and the host that runs a worker of it."""
    now_s = time.time()
    seed.profile(Profile(pool="mail", queues=("redis/mail", "redis/news"), template="rq"))
    seed.profile(Profile(pool="idle", queues=("redis/idle",), template="rq"))
    seed.bucket(
        "redis/mail",
        at_s=now_s - 10,
        arrived_jobs=300,
        finished_jobs=4,
        waiting_jobs=7,
        oldest_age_s=12.0,
        pickups_s=[2.0],
    )
    seed.bucket("redis/mail", at_s=now_s - 7000)
    seed.sample("redis/news", at_s=now_s, waiting_jobs=3, oldest_age_s=1.0, in_flight_jobs=2)
    seed.host("a")
    seed.worker("a", "mail", 1)
    seed.worker("a", "mail", 2, is_busy=None)
    seed.decision(
        Decision(
            pool="mail",
            at_s=now_s,
            target_workers=5,
            binding="backlog_drain",
            demands=(Demand(name="backlog_drain", slots=5.0),),
            steps=(Step(name="wanted", workers=5),),
            metrics=(QueueMetrics(queue="redis/mail", sampled_at_s=now_s, waiting_jobs=7),),
            running_workers=2,
            starting_workers=1,
        )
    )


def lines(capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """What was printed, each line by its first word."""
    return {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}


def test_a_queue_has_its_depths_and_four_windows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "queue", "redis/mail"]) == 0
    found = lines(capsys)
    assert found["redis/mail"][1:4] == ["7", "12", "s"]
    assert found["60"] == ["60", "s", "5", "min", "15", "min", "60", "min"]
    assert found["arriving"] == ["arriving", "5.0/s", "1.0/s", "0.3/s", "0.1/s"]
    assert found["service"] == ["service", "p99", *["unknown"] * 4]
    assert found["measured"][:2] == ["measured", "until"]


def test_what_was_not_measured_and_what_runs_now_is_said_below_the_windows(
    seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    """An installation that began minutes ago, a worker that runs a job, and one of which nobody knows."""
    assert main(["describe", "pool", "mail"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "1 of 2 slots have a job now, and what 1 worker does is unknown" in output
    assert "nothing was measured before" not in output
    seed.execute("delete from queue_buckets where arrived_jobs = 0")
    seed.bucket("redis/mail", at_s=time.time() - 600)
    assert main(["describe", "pool", "mail"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "nothing was measured before 10 min ago, and rates are of the time since" in output


def test_who_reports_the_events_of_a_queue_and_who_stands_by_is_shown(
    seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.execute(
        "insert into event_sources (queue, source, arrivals_at, starts_at, ends_at) values "
        "('redis/mail', 'collect-redis-a', now(), now() - interval '1 hour', null), "
        "('redis/mail', '', null, now(), now())"
    )
    seed.execute(
        "insert into collectors (connection, producer, began_at) values "
        "('redis', 'collect-redis-a', now() - interval '1 hour'), ('redis', 'collect-redis-b', now())"
    )
    assert main(["get", "queues"]) == 0
    assert re.search(r"redis/mail .* collector \+ emitters", capsys.readouterr().out)
    assert main(["describe", "queue", "redis/mail"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "polled by collect-redis-a stands by collect-redis-b arrivals from collect-redis-a, " in output
    assert re.search(r"starts from emitters, [\d.]+ s ago; collect-redis-a, 60 min ago ends from emitters", output)
    seed.event_source("redis/news", source=source_of("agent-host-1-a"), arrivals_ago_s=180.0)
    assert main(["get", "queues"]) == 0
    assert re.search(r"redis/news .* agents", capsys.readouterr().out)
    assert main(["describe", "queue", "redis/news"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "arrivals from agents, 3 min ago" in output
    assert "ends from none in the last day" in output


def test_a_pool_has_its_promise_its_reasons_and_its_queues(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "pool", "mail"]) == 0
    output = capsys.readouterr().out
    assert "99 % within 10 s" in output
    assert "Pool mail should have 5 workers" in output
    assert "redis/news" in output
    assert "utilization" in output


def test_jobs_that_other_pools_run_and_queues_that_a_pool_helps_with_are_said(
    seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.profile(Profile(pool="bulk", queues=("redis/bulk",), template="rq", helps=("redis/mail",)))
    now_s, shared = time.time(), SharedJobs(queue="redis/mail", pool="bulk", jobs=2, most_jobs=2)
    seed.decision(Decision(pool="mail", at_s=now_s, target_workers=1, binding="workers_max", helped=(shared,)))
    assert main(["describe", "pool", "mail"]) == 0
    assert "2 more jobs of redis/mail run on workers of pool bulk." in " ".join(capsys.readouterr().out.split())
    assert main(["describe", "pool", "bulk"]) == 0
    assert re.search(r"helps with +redis/mail", capsys.readouterr().out)


def test_a_pool_with_patterns_says_what_each_has_matched_and_each_queue_by_what(
    seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.profile(Profile(pool="tenants", queues=("redis/first",), template="rq"))
    seed.execute(
        "update profiles set body = jsonb_set(body, '{queues}', '[\"redis/first\", \"redis/tenant-*\"]')"
        " where pool = 'tenants'"
    )
    seed.execute(
        "insert into profile_queues (queue, pool, rank, pattern)"
        " values ('redis/tenant-a', 'tenants', 1, 'redis/tenant-*')"
    )
    assert main(["describe", "pool", "tenants"]) == 0
    found = lines(capsys)
    assert found["patterns"] == ["patterns", "redis/tenant-*", "(1", "queue)"]
    assert found["redis/tenant-a"][-1] == "redis/tenant-*"
    assert found["redis/first"][-2:] == ["its", "name"]
    assert main(["describe", "pool", "mail"]) == 0
    assert "patterns" not in lines(capsys)


def test_what_of_the_days_budget_is_paid_is_said_with_its_overrun(
    seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    spent = DayBudget(day="2026-11-23", budget_worker_s=7200.0, paid_worker_s=9000.0, overrun_worker_s=1800.0)
    note = "the budget of 2026-11-23 is spent, overrun 0.50 worker-hours"
    seed.decision(
        Decision(pool="idle", at_s=time.time(), target_workers=0, binding="budget", day_budget=spent, notes=(note,))
    )
    assert main(["describe", "pool", "idle"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "2.50 of 2.00 worker-hours of 2026-11-23 paid; overrun 0.50" in output
    assert "T" + note[1:] in output
    assert main(["describe", "pool", "mail"]) == 0
    assert "worker-hours" not in capsys.readouterr().out


def learned(seed: Seed) -> None:
    seed.start_up("a", "rq", 1.5)
    seed.learned(
        "mail",
        Learned(
            body={},
            behaviour=Behaviour(sample_lag=Spread(p50_s=0.7, p95_s=1.9, count=50), dispatch_overhead_s=0.034),
            prediction=PredictionError(p50_s=0.4, p95_s=2.1, bias_s=-0.2, count=118),
        ),
    )


@pytest.mark.parametrize("words", [["describe", "pool", "mail"], ["explain", "mail"]])
def test_it_is_said_how_far_predictions_were_off(
    words: list[str], seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    assert "No prediction of the last hour could be compared with what came." in _in_one_line(capsys)
    learned(seed)
    assert main(words) == 0
    assert (
        "Predictions of the last hour: off by 0.4 s at the median, 2.1 s at p95, n=118; jobs waited 0.2 s more than "
        "predicted on average."
    ) in _in_one_line(capsys)


def _in_one_line(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_how_a_pool_behaves_is_listed_and_given_as_it_is(seed: Seed, capsys: pytest.CaptureFixture[str]) -> None:
    learned(seed)
    assert main(["get", "behaviour", "--pool", "mail"]) == 0
    output = _in_one_line(capsys)
    assert "start-up, from spawn to ready 1.5 s 1.5 s 1" in output
    assert "dispatch overhead a job 0.034 s" in output
    assert "exit of an idle worker unknown" in output
    assert main(["get", "behaviour", "--pool", "mail", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sample_lag"] == {"p50_s": 0.7, "p95_s": 1.9, "count": 50}
    assert main(["get", "behaviour"]) == 2
    assert "name the pool: --pool NAME" in capsys.readouterr().err


def test_a_pool_that_nobody_decided_yet_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "pool", "idle"]) == 0
    assert "No decision yet" in capsys.readouterr().out


def test_a_host_has_its_room_its_templates_and_its_workers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "host", "a"]) == 0
    output = capsys.readouterr().out
    assert "0.5 of 4" in output
    busy, unknown = (line for line in output.splitlines() if " mail " in line)
    assert "running" in busy
    assert "unknown" in unknown


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["queue", "redis/none"], "redis/none"),
        (["pool", "none"], "none"),
        (["host", "b"], "no host 'b'; there is a"),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    words: list[str], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", *words]) == 2
    assert output in capsys.readouterr().err


def test_the_answers_are_given_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "queue", "redis/mail", "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert [window["arrived_jobs"] for window in known["metrics"]["windows"]] == [300] * 4
    assert known["queue"]["pool"] == "mail"


def test_top_shows_every_pool_the_one_furthest_behind_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top"]) == 0
    summary, names, first, second, *wrong = capsys.readouterr().out.splitlines()
    assert summary.partition(": ")[2] == "2 pools, 2 workers, 10 jobs or more waiting"
    assert names.split()[:4] == ["pool", "state", "workers", "wanted"]
    # Two workers run, as the agent reports; the decision had seen another that started.
    assert first.split()[:9] == ["mail", "late", "2", "5", "10", "12", "s", "p99", "10"]
    assert "p99 2 s" in first
    assert "0 % of 4" in first
    assert first.endswith("starting all waiting jobs in time")
    assert second.split()[:7] == ["idle", "not", "seen", "yet", "0", "unknown", "unknown"]
    assert any("the oldest job of redis/mail had waited" in line for line in wrong)
    assert any("no control plane has led yet" in line for line in wrong)


def test_failures_and_what_runs_now_are_shown_everywhere(seed: Seed, capsys: pytest.CaptureFixture[str]) -> None:
    seed.bucket("redis/mail", at_s=time.time() - 5, failed_jobs=40)
    for words in (["top"], ["describe", "pool", "mail"], ["explain", "mail"], ["get", "queues"]):
        assert main(words) == 0
        output = " ".join(capsys.readouterr().out.split())
        if words[0] != "get":
            assert "40 of 44 jobs (90 %) failed in the last 5 min" in output, words
        if words[0] != "explain":
            assert "90 % of 44" in output, words
        if words[0] == "explain":
            assert re.search(r"Now, as agents reported \d+ s ago: 2 running; in its queues, ", output)
            assert "What is predicted is when jobs start, and not that they succeed." in output


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            "update workers set state = 'backing_off'",
            "counts on workers that stay, and its workers crash.",
        ),
        (
            "update hosts set lease_ends_at = now()",
            "counts on workers that can start, and no reachable host can run one.",
        ),
        ("select 1", None),
    ],
)
def test_what_a_forecast_counts_on_is_said_where_it_is_not_so(
    seed: Seed, capsys: pytest.CaptureFixture[str], change: str, says: str | None
) -> None:
    seed.execute(change)
    assert main(["explain", "mail"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert ("counts on" in output) == (says is not None)
    assert says is None or f"What is predicted {says}" in output


def test_explain_shows_the_queues_as_they_are_now_beside_a_decision_of_minutes_ago(
    seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    """16 jobs were taken after the last stored decision: what it saw is not what is."""
    now_s = time.time()
    seed.profile(Profile(pool="video", queues=("redis/video",), template="rq"))
    seen = QueueMetrics(queue="redis/video", sampled_at_s=now_s - 200, waiting_jobs=0, in_flight_jobs=2)
    seed.decision(
        Decision(pool="video", at_s=now_s - 200, target_workers=2, binding="idle", metrics=(seen,)), ago_s=200.0
    )
    assert main(["explain", "video"]) == 0
    assert "0 running; its queues were never read." in " ".join(capsys.readouterr().out.split())
    seed.sample("redis/video", at_s=now_s - 3, waiting_jobs=5, oldest_age_s=12.0, in_flight_jobs=16, reserved_jobs=12)
    assert main(["explain", "video"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert re.search(r'Decided [^;]+ ago; all before "Now" is as of then Pool video should have 2 workers', output)
    assert "In its queue no job waits and 2 jobs are running." in output
    assert re.search(
        r"Now, as agents reported \d+ s ago: 0 running; in its queues, read \d+ s ago, 5 jobs wait "
        r"\(the oldest for 12 s\), 4 jobs are running and 12 jobs are reserved and not begun\.",
        output,
    )


def test_explain_does_not_call_a_decision_of_this_moment_old(seed: Seed, capsys: pytest.CaptureFixture[str]) -> None:
    seed.profile(Profile(pool="video", queues=("redis/video",), template="rq"))
    seed.decision(Decision(pool="video", at_s=time.time() + 60.0, target_workers=2, binding="idle"))
    assert main(["explain", "video"]) == 0
    assert "as of then" not in capsys.readouterr().out


def test_utilization_above_the_whole_says_why(seed: Seed, capsys: pytest.CaptureFixture[str]) -> None:
    seed.bucket("redis/mail", at_s=time.time() - 5, finished_jobs=4, service_sum_s=400.0, service_sketch='{"7": 4}')
    assert main(["describe", "pool", "mail"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert re.search(r"utilization \d{3,}\.\d % \*", output)
    assert "* above 100 %: a job counts in the window in which it ends" in output


def test_while_nobody_answers_top_keeps_what_it_showed_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_api: object) -> str:
        raise Unavailable("the control plane does not answer")

    monkeypatch.setattr(top_module, "picture", away)
    shown: object = "the picture"
    for _ in range(3):  # however often: the line is said once, above the picture
        shown, problem = refreshed(None, shown)  # type: ignore[arg-type]
        assert (shown, str(problem)) == ("the picture", "as it was: the control plane does not answer")


def test_top_does_not_poll_too_often(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--every", "100ms"]) == 2
    assert "--every=100ms must be 0.5 s or more" in capsys.readouterr().err
