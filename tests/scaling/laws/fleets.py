"""Whole fleets for the laws of placing and reconciling: pools decided on hosts, and the workers that follow."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import Assignment, Host, HostCapacity, Memory, Objective, Template, Worker, WorkerState
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.profile import Profile
from headway.scaling.reconcile import Action, Drain, Start, reconcile
from headway.scaling.view import PoolView
from support.pools import NOW_S, queue

TURNS_MAX = 50  # more than any host here has workers to replace one by one
TEMPLATE = Template(name="rq", content_hash="1", cpu_cores=1.0, memory_bytes=100)

HOSTS = st.lists(
    st.builds(
        lambda name, cpu_cores, memory, is_known: Host(
            host_id=name,
            name=name,
            capacity=HostCapacity(cpu_cores=float(cpu_cores), memory_bytes=memory),
            templates=(TEMPLATE,),
            is_known=is_known,
        ),
        st.sampled_from("abcd"),
        st.integers(0, 16),
        st.integers(0, 2_000),
        st.sampled_from([True, True, True, False]),
    ),
    unique_by=lambda host: host.host_id,
)


@st.composite
def pools(draw: st.DrawFn, hosts: Sequence[Host]) -> tuple[Outcome, ...]:
    """Pools decided each as if it were alone on ``hosts``."""
    names = draw(st.lists(st.sampled_from(["mail", "news", "video"]), unique=True))
    return tuple(draw(outcomes(name, hosts)) for name in names)


@st.composite
def outcomes(draw: st.DrawFn, pool: str, hosts: Sequence[Host]) -> Outcome:
    low = draw(st.integers(0, 5))
    profile = Profile(
        pool=pool,
        queues=(f"redis/{pool}",),
        template=TEMPLATE.name,
        objective=Objective(target_s=10.0),
        workers_min=low,
        workers_max=low + draw(st.integers(0, 30)),
        priority=draw(st.integers(1, 3)),
        strategy=draw(st.sampled_from(["hybrid", "fixed"])),
    )
    view = PoolView(
        profile=profile,
        queues=(queue(queue=f"redis/{pool}", waiting_jobs=draw(st.integers(0, 500)), oldest_age_s=1.0),),
        start_up_s=2.0,
        capacity_workers=HostCapacities(hosts).capacity(TEMPLATE.name),
    )
    before = Memory(target_workers=draw(st.integers(0, 30)))
    decision, memory = decide(view, before, now_s=NOW_S)
    return Outcome(view=view, before=before, decision=decision, memory=memory)


def rows_of(host_id: str, rows: Iterable[Assignment]) -> list[Assignment]:
    return [row for row in rows if row.host_id == host_id]


WORKERS = st.lists(
    st.builds(
        Worker,
        worker_id=st.integers(0, 10_000).map(str),
        pool=st.sampled_from(["mail", "news", "video", "gone"]),
        template=st.sampled_from([TEMPLATE.name, "old"]),
        pid=st.just(1),
        state=st.sampled_from(list(WorkerState)),
        started_at_s=st.floats(0, 1_000),
        is_burst=st.booleans(),
        is_busy=st.none() | st.booleans(),
        busy_since_s=st.none() | st.floats(0, 1_000),
        restart_generation=st.integers(0, 2),
    ),
    max_size=20,
    unique_by=lambda worker: worker.worker_id,
)


def begun(workers: Iterable[Worker], actions: Sequence[Action]) -> list[Worker]:
    """The workers once ``actions`` have begun."""
    drained = {action.worker_id for action in actions if isinstance(action, Drain)}
    left = [
        replace(worker, state=WorkerState.DRAINING) if worker.worker_id in drained else worker for worker in workers
    ]
    started = [
        Worker(
            worker_id=f"new-{number}-of-{len(left)}",
            pool=action.pool,
            template=action.template,
            pid=1,
            state=WorkerState.STARTING,
            started_at_s=NOW_S,
            is_burst=action.is_burst,
            restart_generation=action.restart_generation,
        )
        for number, action in enumerate(action for action in actions if isinstance(action, Start))
    ]
    return [*left, *started]


def come_up(workers: Iterable[Worker], rows: Sequence[Assignment]) -> list[Worker]:
    """The workers once all that started is ready, all that drained has gone and nothing is left to do."""
    there = list(workers)
    for turn in range(TURNS_MAX):
        actions = reconcile(there, rows)
        if not actions and not any(worker.state is WorkerState.STARTING for worker in there):
            return there
        ready = [
            replace(worker, worker_id=f"{worker.worker_id}.{turn}", state=WorkerState.RUNNING)
            if worker.state is WorkerState.STARTING
            else worker
            for worker in begun(there, actions)
        ]
        there = [worker for worker in ready if worker.state is not WorkerState.DRAINING]
    raise AssertionError(f"no rest after {TURNS_MAX} turns")
