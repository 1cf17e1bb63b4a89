"""`headway report savings`: a recorded day, beside `headway simulate` of the same jobs and the record itself."""

import csv
import json
from pathlib import Path

import pytest

from headway.__main__ import main
from headway.cli.backtesting.history_source import Asked, past_of
from headway.scaling.measure import sketch_index
from headway.scaling.model import Mode, Objective
from headway.scaling.profile import Profile
from support.seed import Seed

DAY_S = 86_400
FROM_S = 1_760_054_400  # midnight
UNTIL_S = FROM_S + DAY_S
MAIL = Profile(
    pool="mail",
    queues=("redis/mail",),
    template="rq",
    workers_min=1,
    workers_max=9,
    mode=Mode.RECOMMEND,
    objective=Objective(target_s=10.0, percentile=95.0),
)
RANGE = ("--from", str(FROM_S), "--until", str(UNTIL_S))
QUICK = ("--tick", "5m", "--phases", "1")
LISTED = ((0, 6, 2), (6, 12, 8), (13, 24, 4))  # hours of the day and workers; nobody read the broker from 12 to 13


@pytest.fixture
def url(migrated_url: str, seed: Seed) -> str:
    """A day of minutes, in which every tenth job started late."""
    seed.profile(MAIL)
    took, waited = json.dumps({sketch_index(3.0): 10}), json.dumps({sketch_index(2.0): 9, sketch_index(40.0): 1})
    seed.execute_with(
        "insert into rollup_minutes (queue, bucket_s, arrived_jobs, started_jobs, service_sketch, pickup_sketch) "
        "select 'redis/mail', at_s, 10, 10, %s, %s from generate_series(%s::bigint, %s::bigint, 600) as at_s",
        took,
        waited,
        FROM_S,
        UNTIL_S - 60,
    )
    seed.execute(f"update rollup_progress set minutes_until_s = {UNTIL_S}")
    for from_h, until_h, workers in LISTED[:-1]:
        seed.execute_with(
            "insert into listed_workers (queue, from_s, until_s, workers) values ('redis/mail', %s, %s, %s)",
            FROM_S + from_h * 3600,
            FROM_S + until_h * 3600,
            workers,
        )
    from_h, until_h, workers = LISTED[-1]  # goes on
    seed.sample(
        "redis/mail",
        at_s=FROM_S + until_h * 3600,
        listed_workers=workers,
        listed_since_s=FROM_S + from_h * 3600,
    )
    return migrated_url


def reported(url: str, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict]:
    assert main(["report", "savings", "--database-url", url, *QUICK, *RANGE, "-o", "json", *words]) == 0
    return json.loads(capsys.readouterr().out)["pools"]


def test_jobs_of_a_queue_are_late_by_its_own_objective(url: str, seed: Seed) -> None:
    """Every tenth waited for 40 s: late by the pool's 10 s, and not by the queue's 60 s."""
    own = json.dumps({"redis/mail": {"target_s": 60.0, "percentile": 95.0, "window_s": 60.0}})
    seed.execute_with("update profiles set body = jsonb_set(body, '{member_objectives}', %s)", own)
    found = past_of(Asked(database_url=url, from_s=FROM_S, until_s=UNTIL_S)).attained["mail"]
    assert (found.jobs, found.late_jobs) == (1440, 0)


def test_one_side_is_the_rehearsal_and_the_other_the_record(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = reported(url, capsys, "--phases", "2")
    (load,) = past_of(Asked(database_url=url, from_s=FROM_S, until_s=UNTIL_S)).loads
    trace, figures = tmp_path / "mail.csv", tmp_path / "out.json"
    jobs = zip(load.jobs.at_s, load.jobs.service_s, strict=True)
    trace.write_text("t_arrival,service_s\n" + "".join(f"{at_s!r},{service_s!r}\n" for at_s, service_s in jobs))
    (tmp_path / "profiles.yaml").write_text(
        "pools: {mail: {queues: [redis/mail], template: rq, workers_min: 1, workers_max: 9, "
        "objective: {target_s: 10, percentile: 95}}}"
    )
    words = ["simulate", str(trace), "--profile", str(tmp_path / "profiles.yaml"), *QUICK, "--phases", "2"]
    assert main([*words, "--json", str(figures)]) == 0
    (simulated,) = json.loads(figures.read_text())["rehearsals"]
    for name in ("worker_hours", "attainment_percent", "jobs", "unserved_jobs"):
        assert found["headway"][name] == simulated[name], name
    length_h = (found["until_s"] - found["from_s"]) / 3600
    assert found["from_s"] == FROM_S
    assert found["until_s"] == FROM_S + simulated["ended_s"], "until the last job had ended"
    assert found["today"] == {
        "worker_hours": pytest.approx(6 * 2 + 6 * 8 + (length_h - 13) * 4, abs=1e-9),
        "known_hours": pytest.approx(length_h - 1),
        "unknown_hours": pytest.approx(1.0),
        "mean_workers": pytest.approx((6 * 2 + 6 * 8 + (length_h - 13) * 4) / (length_h - 1)),
        "jobs": 1440,
        "late_jobs": 144,
        "attainment_percent": pytest.approx(90.0),
    }
    means = found["headway"]["mean_workers"], found["today"]["mean_workers"]
    assert found["saved_percent"] == pytest.approx(100 * (1 - means[0] / means[1]))


def test_a_pool_that_was_never_listed_is_unknown_and_one_without_jobs_is_not_rehearsed(
    url: str, seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.execute("delete from queue_samples")
    seed.execute("delete from listed_workers")
    seed.profile(Profile(pool="idle", queues=("redis/idle",), template="rq"))
    idle, mail = reported(url, capsys)
    assert (mail["today"]["worker_hours"], mail["today"]["known_hours"]) == (None, 0.0)
    assert mail["saved_percent"] is None
    assert mail["headway"]["worker_hours"] > 0
    assert (idle["headway"], idle["today"]["attainment_percent"]) == (None, None)
    assert idle["today"]["unknown_hours"] == 24.0
    assert "no job of pool 'idle' arrived" in idle["why_not"]
    assert [each["pool"] for each in reported(url, capsys, "--pool", "mail")] == ["mail"]


def test_it_is_a_table_and_lines_of_csv(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", "savings", "--database-url", url, *QUICK, *RANGE]
    assert main(words) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["pool", "hours"]
    pool, _, unknown_hours, in_time, *_ = row.split()
    assert (pool, unknown_hours, in_time) == ("mail", "1.0", "90.00")
    assert main([*words, "-o", "csv"]) == 0
    (line,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert (line["pool"], line["today_late_jobs"], line["why_not"]) == ("mail", "144", "")


def test_a_time_without_anything_is_all_unknown(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", "savings", "--database-url", url, "--from", "2025-10-01", "--until", "2025-10-02"]
    assert main([*words, "-o", "csv"]) == 0
    (line,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert (line["today_worker_hours"], line["today_unknown_hours"], line["headway_worker_hours"]) == ("", "24.0", "")
    assert "nothing is to be rehearsed" in line["why_not"]


def test_without_a_profile_there_is_nothing_to_compare(migrated_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "savings", "--database-url", migrated_url]) == 0
    assert "no pools" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "2026-03-02", "--until", "2026-03-01"], "--from must be earlier than --until"),
        (["--from", "2026-03-02", "--until", "2026-03-02"], "--from must be earlier than --until"),
        (["-o", "xml"], "-o 'xml' is none of table, json, csv"),
        (["--phases", "0"], "--phases=0 must lie in 1..64"),
        (["--database-url", "mysql://here"], "must begin with postgresql://"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = [] if "--database-url" in words else ["--database-url", "postgresql://nowhere.invalid/x"]
    assert main(["report", "savings", *given, *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_folder_without_a_database_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "savings", "--data-dir", str(tmp_path)]) == 2
    assert "holds no embedded Postgres" in " ".join(capsys.readouterr().err.split())


def test_a_pool_that_is_not_there_is_named(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "savings", "--database-url", url, *RANGE, "--pool", "mails"]) == 2
    assert "mails is not there; there is mail" in " ".join(capsys.readouterr().err.split())
