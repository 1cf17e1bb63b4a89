"""Installations with workers of several sizes, drawn for tests, and a plain search for places to judge by."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from hypothesis import strategies as st

from headway.scaling.allocation.fair_share import Claim
from headway.scaling.allocation.grants import Allotment, allotted
from headway.scaling.model import Assignment, Host, HostState, Template, Worker, WorkerState
from headway.scaling.placement.host_capacity import RemainingCapacity
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import PoolTarget
from support.hosts import any_host

HOSTS_MAX = 6
FLOORS_MAX = 12
SIZES = [(1, 0), (1, 2), (2, 1), (2, 3), (3, 1), (4, 0), (4, 4), (5, 2)]
"""Cores and bytes of one worker."""


def template(name: str, cpu_cores: float, memory_bytes: int = 0, gpus: int = 0) -> Template:
    return Template(name=name, content_hash="1", cpu_cores=cpu_cores, memory_bytes=memory_bytes, gpus=gpus)


TEMPLATES = tuple(template(f"t{number}", float(cores), size) for number, (cores, size) in enumerate(SIZES))


def host(name: str, cpu_cores: float, memory_bytes: int = 100, **values: Any) -> Host:
    return any_host(name, cpu_cores=cpu_cores, memory_bytes=memory_bytes, **{"templates": TEMPLATES, **values})


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Hosts with workers in place, and what is claimed."""

    hosts: tuple[Host, ...]
    claims: tuple[Claim, ...]
    current: tuple[Assignment, ...]

    def allotted(self) -> Allotment:
        targets = [target_of(claim) for claim in self.claims]
        return allotted(targets, self.hosts, self.current, claims=lambda: self.claims)

    @property
    def floors(self) -> dict[str, int]:
        return {claim.pool: min(claim.guaranteed_workers, claim.workers) for claim in self.claims}


def target_of(claim: Claim) -> PoolTarget:
    return PoolTarget(
        pool=claim.pool,
        template=claim.template,
        workers=claim.workers,
        priority=claim.priority,
        labels=claim.labels,
    )


def counts(rows: Iterable[Assignment]) -> dict[tuple[str, str], int]:
    return {(row.pool, row.host_id): row.workers for row in rows}


def busy_workers(hosts: Iterable[Host]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for each in hosts:
        for worker in each.workers:
            if worker.is_busy is not False:
                found[worker.pool, each.host_id] = found.get((worker.pool, each.host_id), 0) + 1
    return found


def placed(rows: Iterable[Assignment]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        found[row.pool] = found.get(row.pool, 0) + row.workers
    return found


HOSTS = st.tuples(
    st.integers(0, 9),
    st.sampled_from([4, 8, 100]),
    st.sampled_from([TEMPLATES, TEMPLATES, TEMPLATES[:5], TEMPLATES[3:], TEMPLATES[::2]]),
    st.sampled_from([HostState.SERVING] * 5 + [HostState.CORDONED]),
    st.sampled_from([{}, {"disk": "ssd"}]),
)
CLAIMS = st.tuples(
    st.sampled_from(TEMPLATES),
    st.integers(0, 4),
    st.sampled_from([0, 0, 1, 2, 3, 6]),
    st.integers(1, 2),
    st.sampled_from([{}, {}, {}, {"disk": "ssd"}]),
)


@st.composite
def drawn(
    draw: st.DrawFn, *, hosts_max: int = HOSTS_MAX, claims_max: int = HOSTS_MAX, floors_max: int = FLOORS_MAX
) -> Drawn:
    """At most so many guaranteed workers on so many hosts: some cordoned, labelled, or short of a template."""
    hosts = [
        host(f"h{number:02}", cores, size, templates=templates, state=state, labels=labels)
        for number, (cores, size, templates, state, labels) in enumerate(
            draw(st.lists(HOSTS, min_size=1, max_size=hosts_max))
        )
    ]
    left = floors_max
    claims = []
    for number, (template, floor, more, priority, labels) in enumerate(
        draw(st.lists(CLAIMS, min_size=1, max_size=claims_max))
    ):
        floor = min(floor, left)
        left -= floor
        claims.append(
            Claim(
                pool=f"pool-{number}",
                template=template.name,
                workers=floor + more,
                guaranteed_workers=floor,
                priority=priority,
                labels=labels,
            )
        )
    # What is in place is much to draw and little to shrink.
    rng = random.Random(draw(st.integers(0, 10_000)))
    current = in_place(hosts, claims, rng)
    return Drawn(hosts=working(hosts, current, rng), claims=tuple(claims), current=current)


@st.composite
def filled(draw: st.DrawFn) -> Drawn:
    """Up to twelve guaranteed workers that fill up to six hosts, so that they fit; where they ran before is random."""
    sizes = draw(st.lists(HOSTS, min_size=2, max_size=HOSTS_MAX))
    rng = random.Random(draw(st.integers(0, 10_000)))
    hosts = [host(f"h{at:02}", cores, size, templates=can_run) for at, (cores, size, can_run, _, _) in enumerate(sizes)]
    floors: dict[str, int] = {}
    for each in hosts:
        room = RemainingCapacity(each)
        while sum(floors.values()) < FLOORS_MAX and (fitting := [one for one in room.costs if room.fitting(one)]):
            chosen = rng.choice(fitting)
            room.take(chosen, 1)
            floors[chosen] = floors.get(chosen, 0) + 1
    claims = [
        Claim(pool=f"of-{name}", template=name, workers=workers, guaranteed_workers=workers)
        for name, workers in sorted(floors.items())
    ]
    current = in_place(hosts, claims, rng)
    return Drawn(hosts=working(hosts, current, rng), claims=tuple(claims), current=current)


def with_one_more_host(case: Drawn) -> Drawn:
    """The same with an empty host that is as large as any and can run everything."""
    cores = max(each.capacity.cpu_cores for each in case.hosts)
    size = max(each.capacity.memory_bytes for each in case.hosts)
    return replace(case, hosts=(*case.hosts, host("more", cores, size, labels={"disk": "ssd"})))


def in_place(hosts: Sequence[Host], claims: Sequence[Claim], rng: random.Random) -> tuple[Assignment, ...]:
    """Rows that fit, as earlier evaluations may have left them."""
    rooms = HostCapacities(hosts)
    rows = []
    most = rng.choice([0, 1, 3, 6])
    places = list(product(claims, hosts))
    for claim, each in rng.sample(places, len(places)):
        kind = rooms.kind(claim.template, claim.labels)
        if workers := rooms.by_host[each.host_id].keep(kind, rng.randint(0, most)):
            rows.append(
                Assignment(pool=claim.pool, host_id=each.host_id, template=claim.template, base_workers=workers)
            )
    return tuple(rows)


def working(hosts: Sequence[Host], rows: Sequence[Assignment], rng: random.Random) -> tuple[Host, ...]:
    """The hosts with the workers of ``rows``, some of which have a job."""
    busy = rng.choice([0.0, 0.3, 0.7, 1.0])
    found: dict[str, list[Worker]] = {each.host_id: [] for each in hosts}
    for row in rows:
        found[row.host_id] += [
            worker(row, is_busy=True if rng.random() < busy else rng.choice([False, False, None]))
            for _ in range(row.workers)
        ]
    return tuple(replace(each, workers=tuple(found[each.host_id])) for each in hosts)


def worker(row: Assignment, *, is_busy: bool | None, state: WorkerState = WorkerState.RUNNING) -> Worker:
    return Worker(
        worker_id="w", pool=row.pool, template=row.template, pid=1, state=state, started_at_s=0.0, is_busy=is_busy
    )


def followed(case: Drawn, rows: Sequence[Assignment]) -> Drawn:
    """The same once hosts did as ``rows`` say: what must go has gone, idle ones first, and what is new starts."""
    hosts = []
    for each in case.hosts:
        workers: list[Worker] = []
        for row in rows:
            if row.host_id == each.host_id:
                there = sorted(
                    (one for one in each.workers if one.pool == row.pool), key=lambda one: one.is_busy is False
                )
                new = worker(row, is_busy=None, state=WorkerState.STARTING)
                workers += [*there[: row.workers], *[new] * (row.workers - len(there))]
        hosts.append(replace(each, workers=tuple(workers)))
    return replace(case, hosts=tuple(hosts), current=tuple(rows))


def do_floors_fit(case: Drawn) -> bool:
    """Whether there is a place for every guaranteed worker, were nobody else there: all ways are tried.

    What a cordoned host has stays there, and nothing comes to it.
    """
    shut = {each.host_id for each in case.hosts if each.state is not HostState.SERVING}
    owed = []
    for claim in case.claims:
        kept = sum(row.workers for row in case.current if row.pool == claim.pool and row.host_id in shut)
        owed.append(max(0, min(claim.guaranteed_workers, claim.workers) - kept))
    left = {tuple(owed)}
    for each in case.hosts:
        if each.host_id not in shut:
            left = {after for before in left for after in _after(each, case.claims, before)}
    return any(not any(owed) for owed in left)


def _after(each: Host, claims: Sequence[Claim], owed: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """What may be owed still, once a host was filled in any way."""
    costs = {one.name: one for one in each.templates}
    able = [costs.get(claim.template) if claim.labels.items() <= each.labels.items() else None for claim in claims]
    for fill in product(*(range(workers + 1 if cost else 1) for workers, cost in zip(owed, able, strict=True))):
        cores = sum(cost.cpu_cores * workers for workers, cost in zip(fill, able, strict=True) if cost)
        size = sum(cost.memory_bytes * workers for workers, cost in zip(fill, able, strict=True) if cost)
        if cores <= each.capacity.cpu_cores and size <= each.capacity.memory_bytes:
            yield tuple(before - workers for before, workers in zip(owed, fill, strict=True))
