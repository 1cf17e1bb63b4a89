"""How fast a rehearsal goes: jobs a second of the engine alone, and what a tick costs with each strategy.

CPU time, so that a busy machine does not count. The controllers are those of the product, on the workload that the
package carries.

    python benchmarks/simulate.py --jobs 400000 --strategies hybrid,predictive_v1
"""

import argparse
import time
from random import Random

from bench import machine
from options import positive_count

from headway.simulate import Controller, Observation
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulated_pool import PoolPlan
from headway.simulate.engine.simulation import Rehearsal, Stepping, simulate
from headway.simulate.traces import BURSTY_LLM_CODE
from headway.simulate.traces import load as recorded
from headway.simulate.workloads.jobs import Jobs
from headway.strategies import load_strategies

WORKERS = 60
LOAD = 0.9
SERVICE_S = 0.4


class Constant:
    """Wants the same, always: what is left is the engine."""

    def __init__(self, workers: int) -> None:
        self.target_workers, self.burst_workers = workers, 0

    def step(self, _: Observation, /, *, now_s: float | None = None) -> "Constant":  # noqa: ARG002 - the port's shape
        return self


def timed(plan: PoolPlan, controller: Stepping) -> tuple[Result, float]:
    began_s = time.process_time()
    (result,) = simulate([plan], [controller], rehearsal=Rehearsal())
    return result, time.process_time() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=positive_count, default=400_000)
    known = load_strategies()
    parser.add_argument("--strategies", default=",".join(name for name in known if name != "fixed"))
    options = parser.parse_args()
    print(machine())

    draws, at_s, now_s = Random(1), [], 0.0
    for _ in range(options.jobs):
        now_s += draws.expovariate(LOAD * WORKERS / SERVICE_S)
        at_s.append(now_s)
    busy = Jobs(at_s=at_s, service_s=[draws.expovariate(1 / SERVICE_S) for _ in at_s])
    result, took_s = timed(PoolPlan(jobs=busy, warm_workers=WORKERS), Constant(WORKERS))
    print(f"engine, {result.jobs:,} jobs in {result.ticks:,} ticks: {result.jobs / took_s:,.0f} jobs/s")

    quiet = Jobs(at_s=[0.0, 500_000.0], service_s=[1.0, 1.0])
    result, took_s = timed(PoolPlan(jobs=quiet, warm_workers=1), Constant(1))
    print(f"engine, nothing to do: {1e6 * took_s / result.ticks:.1f} µs a tick")

    jobs = Jobs.of(recorded(BURSTY_LLM_CODE))
    for name in options.strategies.split(","):
        controller = Controller(workers_max=46, strategy=name, strategies=known)
        result, took_s = timed(PoolPlan(jobs=jobs, workers_max=46), controller)
        print(
            f"{name}, {result.jobs:,} jobs: {result.jobs / took_s:,.0f} jobs/s, "
            f"{1e6 * took_s / result.ticks:.0f} µs a tick with the jobs of it"
        )


if __name__ == "__main__":
    main()
