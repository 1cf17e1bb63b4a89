"""Many pools under many candidates on Spark's executors: `headway simulate`'s own answers, and nobody's failure."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headway.cli.backtesting.spark_runs import rows_of
from headway.errors import Invalid
from headway.scaling.metrics.behaviour import Behaviour, Spread
from headway.scaling.model import EventKind, JobEvent, QueueSample
from headway.scaling.profile import Profile
from headway.simulate.studies.candidates import AS_IT_IS, Candidate, grid
from headway.simulate.studies.phases import middle, phased
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.jobs import Jobs
from headway_spark.studies.backtest import Outcome, Size, Work, backtest, filled, part_of, sizes_of, turns_of
from headway_spark.studies.history import Load, fresh, given_loads, held_events, jobs_of, loads_of
from spark.events import publish, table
from support.installed import INSTALLED

pytestmark = pytest.mark.timeout(600)

START_S = 1_760_000_000.25
SETTING = Setting(start_up_s=3.0, start_up_spread=0.4)
CANDIDATES = (AS_IT_IS, *grid({"risk": [0.5, 2.0], "strategy": ["hybrid", "backlog_only"]}))


def profile(pool: str) -> Profile:
    return Profile(pool=pool, queues=(f"redis/{pool}",), template="rq", workers_max=50)


def work(*pools: str, **changes: object) -> Work:
    given = {
        "profiles": {pool: profile(pool) for pool in pools},
        "candidates": CANDIDATES,
        "setting": SETTING,
        "strategies": dict(INSTALLED),
    }
    return Work(**{**given, **changes})  # type: ignore[arg-type]


def jobs(seed: int = 0, count: int = 200) -> Jobs:
    """Bursts and gaps, with times that no binary fraction hits."""
    at_s = [START_S % 1 + (number // 20) * 37.3 + (number % 20) * 0.1 * (seed + 1) for number in range(count)]
    return Jobs(at_s=sorted(at_s), service_s=[0.3 + (number * 7 + seed) % 13 * 0.37 for number in range(count)])


def events(queue: str, given: Jobs, *, ends: bool = True) -> list[JobEvent]:
    """What a log holds of jobs that ran one after the other as they came, each for its service time."""
    found = []
    base_s = START_S - START_S % 1
    for number, (at_s, service_s) in enumerate(zip(given.at_s, given.service_s, strict=True)):
        came_s, job_id = base_s + at_s, str(number)
        found.append(JobEvent(queue=queue, job_id=job_id, kind=EventKind.ENQUEUED, at_s=came_s))
        found.append(
            JobEvent(queue=queue, job_id=job_id, kind=EventKind.STARTED, at_s=came_s + 1, enqueued_at_s=came_s)
        )
        if ends:
            end_s = came_s + 1 + service_s
            found.append(
                JobEvent(queue=queue, job_id=job_id, kind=EventKind.FINISHED, at_s=end_s, started_at_s=came_s + 1)
            )
    return found


def outcomes(loads: object, given: Work) -> dict[tuple[str, str], Outcome]:
    found: list[Outcome] = []
    sizes = sizes_of(loads)  # type: ignore[arg-type]
    backtest(loads, given, sizes, on_done=found.extend)  # type: ignore[arg-type]
    assert len({(each.pool, each.candidate, each.phase) for each in found}) == len(found), "told twice"
    return {(each.pool, each.candidate): each for each in found if each.phase == given.phases - 1}


def test_every_figure_is_that_of_the_rehearsal_on_this_machine(spark: SparkSession, tmp_path: Path) -> None:
    pools = {"mail": jobs(0), "images": jobs(1)}
    loads = given_loads(
        spark, [Load(pool=pool, jobs=each, begins_at_s=START_S // 1) for pool, each in pools.items()], folder=tmp_path
    )
    found = outcomes(loads, work(*pools, drawn=frozenset({"mail"})))
    assert len(found) == len(pools) * len(CANDIDATES)
    for pool, each in pools.items():
        for candidate in CANDIDATES:
            expected = rehearse(
                each, candidate.of(profile(pool)), SETTING, begins_at_s=START_S // 1, strategies=INSTALLED
            )
            result = found[pool, candidate.name].result
            assert result is not None
            shown = expected if pool == "mail" else replace(expected, points=())
            assert asdict(result) == asdict(shown)


def test_the_event_log_gives_the_jobs_that_ran(spark: SparkSession, tmp_path: Path) -> None:
    given = jobs()
    sample = QueueSample(queue="redis/mail", at_s=START_S, waiting_jobs=3)
    other = events("redis/other", jobs(1, 20))
    publish(tmp_path, "1.parquet", table([*events("redis/mail", given)[::2], sample, *other]))
    publish(tmp_path, "2.parquet", table(events("redis/mail", given)[1::2]))
    with held_events(spark, tmp_path) as found:
        rows = loads_of(jobs_of(found), pools={"redis/mail": "mail"}).collect()
    assert [(row.pool, row.begins_at_s) for row in rows] == [("mail", START_S // 1)]
    assert rows[0].at_s == pytest.approx(list(given.at_s), abs=1e-6)
    assert rows[0].service_s == pytest.approx(list(given.service_s), abs=1e-6)


def test_only_what_was_enqueued_in_the_time_asked_for_is_played(spark: SparkSession, tmp_path: Path) -> None:
    given = jobs()
    written_ms = int((START_S + 400) * 1000)  # what its name says decides whether a file is looked at
    publish(tmp_path, f"{written_ms}-1.parquet", table(events("redis/mail", given)))
    from_s, until_s = START_S + 37.0, START_S + 100.0
    with held_events(spark, tmp_path, from_s=from_s, until_s=until_s) as log:
        found = jobs_of(log, from_s=from_s, until_s=until_s).collect()
    base_s = START_S - START_S % 1
    assert sorted(row.at_s for row in found) == [at for each in given.at_s if from_s <= (at := base_s + each) < until_s]
    assert all(row.service_s is not None for row in found)  # also of a job that ended after the time


def test_a_job_that_comes_back_for_another_attempt_is_known_for_a_retry(spark: SparkSession, tmp_path: Path) -> None:
    """Played again it is work of its own; of what came afresh it is no more than its first attempt."""

    def of(job_id: str, kind: EventKind, at_s: float, **known: Any) -> JobEvent:
        return JobEvent(queue="redis/mail", job_id=job_id, kind=kind, at_s=START_S + at_s, **known)

    reported = [
        of("a", EventKind.ENQUEUED, 0),
        of("a", EventKind.FAILED, 3, started_at_s=START_S + 1),
        of("b", EventKind.ENQUEUED, 20, attempt=1),
        of("b", EventKind.FINISHED, 21, started_at_s=START_S + 20),
        of("a", EventKind.ENQUEUED, 60, attempt=2),
        of("a", EventKind.FINISHED, 65, started_at_s=START_S + 61),
    ]
    publish(tmp_path, "1.parquet", table(reported))
    with held_events(spark, tmp_path) as log:
        played = jobs_of(log).orderBy("at_s").collect()
        came_afresh = jobs_of(fresh(log)).orderBy("at_s").collect()
        (load,) = loads_of(jobs_of(log), pools=None).collect()
    assert [(row.at_s - START_S, row.service_s, row.is_retry) for row in played] == [
        (0, 2, False),
        (20, 1, False),
        (60, 4, True),
    ]
    assert [(row.at_s - START_S, row.service_s) for row in came_afresh] == [(0, 6), (20, 1)]
    assert load.retries == [False, False, True]


def test_a_job_that_comes_again_under_its_id_is_another_job(spark: SparkSession, tmp_path: Path) -> None:
    """Cron jobs keep their ids; and a try that failed adds to the time that its job takes."""

    def of(kind: EventKind, at_s: float, **known: float) -> JobEvent:
        return JobEvent(queue="redis/mail", job_id="nightly", kind=kind, at_s=START_S + at_s, **known)  # type: ignore[arg-type]

    day = [
        of(EventKind.ENQUEUED, 0),
        of(EventKind.STARTED, 1, enqueued_at_s=START_S),
        of(EventKind.FAILED, 3, started_at_s=START_S + 1),
        of(EventKind.STARTED, 4, enqueued_at_s=START_S),
        of(EventKind.FINISHED, 9, started_at_s=START_S + 4),
        of(EventKind.ENQUEUED, 100),
        of(EventKind.FINISHED, 104, started_at_s=START_S + 101),
    ]
    publish(tmp_path, "1.parquet", table(day))
    with held_events(spark, tmp_path) as log:
        found = jobs_of(log).orderBy("at_s").collect()
    assert [(row.at_s - START_S, row.service_s) for row in found] == [(0, 2 + 5), (100, 3)]


def test_a_pool_that_cannot_be_rehearsed_is_named_and_spoils_no_other(spark: SparkSession, tmp_path: Path) -> None:
    publish(tmp_path, "1.parquet", table(events("redis/odd", jobs(), ends=False) + events("redis/mail", jobs())))
    candidates = (AS_IT_IS, Candidate(name="no such", changes={"risk": -1}))
    with held_events(spark, tmp_path) as log:
        loads = loads_of(jobs_of(log), pools={"redis/mail": "mail", "redis/odd": "odd"})
        found = outcomes(loads, work("mail", "odd", candidates=candidates))
    assert found["mail", "as it is"].result is not None
    assert "risk" in found["mail", "no such"].why
    assert "no job of pool 'odd' ended" in found["odd", "as it is"].why


def test_a_part_of_the_time_and_a_choice_of_candidates(spark: SparkSession, tmp_path: Path) -> None:
    given = jobs()
    loads = given_loads(spark, [Load(pool="mail", jobs=given)], folder=tmp_path)
    found = outcomes(loads, work("mail", parts={"mail": (100.0, 300.0)}, chosen={"mail": ("as it is",)}))
    assert list(found) == [("mail", "as it is")]
    result = found["mail", "as it is"].result
    assert result is not None
    assert result.jobs == sum(100 <= at_s < 300 for at_s in given.at_s)
    assert part_of(given, 100.0, 300.0, begins_at_s=50.0)[1] == 150.0


def test_a_job_without_an_end_takes_as_long_as_one_with_an_end() -> None:
    known: Sequence[float | None] = [1.0, None, 2.0, None]
    found = filled(known, pool="mail", seed=1)
    assert found[0] == 1.0
    assert found[2] == 2.0
    assert set(found) <= {1.0, 2.0}
    assert found == filled(known, pool="mail", seed=1)
    with pytest.raises(Invalid, match="no job of pool 'mail' ended"):
        filled([None], pool="mail", seed=1)


def test_every_pool_and_candidate_has_its_turn_once_and_large_pools_are_divided() -> None:
    sizes = [
        Size(pool=pool, jobs=count, ended_jobs=count, begins_at_s=0.0, length_s=3600.0)
        for pool, count in (("small", 100), ("large", 100_000), ("mail", 1_000))
    ]
    turns = turns_of(work("small", "large", "mail"), sizes, cores=2)
    assert sorted((pool, *each) for pool, _, asked in turns for each in asked) == sorted(
        (size.pool, each.name, 0) for size in sizes for each in CANDIDATES
    )
    assert [number for _, number, _ in turns] == list(range(len(turns)))
    assert turns[0][0] == "large"
    assert sum(pool == "large" for pool, _, _ in turns) == len(CANDIDATES)
    assert sum(pool == "small" for pool, _, _ in turns) == 1


def test_every_phase_is_a_rehearsal_of_its_own() -> None:
    size = Size(pool="large", jobs=100_000, ended_jobs=1, begins_at_s=0.0, length_s=3600.0)
    turns = turns_of(work("large", candidates=(AS_IT_IS,), phases=8), [size], cores=4)
    assert [asked for _, _, asked in turns] == [[("as it is", phase)] for phase in range(8)]


def test_phases_are_those_of_the_rehearsal_on_this_machine(spark: SparkSession, tmp_path: Path) -> None:
    loads = given_loads(spark, [Load(pool="mail", jobs=jobs(), begins_at_s=START_S // 1)], folder=tmp_path)
    given = work("mail", candidates=(AS_IT_IS,), phases=3)
    found: list[Outcome] = []
    backtest(loads, given, sizes_of(loads), on_done=found.extend)
    rows, failures = rows_of(found, given)
    (row,) = rows["mail"]
    settings = phased(SETTING, 3)
    expected = [rehearse(jobs(), profile("mail"), each, begins_at_s=START_S // 1) for each in settings]
    assert not failures
    assert replace(row.result, points=()) == replace(middle(expected, settings), points=())
    assert rows_of(found[:2], given) == ({}, {}), "a candidate is there when all its phases are"


def test_a_pool_is_rehearsed_as_it_was_learned_to_behave() -> None:
    learned = Behaviour(start_up=Spread(p50_s=9.0, p95_s=9.0))
    given = work("mail", "news", behaviours={"mail": learned}, phases=2)
    assert given.setting_of("mail", 0) == replace(SETTING, behaviour=learned)
    assert given.setting_of("mail", 1).tick_phase_s == 2.5
    assert given.setting_of("news", 0) == SETTING


def test_ctrl_c_ends_it_early_and_keeps_what_is_done(spark: SparkSession, tmp_path: Path) -> None:
    pools = {f"pool-{number}": jobs(number % 3, 60) for number in range(12)}
    loads = given_loads(spark, [Load(pool=pool, jobs=each) for pool, each in pools.items()], folder=tmp_path)
    kept: list[Outcome] = []

    def on_done(outcomes: Sequence[Outcome]) -> None:
        is_first = not kept
        kept.extend(outcomes)
        if is_first:
            raise KeyboardInterrupt

    sizes = sizes_of(loads)
    with pytest.raises(KeyboardInterrupt):
        backtest(loads, work(*pools, candidates=(AS_IT_IS,)), sizes, on_done=on_done)
    assert kept
    assert all(outcome.result is not None for outcome in kept)
    assert spark.range(3).count() == 3, "the session is as good as before"
