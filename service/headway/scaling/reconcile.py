"""What a host must start and drain so that it runs what it was assigned. Doing it and asking again yields nothing more.

Draining workers do not count: they are on their way out. A worker that backs off counts: its place is taken, and it is
started again when its pause is over. What is not known to be a worker takes a place that nothing is started for; it is
not ended, and no known worker is ended for it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headway.scaling.model import COUNTED, Assignment, Worker, WorkerState

RECONCILE_SURGE_WORKERS = 1  # how many more than wanted run while outdated workers are replaced
DRAINING_FRACTION = (
    0.25  # of a pool's workers: more do not finish their jobs beside their replacements, which take room
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start one worker."""

    pool: str
    template: str
    is_burst: bool = False
    restart_generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Ask one worker to finish what it is doing and end."""

    worker_id: str


Action = Start | Drain


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What makes a worker outdated beside its assignment, and which may only be replaced once they are gone."""

    template_hashes: Mapping[str, str] = field(default_factory=dict)
    """Template -> its hash now. A worker of one that is not named here is not outdated by it."""
    worn: Collection[str] = frozenset()
    """Ids of workers that have served for long enough."""
    cramped: Collection[str] = frozenset()
    """Templates of which no worker more than wanted has room: there one goes first and is replaced then."""
    unproven: Collection[str] = frozenset()
    """Ids of workers that have not run for long enough to show that they stay."""
    keeping_places: Collection[str] = frozenset()
    """Ids of workers that drain, or that one has left, without anybody's word: no other is started in their place."""
    spared: Collection[str] = frozenset()
    """Ids of workers that take no jobs and are not replaced for it: perhaps nobody is to take any."""
    awaited: Collection[str] = frozenset()
    """Ids of workers that are about to report what they do, to an agent that has just begun."""


AS_IS = Upkeep()


def reconcile(
    workers: Iterable[Worker],
    assignments: Iterable[Assignment],
    *,
    spent: Mapping[str, int] | None = None,
    upkeep: Upkeep = AS_IS,
) -> tuple[Action, ...]:
    """The actions that turn ``workers`` of one host into its ``assignments``.

    Workers of a pool without a row are drained. Where some must go, those without a job go first, then those of which
    nobody knows whether they have one, then those whose job is the youngest. Outdated workers (of an older restart
    generation, another or a changed template, worn, or taking no jobs) are replaced one by one: one goes when its
    replacement runs; of a cramped template the replacement comes when one went. The first replacement must prove that
    it stays: one that only dies a little later costs none of those that work. Of an exclusive pool no more than
    assigned ever exist, draining ones included: there, too, one goes first. Of a suspended pool none is started and
    none is replaced: what is too much still goes. While a worker is about to report what it does, and some of its pool
    stay, only known idle ones of the pool go: the choice is made once the agent knows which are busy.

    Args:
        workers: every worker of the host.
        assignments: all that the host is to run, at most one row a pool.
        spent: pool -> burst workers that ended by themselves under this revision; their places stay empty.
        upkeep: what else makes workers outdated.
    """
    wanted = {row.pool: row for row in assignments}
    present: dict[tuple[str, bool], list[Worker]] = {}
    draining: dict[tuple[str, bool], int] = {}
    unknown: dict[tuple[str, bool], int] = {}
    kept: dict[tuple[str, bool], int] = {}
    existing: dict[str, int] = {}
    for worker in workers:
        place = (worker.pool, worker.is_burst)
        if worker.state is not WorkerState.GONE:
            existing[worker.pool] = existing.get(worker.pool, 0) + 1
        if worker.worker_id in upkeep.keeping_places:
            kept[place] = kept.get(place, 0) + 1
        elif worker.state is WorkerState.UNKNOWN:
            unknown[place] = unknown.get(place, 0) + 1
        elif worker.state in COUNTED:
            present.setdefault(place, []).append(worker)
        elif worker.state is WorkerState.DRAINING:
            draining[place] = draining.get(place, 0) + 1
    places = set(present) | {(pool, is_burst) for pool in wanted for is_burst in (False, True)}
    actions: list[Action] = []
    for pool, is_burst in sorted(places):
        row, there = wanted.get(pool), present.get((pool, is_burst), [])
        if row is None:
            actions += _drains(there, len(there))
            continue
        if row.is_suspended:  # whoever is started now would take jobs that nobody shall take, or end at once
            stay = row.burst_workers if is_burst else row.base_workers
            actions += _without_guesses(_drains(there, len(there) - stay), there, stay=stay, upkeep=upkeep)
            continue
        count = max(0, row.burst_workers - (spent or {}).get(pool, 0)) if is_burst else row.base_workers
        start = Start(pool=pool, template=row.template, is_burst=is_burst, restart_generation=row.restart_generation)
        finishing = draining.get((pool, is_burst), 0)
        free = row.workers - existing.get(pool, 0) if row.is_exclusive else None
        due = _of_one_place(_Place.of(there, start, count=count, draining=finishing, free=free, upkeep=upkeep))
        due = _without_guesses(due, there, stay=count, upkeep=upkeep)
        # A worker that failed and left something backs off in the place that its remains keep: it is one place.
        backing_off = sum(worker.state is WorkerState.BACKING_OFF for worker in there)
        taken = max(0, kept.get((pool, is_burst), 0) - backing_off)
        due = _without_starts(due, unknown.get((pool, is_burst), 0) + taken)
        existing[pool] = existing.get(pool, 0) + sum(isinstance(action, Start) for action in due)
        actions += due
    # Of what may be any pool's, nobody knows where it takes a place.
    return tuple(_without_starts(actions, unknown.get(("", False), 0)))


def _without_starts(actions: Sequence[Action], count: int) -> list[Action]:
    """The actions less so many starts, the last first."""
    starts = sum(isinstance(action, Start) for action in actions)
    kept, left = [], max(0, starts - count)
    for action in actions:
        if isinstance(action, Start):
            if not left:
                continue
            left -= 1
        kept.append(action)
    return kept


def _without_guesses(actions: list[Action], there: Sequence[Worker], *, stay: int, upkeep: Upkeep) -> list[Action]:
    """The actions of one place, without drains of workers that may be busy while the report of another is awaited."""
    if not stay or not any(worker.worker_id in upkeep.awaited for worker in there):
        return actions
    may_go = {worker.worker_id for worker in there if worker.is_busy is False or not worker.pid}
    return [each for each in actions if isinstance(each, Start) or each.worker_id in may_go]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The base or the burst workers of one pool."""

    start: Start
    count: int
    """How many there shall be."""
    outdated: Sequence[Worker]
    current: Sequence[Worker]
    draining: int
    is_cramped: bool
    """One goes before its replacement comes."""
    free: int | None
    """How many more may exist, whatever is missing; ``None``: as many as it takes."""
    unproven: Collection[str]

    @classmethod
    def of(
        cls, there: Iterable[Worker], start: Start, *, count: int, draining: int, free: int | None, upkeep: Upkeep
    ) -> "_Place":
        """The place in which ``there`` is what counts, and ``start`` is what shall be there."""
        current: list[Worker] = []
        outdated: list[Worker] = []
        for worker in there:
            (outdated if _is_outdated(worker, start, upkeep) else current).append(worker)
        return cls(
            start=start,
            count=count,
            outdated=outdated,
            current=current,
            draining=draining,
            is_cramped=start.template in upkeep.cramped or free is not None,
            free=free,
            unproven=upkeep.unproven,
        )

    @property
    def running(self) -> int:
        """Current workers that run, none of them until one has proved that such workers stay."""
        running = [worker.worker_id for worker in self.current if worker.state is WorkerState.RUNNING]
        return len(running) if any(worker_id not in self.unproven for worker_id in running) else 0


def _of_one_place(place: _Place) -> list[Action]:
    """What makes the place into ``count`` current workers, in as many rounds as it takes."""
    missing = place.count - len(place.current)
    # An outdated worker holds its place until a replacement runs. What is too much of the current ones goes anyway.
    kept = min(len(place.outdated), max(0, place.count - place.running))
    if place.is_cramped:
        kept, surge = min(kept, _kept_in_little_room(place)), 0
    else:
        surge = RECONCILE_SURGE_WORKERS if kept and place.draining <= DRAINING_FRACTION * place.count else 0
    starts = min(missing, missing - kept + surge)
    return [
        *_drains(place.outdated, len(place.outdated) - kept),
        *_drains(place.current, -missing),
        *[place.start] * (starts if place.free is None else min(starts, place.free)),
    ]


def _kept_in_little_room(place: _Place) -> int:
    """Outdated workers that stay where no more than ``count`` fit: one goes before its replacement comes, once all is
    calm. So many go that no more than ``count`` are left, and so few that no more than one is missed.
    """
    missing = place.count - len(place.current)
    is_calm = place.running == len(place.current) and place.draining == 0 and missing <= len(place.outdated)
    return max(missing - int(is_calm), place.count - place.running - 1, 0)


def _is_outdated(worker: Worker, wanted: Start, upkeep: Upkeep) -> bool:
    return (
        worker.template != wanted.template
        or worker.restart_generation < wanted.restart_generation
        or upkeep.template_hashes.get(wanted.template, worker.template_hash) != worker.template_hash
        or worker.worker_id in upkeep.worn
        or (worker.inability is not None and worker.worker_id not in upkeep.spared)
    )


def _drains(workers: Sequence[Worker], count: int) -> list[Action]:
    return [Drain(worker_id=worker.worker_id) for worker in sorted(workers, key=_cost_of_leaving)[: max(0, count)]]


def _cost_of_leaving(worker: Worker) -> tuple[bool, bool, int, bool, float, float, str]:
    """Orders workers by what is lost when they go: idle ones, then those of which nobody knows, then busy ones.

    Of each kind, one that moves due jobs into their queue is the last. Those that take no jobs go before all that do,
    in the same order: whatever they do, they serve nobody who waits.
    """
    if worker.state is WorkerState.STARTING and not worker.is_busy:
        rank = 0  # it has hardly had the time to take a job, and serves nobody yet
    elif worker.is_busy is False:
        rank = 1
    elif worker.is_busy is None:
        rank = 2  # it may be idle
    else:
        rank = 3
    busy_since_s = worker.started_at_s if worker.busy_since_s is None else worker.busy_since_s
    is_up, is_able = worker.state is not WorkerState.BACKING_OFF, worker.inability is None
    return is_up, is_able, rank, worker.moves_due_jobs, -busy_since_s, -worker.started_at_s, worker.worker_id
