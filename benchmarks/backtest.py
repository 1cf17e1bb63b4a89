"""How fast history is played: pool-days times profiles a core and second, of a made-up fleet, by `headway backtest`.

The fleet is what fleets are: most pools have a handful of jobs an hour, few have many. A bounded part of it is played,
each candidate on each pool; what the goal's shape (1,000 pools x 24 profiles over a day of 5 s evaluations) would take
is worked out from the rate, and said so.

    python benchmarks/backtest.py --pools 40 --candidates 24
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from random import Random

from bench import machine
from options import positive_count

from headway.scaling.profile import Profile
from headway.simulate.studies.candidates import Candidate, with_base
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.studies.tuning import DEFAULT_GRID
from headway.simulate.workloads.jobs import Jobs
from headway.strategies import load_strategies
from headway_spark.studies.backtest import Outcome, Work, backtest, sizes_of
from headway_spark.studies.bulk import bulk_session
from headway_spark.studies.history import Load, given_loads

DAY_S = 86_400.0
JOBS_A_DAY = (20, 100, 500, 2_000, 10_000)  # of pools, in turn: their mean is 2,524
GOAL_POOLS, GOAL_PROFILES = 1_000, 24
SERVICE_S = 3.0


def pool(number: int) -> Load:
    """A day of one pool: chance, a wave over the day, and now and then a burst."""
    chance = Random(number)
    count = JOBS_A_DAY[number % len(JOBS_A_DAY)]
    at_s: list[float] = []
    while len(at_s) < count:
        begins_s = DAY_S * chance.betavariate(2, 2)
        burst = 1 if chance.random() < 0.95 else 20
        at_s += [begins_s + each * 0.2 for each in range(burst)]
    at_s.sort()
    service_s = [chance.lognormvariate(0, 1) * SERVICE_S / 1.65 for _ in at_s]
    return Load(pool=f"pool-{number:04}", jobs=Jobs(at_s=at_s, service_s=service_s), begins_at_s=1_760_000_000.0)


def profile(name: str) -> Profile:
    return Profile(pool=name, queues=(f"redis/{name}",), template="rq", workers_max=100)


def alone(loads: list[Load], candidates: tuple[Candidate, ...]) -> None:
    """What a rehearsal costs by itself, in processor time, by how busy the pool is."""
    print(f"{'jobs a day':>12} {'evals':>8} {'CPU s a pool-day':>17}")
    for load in loads[: len(JOBS_A_DAY)]:
        began_s = time.process_time()
        for candidate in candidates[:2]:
            result = rehearse(load.jobs, candidate.of(profile(load.pool)), Setting(), begins_at_s=load.begins_at_s)
        took_s = (time.process_time() - began_s) / len(candidates[:2])
        print(f"{len(load.jobs):>12,} {result.ticks:>8,} {took_s:>17.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=positive_count, default=10)
    parser.add_argument("--candidates", type=positive_count, default=24)
    parser.add_argument("--cores", type=positive_count, default=os.cpu_count() or 1)
    options = parser.parse_args()
    candidates = with_base(DEFAULT_GRID)[: options.candidates]
    loads = [pool(number) for number in range(options.pools)]
    print(machine())
    alone(loads, candidates)
    work = Work(
        profiles={each.pool: profile(each.pool) for each in loads},
        candidates=candidates,
        setting=Setting(),
        strategies=dict(load_strategies()),
    )
    with tempfile.TemporaryDirectory() as folder:
        began_s = time.monotonic()
        with bulk_session(os.environ, work_dir=Path(folder), cores=options.cores) as session:
            given = given_loads(session, loads, folder=Path(folder))
            sizes = sizes_of(given)
            ready_s = time.monotonic() - began_s
            found: list[Outcome] = []
            began_s = time.monotonic()
            backtest(given, work, sizes, on_done=found.extend)
            took_s = time.monotonic() - began_s
    assert len(found) == len(loads) * len(candidates)
    assert all(outcome.result is not None for outcome in found)
    rate = len(found) / took_s / options.cores
    cpu_s = sum(outcome.cpu_s for outcome in found)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(
        f"{len(loads)} pools x {len(candidates)} profiles x 1 day on {options.cores} cores: {took_s:.0f} s wall, "
        f"{rate:.2f} pool-days x profiles a core and second (Spark and the jobs ready after {ready_s:.0f} s; load "
        f"after {load})"
    )
    print(f"of processor time the rehearsals took {cpu_s:.0f} s: {len(found) / cpu_s:.2f} a core-second of their own")
    for what, per_s in (("wall", rate), ("processor", len(found) / cpu_s)):
        hours = GOAL_POOLS * GOAL_PROFILES / per_s / 3600
        print(
            f"worked out, not run: {GOAL_POOLS:,} pools x {GOAL_PROFILES} profiles by {what} time: {hours:.1f} "
            f"core-hours, {hours / options.cores:.1f} h on {options.cores} cores, {60 * hours / 64:.0f} min on 64"
        )


if __name__ == "__main__":
    main()
