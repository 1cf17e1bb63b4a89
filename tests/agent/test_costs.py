import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.agent.monitoring.cost_model import (
    COST_FLOOR,
    COST_REPORT_BAND,
    COST_SAMPLES_MIN,
    CPU_CORES_LEAST,
    MEMORY_BYTES_LEAST,
    Cost,
    CostModel,
    learnt,
)
from headway.agent.monitoring.resource_usage import ResourceUsage, WorkerUsage, weighed
from headway.local import procfs
from support.workers import SLEEP, template
from support.workers import record as a_record

MB = 10**6


def weight(memory_bytes: float = 100 * MB, cpu_cores: float | None = 0.5) -> WorkerUsage:
    return WorkerUsage(at_s=0.0, memory_bytes=int(memory_bytes), cpu_s=0.0, cpu_cores=cpu_cores)


def learnt_by(samples: int, *weights: WorkerUsage) -> CostModel:
    costs = CostModel()
    for _ in range(samples):
        costs.learn({"py": weights})
    return costs


def test_what_host_toml_says_counts_until_enough_workers_were_seen() -> None:
    configured = template(cpu_cores=0.1, memory_bytes=50 * MB)
    assert learnt_by(COST_SAMPLES_MIN - 1, weight()).reported(configured) == configured.reported()
    reported = learnt_by(COST_SAMPLES_MIN, weight()).reported(configured)
    assert (reported.cpu_cores, reported.memory_bytes) == (0.5, 100 * MB)
    assert replace(reported, cpu_cores=0.1, memory_bytes=50 * MB) == configured.reported()


def test_many_workers_are_enough_after_one_poll() -> None:
    assert learnt_by(1, *[weight()] * COST_SAMPLES_MIN).reported(template()).memory_bytes == 100 * MB


def test_the_mean_of_the_workers_counts() -> None:
    reported = learnt_by(COST_SAMPLES_MIN, weight(100 * MB, 0.2), weight(300 * MB, 0.6)).reported(template())
    assert (reported.cpu_cores, reported.memory_bytes) == (pytest.approx(0.4), 200 * MB)


def test_who_does_not_want_it_measured_is_reported_as_configured() -> None:
    configured = template(is_measured=False)
    assert learnt_by(COST_SAMPLES_MIN, weight()).reported(configured) == configured.reported()


def test_a_worker_that_takes_next_to_nothing_costs_a_little() -> None:
    costs = learnt_by(COST_SAMPLES_MIN, weight(0.0, 0.0))
    reported = costs.reported(template(cpu_cores=0.0, memory_bytes=0))
    assert (reported.cpu_cores, reported.memory_bytes) == (CPU_CORES_LEAST, MEMORY_BYTES_LEAST)


def test_a_worker_never_costs_less_than_a_part_of_what_host_toml_says() -> None:
    """A night without jobs does not make a morning's workers free."""
    reported = learnt_by(COST_SAMPLES_MIN, weight(0.0, 0.0)).reported(template(cpu_cores=2.0, memory_bytes=400 * MB))
    assert (reported.cpu_cores, reported.memory_bytes) == (COST_FLOOR * 2.0, COST_FLOOR * 400 * MB)


def test_a_cost_rises_at_once_and_falls_slowly() -> None:
    known = Cost(cpu_cores=1.0, memory_bytes=100.0 * MB, samples=COST_SAMPLES_MIN)
    up = learnt(known, [weight(300 * MB, 2.0)])
    assert (up.cpu_cores, up.memory_bytes) == (1.5, 200.0 * MB)  # half of the way in a minute
    down = known
    for _ in range(10):
        down = learnt(down, [weight(0.0, 0.0)])
    assert 0.8 < down.cpu_cores < 0.83  # 0.98^10 after ten minutes


def test_a_worker_that_was_weighed_once_says_nothing_of_processor_time() -> None:
    known = learnt(None, [weight(cpu_cores=None)])
    assert (known.samples, learnt(known, [weight()]).cpu_cores) == (0, 0.5)


@given(st.lists(st.floats(1.0 - COST_REPORT_BAND / 2, 1.0 + COST_REPORT_BAND / 2), max_size=20))
def test_noise_changes_nothing_that_is_reported(noise: list[float]) -> None:
    costs = learnt_by(COST_SAMPLES_MIN, weight())
    before = costs.reported(template())
    for factor in noise:
        costs.learn({"py": [weight(100 * MB * factor, 0.5 * factor)]})
        assert costs.reported(template()) == before


@given(st.lists(st.tuples(st.floats(0, 1e10), st.none() | st.floats(0, 64)), min_size=1, max_size=20))
def test_a_cost_stays_within_what_was_seen(seen: list[tuple[float, float | None]]) -> None:
    known: Cost | None = None
    for memory_bytes, cpu_cores in seen:
        known = learnt(known, [weight(memory_bytes, cpu_cores)])
    memory = [int(each) for each, _ in seen]
    assert min(memory) - 1 <= known.memory_bytes <= max(memory) + 1


# --- weighing --------------------------------------------------------------------------------------------------------


def test_cores_are_processor_time_over_time_and_never_below_nothing() -> None:
    first = weighed(100.0, memory_bytes=1, cpu_s=5.0, before=None)
    assert first.cpu_cores is None
    assert weighed(160.0, memory_bytes=1, cpu_s=35.0, before=first).cpu_cores == 0.5
    assert weighed(160.0, memory_bytes=1, cpu_s=4.0, before=first).cpu_cores == 0.0  # a child took its own along


def test_a_worker_is_weighed_with_its_children() -> None:
    says = f"print(1, flush=True); {SLEEP}"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {says!r}]); {says}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True) as worker:
        try:
            for _ in range(2):  # the child is as large as the worker by then
                worker.stdout.readline()
            record = a_record("w", pid=worker.pid, started_ticks=0, pool="mail")
            scales = ResourceUsage()
            total = scales.weigh([record], now_s=0.0, again=0)
            assert total == scales.weight("w").memory_bytes > procfs.proportional_memory_bytes(worker.pid) > MB
            assert scales.by_template([record], older_than_s=1e9) == {}
            assert len(scales.by_template([record], older_than_s=0.0)[""]) == 1
            assert scales.weigh([], now_s=1.0, again=9) == 0
            assert scales.weight("w") is None
        finally:
            os.killpg(worker.pid, 9)


def test_the_new_are_weighed_at_once_and_the_others_in_turns() -> None:
    mine = [a_record(f"w{number}", pid=os.getpid(), started_ticks=0, pool="mail") for number in range(4)]
    scales = ResourceUsage()
    weighed_at_s = []
    for now_s in range(5):
        scales.weigh(mine, now_s=float(now_s), again=2)
        weighed_at_s.append([scales.weight(each.worker_id).at_s for each in mine])
    assert weighed_at_s == [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 2, 2], [3, 3, 2, 2], [3, 3, 4, 4]]
    assert scales.weight("w0").cpu_cores is not None
