"""Floors that arrive in full installations, evaluation after evaluation, while what must leave finishes its jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from headway.scaling.allocation.allocate import allocate
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import (
    Assignment,
    Decision,
    Host,
    HostCapacity,
    HostState,
    Memory,
    Objective,
    Step,
    Template,
    Worker,
    WorkerState,
)
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import placed_workers
from scaling.floors import template
from support.pools import NOW_S, profile, queue, view

DRAIN_EVALUATIONS = 3  # for so long a busy worker that was asked to leave still has its place


@dataclass
class Fleet:
    """Hosts that do what their rows say: busy workers that must leave go after three evaluations, idle ones at once."""

    hosts: list[Host]
    wanted: dict[str, tuple[str, int]]
    """Pool -> its template and what it wants."""
    floors: dict[str, int]
    priorities: dict[str, int] = field(default_factory=dict)
    are_busy: bool = True
    rows: tuple[Assignment, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    targets: dict[str, int] = field(default_factory=dict)
    draining: list[tuple[int, str, Worker]] = field(default_factory=list)
    """Evaluations left, host id and worker."""
    drained: int = 0

    def evaluate(self, times: int = 1) -> None:
        for _ in range(times):
            outcomes = [self.outcome(pool) for pool in self.wanted]
            self.outcomes, rows = allocate(outcomes, self.reported(), self.rows)
            self.targets = {each.decision.pool: each.decision.target_workers for each in self.outcomes}
            self._follow(rows)

    def outcome(self, pool: str) -> Outcome:
        name, wanted = self.wanted[pool]
        policy = profile(
            pool=pool,
            queues=(f"redis/{pool}",),
            template=name,
            workers_min=self.floors.get(pool, 0),
            priority=self.priorities.get(pool, 100),
        )
        member = queue(queue=f"redis/{pool}", waiting_jobs=30)
        capacity = HostCapacities(self.hosts).capacity(name)
        workers = wanted if capacity is None else min(wanted, capacity)
        return Outcome(
            view=view(member, profile=policy, capacity_workers=capacity),
            before=Memory(target_workers=self.targets.get(pool, 0)),
            decision=Decision(
                pool=pool,
                at_s=NOW_S,
                target_workers=workers,
                binding="backlog_drain" if workers == wanted else "capacity",
                objective=Objective(),
                steps=(Step(name="wanted", workers=wanted), Step(name="capacity", workers=workers)),
                metrics=(member,),
            ),
            memory=Memory(target_workers=workers),
        )

    def reported(self) -> list[Host]:
        return [
            replace(
                host,
                workers=(
                    *(
                        self._worker(row)
                        for row in self.rows
                        if row.host_id == host.host_id
                        for _ in range(row.workers)
                    ),
                    *(worker for _, host_id, worker in self.draining if host_id == host.host_id),
                ),
            )
            for host in self.hosts
        ]

    def _worker(self, row: Assignment, state: WorkerState = WorkerState.RUNNING) -> Worker:
        return Worker(
            worker_id="w",
            pool=row.pool,
            template=row.template,
            pid=1,
            state=state,
            started_at_s=0.0,
            is_busy=self.are_busy,
        )

    def _follow(self, rows: tuple[Assignment, ...]) -> None:
        self.draining = [(left - 1, host_id, worker) for left, host_id, worker in self.draining if left > 1]
        after = {(row.pool, row.host_id): row.workers for row in rows}
        for row in self.rows:
            gone = max(0, row.workers - after.get((row.pool, row.host_id), 0))
            self.drained += gone
            if self.are_busy:
                worker = self._worker(row, WorkerState.DRAINING)
                self.draining += [(DRAIN_EVALUATIONS, row.host_id, worker)] * gone
        self.rows = rows
        self._check_that_all_fit()

    def _check_that_all_fit(self) -> None:
        """Those that drain count as well."""
        leaving = [
            Assignment(pool=f"{worker.pool}, leaving", host_id=host_id, template=worker.template, base_workers=1)
            for _, host_id, worker in self.draining
        ]
        for room in HostCapacities(self.hosts, held=[*self.rows, *leaving]).by_host.values():
            assert min(room.left) >= 0, room.host_id

    def notes(self, pool: str) -> tuple[str, ...]:
        return next(each.decision.notes for each in self.outcomes if each.decision.pool == pool)


SMALL, LARGE, HUGE = template("small", 1.0), template("large", 4.0), template("huge", 12.0)


def hosts(count: int, cores: float, templates: Sequence[Template] = (SMALL, LARGE, HUGE)) -> list[Host]:
    return [
        Host(
            host_id=f"h{number}",
            name=f"h{number}",
            capacity=HostCapacity(cpu_cores=cores, memory_bytes=2**30),
            templates=tuple(templates),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("are_busy", [True, False], ids=["busy", "idle"])
@pytest.mark.parametrize(
    ("fleet", "small", "pool", "floor", "left"),
    [
        (hosts(2, 4.0), 8, "large", 1, 4),  # 2 × 4 cores are full of one-core workers; a host is cleared
        (hosts(4, 16.0), 64, "huge", 2, 40),  # 4 × 16 - 2 × 12
    ],
    ids=["two hosts of 4 cores", "four hosts of 16 cores"],
)
def test_a_floor_of_large_workers_gets_its_place_among_small_ones(
    fleet: list[Host], small: int, pool: str, floor: int, left: int, are_busy: bool
) -> None:
    installation = Fleet(hosts=fleet, wanted={"small": ("small", small)}, floors={}, are_busy=are_busy)
    installation.evaluate()
    assert placed_workers(installation.rows) == {"small": small}
    installation.wanted[pool] = (pool, floor)
    installation.floors[pool] = floor
    installation.evaluate(12)
    assert placed_workers(installation.rows) == installation.targets == {"small": left, pool: floor}
    assert installation.drained == small - left  # no one moved in vain
    assert installation.notes(pool) == ()


def test_floors_of_mixed_sizes_fit_on_empty_hosts() -> None:
    """Spread evenly, the small ones would leave two cores on each host, and nowhere four."""
    installation = Fleet(
        hosts=hosts(2, 4.0), wanted={"small": ("small", 4), "large": ("large", 1)}, floors={"small": 4, "large": 1}
    )
    installation.evaluate()
    assert placed_workers(installation.rows) == installation.targets == {"small": 4, "large": 1}


def test_a_wish_of_the_same_priority_clears_no_host_of_busy_workers() -> None:
    installation = Fleet(hosts=hosts(2, 4.0), wanted={"small": ("small", 8)}, floors={})
    installation.evaluate()
    installation.wanted["large"] = ("large", 1)
    installation.evaluate(12)
    assert placed_workers(installation.rows) == {"small": 8}
    assert installation.targets == {"small": 8, "large": 0}
    assert installation.drained == 0
    assert installation.notes("large") == (
        "there is capacity for 1 more, but no host has enough for one: other pools make room only for a workers_min",
    )


def test_a_floor_that_has_no_place_says_which_why_and_what_would_help() -> None:
    installation = Fleet(
        hosts=hosts(2, 4.0),
        wanted={"small": ("small", 8), "large": ("large", 2)},
        floors={"small": 1, "large": 2},
    )
    installation.evaluate(12)
    assert placed_workers(installation.rows) == installation.targets == {"small": 4, "large": 1}
    expected_note = (
        "workers_min 2: 1 placed; beside what is guaranteed no host has 4 cores left at once "
        "(most: 3 cores on host h1); add a host of 4 cores, or lower what small is guaranteed"
    )
    assert installation.notes("large") == (expected_note,)
    decision = next(each.decision for each in installation.outcomes if each.decision.pool == "large")
    assert (decision.binding, decision.steps[-1]) == ("share", Step(name="share", workers=1))


@pytest.mark.parametrize(
    ("fleet", "note"),
    [
        (
            hosts(2, 4.0),
            (
                "workers_min 1: 0 placed; one takes 12 cores, and no host is that large "
                "(largest: 4 cores on host h0); add a host of 12 cores"
            ),
        ),
        (
            [replace(each, state=HostState.CORDONED) for each in hosts(2, 16.0)],
            (
                "workers_min 1: 0 placed; every host with template 'huge' is cordoned (h0, h1); "
                "uncordon one or add a host of 12 cores"
            ),
        ),
    ],
    ids=["too large", "cordoned"],
)
def test_a_floor_that_fits_on_no_host_at_all_says_so_every_time_alike(fleet: list[Host], note: str) -> None:
    installation = Fleet(hosts=fleet, wanted={"huge": ("huge", 1), "small": ("small", 3)}, floors={"huge": 1})
    for _ in range(3):
        installation.evaluate()
        assert installation.notes("huge") == (note,)
        assert installation.targets["huge"] == 0
