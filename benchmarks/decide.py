"""What a tick costs between gathering and applying: views built, pools decided, room shared, workers placed.

The rows are calls of what the live tick calls (`headway.control.scheduler.evaluator`), on made-up queues with five
minutes of buckets each. "Changed" pools have a new bucket with arrivals and a backlog; the others were read again and
are idle. Each figure is the median of the runs. The CPU time is that of this process alone, the wall time has in it
whatever else ran meanwhile; where cores are shared, CPU time swells too, and the yardstick, a loop of 5 million
additions, says by how much. The goals are for deciding, sharing and placing in one call on one core. How the
interpreter was built matters as much as the code: Debian's takes a fifth less than one that pyenv compiled with its
defaults, for the yardstick too.

    python benchmarks/decide.py --runs 5
"""

import argparse
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from options import positive_count

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from headway.control.gc_tuning import collect_rarely
from headway.control.scheduler import evaluator
from headway.control.scheduler.bucket_cache import CACHED_S
from headway.control.scheduler.evaluator import Evaluator
from headway.control.scheduler.view_builder import ViewBuilder
from headway.scaling.allocation.allocate import allocate
from headway.scaling.allocation.fair_share import Claim, shared
from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.measure import BUCKET_S, BucketRow, queue_metrics, sketch_index
from headway.scaling.model import (
    Assignment,
    Decision,
    Host,
    HostCapacity,
    Memory,
    Objective,
    QueueMetrics,
    Step,
    Template,
    Worker,
    WorkerState,
)
from headway.scaling.placement.pool_parts import PoolTarget
from headway.scaling.profile import Profile
from headway.scaling.view import PoolView
from headway.store.pools.evaluation_io import Gathered, PoolState
from support.placements import place

NOW_S = 1_800_000_000.0
TICK_S = 5.0
HOSTS = 200
TEMPLATES = 50
MIXED_HOSTS = 1_000
MIXED_GOAL_MS = 1_000
MIXED_CORES = (4, 8, 16, 32, 64)  # of a host
MIXED_SIZES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # cores of a worker
MOST_POOLS = 10_000
GOALS_MS = (200, 2_000, 400)  # of the scenes, at so many pools


@dataclass(frozen=True)
class Spent:
    wall_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A tick at which ``changed`` of ``pools`` have changed."""

    name: str
    pools: int
    changed: int
    goal_ms: int


def scenes(most_pools: int) -> Sequence[Scene]:
    """Three ticks of an installation of that size and of a tenth of it."""
    tenth = max(1, most_pools // 10)
    named = (
        (f"{tenth:,} pools, {HOSTS} hosts, all changed", tenth, tenth),
        (f"{most_pools:,} pools, all changed", most_pools, most_pools),
        (f"{most_pools:,} pools, 10 % changed", most_pools, tenth),
    )
    return [
        Scene(name=name, pools=pools, changed=changed, goal_ms=goal_ms)
        for (name, pools, changed), goal_ms in zip(named, GOALS_MS, strict=True)
    ]


class Made:
    """A made-up installation: pools with a queue each, hosts, and what one tick after the other would gather."""

    def __init__(self, pools: int, *, seed: int = 1) -> None:
        self.chance = random.Random(seed)
        self.busy = [_busy(self.chance) for _ in range(200)]
        self.evaluation = Evaluator()
        self.now_s = NOW_S
        self.pools = [f"pool-{number:05d}" for number in range(pools)]
        self.profiles: dict[str, dict[str, Any]] = {
            pool: {
                "queues": [f"redis/{pool}"],
                "template": f"template-{number % TEMPLATES}",
                "priority": 100 + number % 3,
                "workers_max": 200,
            }
            for number, pool in enumerate(self.pools)
        }
        self.hosts = [_host(number, self.chance, pools=pools) for number in range(HOSTS)]
        self.states: dict[str, PoolState] = {}
        self.assignments: tuple[Assignment, ...] = ()

    def fill(self, busy: int) -> None:
        """Five minutes of rows: arrivals and completions in the queues of ``busy`` pools, samples in all."""
        buckets = [self.now_s - BUCKET_S * back for back in range(int(CACHED_S / BUCKET_S), 0, -1)]
        for number, pool in enumerate(self.pools):
            rows = (self.row(pool, bucket_s, is_busy=number < busy) for bucket_s in buckets)
            self.evaluation.recent.take(rows, revision=0)

    def read(self, busy: int) -> list[BucketRow]:
        """The rows that are new at the next tick."""
        self.now_s += TICK_S
        return [self.row(pool, self.now_s - BUCKET_S, is_busy=number < busy) for number, pool in enumerate(self.pools)]

    def row(self, pool: str, bucket_s: float, *, is_busy: bool) -> BucketRow:
        read = {"queue": f"redis/{pool}", "bucket_s": bucket_s, "sampled_at_s": bucket_s + 4.9}
        if not is_busy:
            return BucketRow(**read, waiting_jobs=0, in_flight_jobs=0, oldest_age_s=0.0)  # type: ignore[arg-type]
        return replace(self.chance.choice(self.busy), **read)  # type: ignore[arg-type]

    def gathered(self) -> Gathered:
        return Gathered(
            at_s=0.0,
            revision=0,
            buckets=(),
            profiles=self.profiles,
            states=self.states,
            hosts=tuple(self.hosts),
            assignments=self.assignments,
            direct={},
            worker_hours_today={},
        )

    def tick(self, rows: Iterable[BucketRow]) -> tuple[tuple[Outcome, ...], dict[str, Spent]]:
        """What a tick does, without its reading and writing of Postgres, and what its two halves cost."""
        gathered = self.gathered()
        seen, views = timed(lambda: self.views(rows, gathered))
        evaluator.ViewBuilder = lambda *_, **__: views  # type: ignore[misc, assignment]
        decided, (outcomes, self.assignments) = timed(
            lambda: self.evaluation.evaluate(gathered, due=gathered.profiles, now_s=self.now_s)
        )
        assert len(outcomes) == len(self.pools), "a pool could not be decided"
        self.states = {
            each.decision.pool: PoolState(memory=each.memory, target_workers=each.decision.target_workers)
            for each in outcomes
        }
        return outcomes, {"views": seen, "decided, shared, placed": decided}

    def views(self, rows: Iterable[BucketRow], gathered: Gathered) -> "Prepared":
        self.evaluation.recent.forget(now_s=self.now_s)
        self.evaluation.recent.take(rows, revision=0)
        views = ViewBuilder(gathered, self.evaluation.recent, now_s=self.now_s)
        profiles = [self.evaluation._profile(pool, body) for pool, body in self.profiles.items()]  # noqa: SLF001
        return Prepared({profile.pool: views.of(profile) for profile in profiles})


class Prepared:
    """Views that are ready."""

    def __init__(self, views: dict[str, PoolView]) -> None:
        self._views = views

    def of(self, profile: Profile) -> PoolView:
        return self._views[profile.pool]


def _busy(chance: random.Random) -> BucketRow:
    """A bucket in which jobs arrived, and some wait."""
    jobs = chance.randint(5, 30)
    services_s = [chance.lognormvariate(-1.0, 0.7) for _ in range(jobs)]
    waits_s = [chance.expovariate(1.0) for _ in range(jobs)]
    return BucketRow(
        queue="",
        bucket_s=0.0,
        arrived_jobs=jobs,
        started_jobs=jobs,
        finished_jobs=jobs,
        service_sum_s=sum(services_s),
        service_sketch=_sketch(services_s),
        pickup_sketch=_sketch(waits_s),
        pickup_max_s=max(waits_s),
        waiting_jobs=chance.randint(0, 60),
        in_flight_jobs=chance.randint(1, 5),
        oldest_age_s=chance.uniform(0.0, 6.0),
    )


def _host(number: int, chance: random.Random, *, pools: int) -> Host:
    """A host with room for its part of the workers, of one of three sizes, with half of the templates."""
    cores = [32.0, 64.0, 128.0][number % 3] * max(1.0, pools / 2_000)
    names = sorted(chance.sample(range(TEMPLATES), TEMPLATES // 2))
    return Host(
        host_id=f"host-{number:03d}",
        name=f"host-{number:03d}",
        capacity=HostCapacity(cpu_cores=cores, memory_bytes=int(cores * 4 * 2**30)),
        templates=tuple(
            Template(
                name=f"template-{name}",
                content_hash="1",
                cpu_cores=0.1 + 0.1 * (name % 7),
                memory_bytes=(64 + 64 * (name % 11)) * 2**20,
                start_up_s=2.0,
            )
            for name in names
        ),
    )


def _sketch(values_s: Iterable[float]) -> dict[int, int]:
    sketch: dict[int, int] = {}
    for value_s in values_s:
        index = sketch_index(value_s)
        sketch[index] = sketch.get(index, 0) + 1
    return sketch


def ticks(pools: int, changed: int, runs: int) -> tuple[dict[str, Spent], dict[str, Any]]:
    """The cost of a tick at which ``changed`` of ``pools`` have changed, after two that decided all of them."""
    made = Made(pools)
    made.fill(changed)
    made.tick(made.read(changed))
    made.tick(made.read(changed))
    evaluations = [made.tick(made.read(changed)) for _ in range(runs)]
    outcomes = evaluations[-1][0]
    return {half: middle([spent[half] for _, spent in evaluations]) for half in evaluations[0][1]}, {
        "workers": sum(each.decision.target_workers for each in outcomes),
        "decided_now": sum(each.decision.at_s == made.now_s for each in outcomes),
        "lost_workers_to_others": sum(each.decision.binding == "share" for each in outcomes),
    }


def parts(pools: int, runs: int) -> dict[str, Spent]:
    """What the parts of a tick cost alone, all pools changed, from nothing in place."""
    made = Made(pools)
    made.fill(pools)
    rows = made.read(pools)
    made.evaluation.recent.take(rows, revision=0)
    profiles = [made.evaluation._profile(pool, body) for pool, body in made.profiles.items()]  # noqa: SLF001
    five_minutes = [made.row("pool", made.now_s - BUCKET_S * back, is_busy=True) for back in range(60, 0, -1)]

    def metrics() -> list[Any]:
        return [
            queue_metrics(five_minutes, queue="redis/pool", now_s=made.now_s, objective=Objective()) for _ in profiles
        ]

    def views() -> list[Any]:
        seen = ViewBuilder(made.gathered(), made.evaluation.recent, now_s=made.now_s)
        return [seen.of(profile) for profile in profiles]

    def outcomes(seen: Sequence[Any]) -> list[Outcome]:
        decided = [(view, *decide(view, Memory(), now_s=made.now_s)) for view in seen]
        return [Outcome(view=v, before=Memory(), decision=d, memory=m) for v, d, m in decided]

    seen = views()
    decided = outcomes(seen)
    targets = [
        PoolTarget(pool=each.decision.pool, template=each.view.profile.template, workers=each.decision.target_workers)
        for each in decided
    ]
    claims = [Claim(pool=each.pool, template=each.template, workers=each.workers) for each in targets]
    scarce = [replace(host, capacity=_part(host.capacity, decided, made.hosts)) for host in made.hosts]
    workers = sum(each.workers for each in targets)
    rows_in_place = place(targets, made.hosts, [])
    return {
        "metrics of busy queues (all of 60 buckets)": repeated(metrics, runs),
        "views of busy pools": repeated(views, runs),
        "decide": repeated(lambda: outcomes(seen), runs),
        f"place {workers} workers from nothing": repeated(lambda: place(targets, made.hosts, []), runs),
        f"place {workers} workers that are in place": repeated(lambda: place(targets, made.hosts, rows_in_place), runs),
        f"share room for half of {workers} workers": repeated(lambda: shared(claims, scarce), runs),
        "decide, share and place, room for half": repeated(
            lambda: allocate(outcomes(seen), scarce, rows_in_place), runs
        ),
    }


def _part(capacity: HostCapacity, decided: Sequence[Outcome], hosts: Sequence[Host]) -> HostCapacity:
    """So little of a host that all of them have about half of the room that is wanted."""
    costs = {template.name: template.cpu_cores for host in hosts for template in host.templates}
    wanted = sum(costs[each.view.profile.template] * each.decision.target_workers for each in decided)
    return replace(capacity, cpu_cores=capacity.cpu_cores * 0.5 * wanted / sum(h.capacity.cpu_cores for h in hosts))


class Mixed:
    """A made-up installation of many sizes: every third pool has a floor, and most workers have a job."""

    def __init__(self, pools: int, hosts: int, *, wanted_part: float, seed: int = 1) -> None:
        """Pools that want this part of all cores."""
        self._chance = random.Random(seed)
        self._templates = [
            Template(
                name=f"template-{number}",
                content_hash="1",
                cpu_cores=MIXED_SIZES[number % len(MIXED_SIZES)],
                memory_bytes=(number % 5 + 1) * 2**28,
            )
            for number in range(TEMPLATES)
        ]
        self.hosts = [self._host(number) for number in range(hosts)]
        wanted = [self._chance.choice([0, 1, 1, 2, 2, 3, 5, 8]) for _ in range(pools)]
        chosen = [self._chance.choice(self._templates) for _ in range(pools)]
        asked = sum(workers * template.cpu_cores for workers, template in zip(wanted, chosen, strict=True))
        scale = wanted_part * sum(host.capacity.cpu_cores for host in self.hosts) / asked
        self.outcomes = [
            self._outcome(number, template, round(workers * scale))
            for number, (workers, template) in enumerate(zip(wanted, chosen, strict=True))
        ]

    def _host(self, number: int) -> Host:
        cores = self._chance.choice(MIXED_CORES)
        return Host(
            host_id=f"host-{number:04d}",
            name=f"host-{number:04d}",
            capacity=HostCapacity(cpu_cores=float(cores), memory_bytes=cores * 2**30),
            templates=tuple(self._chance.sample(self._templates, TEMPLATES // 2)),
        )

    def _outcome(self, number: int, template: Template, workers: int) -> Outcome:
        pool = f"pool-{number:05d}"
        profile = Profile(
            pool=pool,
            queues=(f"redis/{pool}",),
            template=template.name,
            workers_min=min(workers, 1) if number % 3 == 0 else 0,
            workers_max=10_000,
            priority=100 + number % 3,
        )
        queue = QueueMetrics(queue=f"redis/{pool}", sampled_at_s=NOW_S, waiting_jobs=3, service_time_s=1.0)
        memory = Memory(target_workers=workers)
        decision = Decision(
            pool=pool,
            at_s=NOW_S,
            target_workers=workers,
            binding="backlog_drain",
            objective=Objective(),
            steps=(Step(name="wanted", workers=workers),),
            metrics=(queue,),
        )
        view = PoolView(profile=profile, queues=(queue,), capacity_workers=10**6)
        return Outcome(view=view, before=memory, decision=decision, memory=memory)

    def running(self, rows: Iterable[Assignment]) -> list[Host]:
        """The hosts with the workers of ``rows``, seven of ten busy."""
        workers: dict[str, list[Worker]] = {host.host_id: [] for host in self.hosts}
        for row in rows:
            workers[row.host_id] += [
                Worker(
                    worker_id=f"{row.pool}-{row.host_id}-{number}",
                    pool=row.pool,
                    template=row.template,
                    pid=1,
                    state=WorkerState.RUNNING,
                    started_at_s=NOW_S,
                    is_busy=self._chance.random() < 0.7,
                )
                for number in range(row.workers)
            ]
        return [replace(host, workers=tuple(workers[host.host_id])) for host in self.hosts]


def mixed(pools: int, hosts: int, runs: int) -> dict[str, Spent]:
    """What allocation costs where workers and hosts have many sizes, with room for all and without."""
    found = {}
    for name, part in (("room for all", 0.8), ("room for three quarters", 1.3)):
        made = Mixed(pools, hosts, wanted_part=part)
        _, rows = allocate(made.outcomes, made.hosts, [])
        running = made.running(rows)
        lost = [replace(host, is_known=number % 10 != 0) for number, host in enumerate(running)]
        found[f"{name}: from nothing"] = repeated(partial(allocate, made.outcomes, made.hosts, []), runs)
        found[f"{name}: again"] = repeated(partial(allocate, made.outcomes, running, rows), runs)
        found[f"{name}: a tenth of the hosts unreachable"] = repeated(
            partial(allocate, made.outcomes, lost, rows), runs
        )
    return found


def timed(call: Callable[[], Any]) -> tuple[Spent, Any]:
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    result = call()
    return Spent((time.perf_counter() - wall_s) * 1e3, (time.process_time() - cpu_s) * 1e3), result


def repeated(call: Callable[[], Any], runs: int) -> Spent:
    return middle([timed(call)[0] for _ in range(runs)])


def middle(spent: Sequence[Spent]) -> Spent:
    return Spent(statistics.median(each.wall_ms for each in spent), statistics.median(each.cpu_ms for each in spent))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=positive_count, default=5)
    parser.add_argument(
        "--pools", type=positive_count, default=MOST_POOLS, help=f"of the largest scenes; goals are of {MOST_POOLS:,}"
    )
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    collect_rarely()  # as the control plane does
    figures: dict[str, Any] = {
        "machine": {"python": platform.python_version(), "cores": os.cpu_count(), "load_average": os.getloadavg()},
        "ticks": {},
        "parts_of_a_tenth_ms": {},
    }
    print(f"{'':<58}{'wall ms':>9}{'CPU ms':>9}{'goal':>8}")
    for scene in scenes(args.pools):
        halves, more = ticks(scene.pools, scene.changed, args.runs)
        print(f"{scene.name}: {more}")
        figures["ticks"][scene.name] = {**more, "goal_ms": scene.goal_ms}
        for half, spent in halves.items():
            goal = scene.goal_ms if half != "views" else ""
            print(f"  {half:<56}{spent.wall_ms:>9.0f}{spent.cpu_ms:>9.0f}{goal:>8}")
            figures["ticks"][scene.name][half] = asdict(spent)
    tenth, hosts = max(1, args.pools // 10), max(1, args.pools * MIXED_HOSTS // MOST_POOLS)
    print(f"\nparts, {tenth:,} pools on {HOSTS} hosts, all changed")
    for name, spent in parts(tenth, args.runs).items():
        print(f"{name:<58}{spent.wall_ms:>9.0f}{spent.cpu_ms:>9.0f}")
        figures["parts_of_a_tenth_ms"][name] = asdict(spent)
    print(f"\nallocate, {args.pools:,} pools on {hosts:,} hosts of mixed sizes")
    figures["allocate_mixed_sizes"] = {"goal_ms": MIXED_GOAL_MS}
    for name, spent in mixed(args.pools, hosts, args.runs).items():
        print(f"{name:<58}{spent.wall_ms:>9.0f}{spent.cpu_ms:>9.0f}{MIXED_GOAL_MS:>8}")
        figures["allocate_mixed_sizes"][name] = asdict(spent)
    yardstick = repeated(lambda: sum(number for number in range(5_000_000)), 3)
    figures["machine"]["yardstick"] = asdict(yardstick)
    print(f"\n{'yardstick':<58}{yardstick.wall_ms:>9.0f}{yardstick.cpu_ms:>9.0f}")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load average {os.getloadavg()}")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
