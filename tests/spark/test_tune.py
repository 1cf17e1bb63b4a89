"""`headway tune` over Spark: chosen on the earlier part, shown on the later, within the bounds."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headway.cli.backtesting.spark_runs import Bench
from headway.cli.backtesting.tune import changes_of
from headway.cli.backtesting.tuning_rounds import tuned
from headway.scaling.profile import Profile
from headway.scaling.strategies import BUILT_IN
from headway.simulate.studies.candidates import grid, with_base
from headway.simulate.studies.single_pool import Setting
from headway.simulate.studies.tuning import Verdict
from headway.simulate.workloads.jobs import Jobs
from headway_spark.studies.backtest import Work, sizes_of
from headway_spark.studies.history import Load, given_loads

pytestmark = pytest.mark.timeout(600)  # two rounds of Spark with Python on a machine that does other things, too


def test_idle_workers_are_let_go_and_what_is_well_stays(spark: SparkSession, tmp_path: Path) -> None:
    """A pool that keeps idle workers for ten minutes after each burst need not; a pool of few jobs is not judged."""
    steady = Jobs(at_s=[number // 16 * 1200.0 + number % 16 for number in range(176)], service_s=[2.0] * 176)
    few = Jobs(at_s=[0.0, 4_000.0], service_s=[1.0, 1.0])
    loads = given_loads(
        spark,
        [Load(pool="kept", jobs=steady), Load(pool="lean", jobs=steady), Load(pool="few", jobs=few)],
        folder=tmp_path,
    )
    profiles = {
        pool: Profile(pool=pool, queues=(f"redis/{pool}",), template="rq", workers_max=4, hold_down_s=hold_down_s)
        for pool, hold_down_s in (("kept", 600.0), ("lean", 5.0), ("few", 5.0))
    }
    on = Bench(loads=loads, sizes=sizes_of(loads), profiles=profiles, skipped={})
    work = Work(
        profiles=profiles,
        candidates=with_base(grid({"hold_down_s": [5.0, 900.0]})),
        setting=Setting(),
        strategies=dict(BUILT_IN),
    )
    found, failures, is_whole = tuned(on, work, trained_fraction=0.67)
    assert is_whole
    assert not failures
    by_pool = {each.pool: each for each in found}
    assert list(by_pool) == ["few", "kept", "lean"]
    kept = by_pool["kept"]
    assert kept.verdict is Verdict.CHANGE
    assert changes_of(kept.candidate, profiles["kept"]) == {"hold_down_s": 5.0}
    assert kept.before is not None
    assert kept.after is not None
    assert kept.trained[0].result.jobs + kept.before.result.jobs == len(steady), "the parts are apart, and all there is"
    assert kept.after.result.worker_hours < kept.before.result.worker_hours
    assert by_pool["lean"].verdict is Verdict.KEEP
    assert by_pool["few"].verdict is Verdict.UNKNOWN


def test_of_many_candidates_the_best_few_are_tried_at_every_phase(spark: SparkSession, tmp_path: Path) -> None:
    """Seven candidates at one phase of four, the profile as it is and the four best at all of them."""
    steady = Jobs(at_s=[number // 16 * 1200.0 + number % 16 for number in range(176)], service_s=[2.0] * 176)
    loads = given_loads(spark, [Load(pool="kept", jobs=steady)], folder=tmp_path)
    profiles = {
        "kept": Profile(pool="kept", queues=("redis/kept",), template="rq", workers_max=4, hold_down_s=600.0),
    }
    work = Work(
        profiles=profiles,
        candidates=with_base(grid({"hold_down_s": [5.0, 60.0, 120.0, 700.0, 800.0, 900.0]})),
        setting=Setting(),
        strategies=dict(BUILT_IN),
        phases=4,
    )
    on = Bench(loads=loads, sizes=sizes_of(loads), profiles=profiles, skipped={})
    (found,), failures, is_whole = tuned(on, work, trained_fraction=0.67)
    assert is_whole
    assert not failures
    tried = {row.strategy: max(1, len(row.result.phases)) for row in found.trained}
    assert len(tried) == 7
    assert tried == {
        "as it is": 4,
        "hold_down_s=5": 4,
        "hold_down_s=60": 4,
        "hold_down_s=120": 4,
        "hold_down_s=700": 4,
        "hold_down_s=800": 1,
        "hold_down_s=900": 1,
    }
    assert found.verdict is Verdict.CHANGE
    assert found.after is not None
    assert len(found.after.result.phases) == 4
