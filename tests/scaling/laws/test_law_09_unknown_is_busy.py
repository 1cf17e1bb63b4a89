"""Laws 5 and 9. Unknown is busy: it counts as work, it lowers nothing, and it leaves after idle workers, one at a time.

Fleets of every kind, and of each worker what somebody may say of it: that it is idle, that it is busy, or nothing.
"""

from dataclasses import replace
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.metrics.worker_evidence import SampledInstant, WorkerEvidence, evidence_of
from headway.scaling.model import ActivitySource, Assignment, Memory, RunningJob, Worker, WorkerState
from headway.scaling.reading.busy_slots import slots_of, with_unknown_as_idle
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.reconcile import Drain, reconcile
from headway.scaling.strategies import BUILT_IN
from headway.scaling.view import PoolView
from scaling.unseen import UnseenPool
from support.pools import NOW_S, profile, queue, view

SEARCH = settings(max_examples=max(60, 2 * settings.default.max_examples))
"""4,000 fleets under the profile ``searching``."""
IDLE, BUSY, UNKNOWN = False, True, None


@st.composite
def words(draw: st.DrawFn, slots: int) -> dict[str, Any]:
    """What somebody says of one worker with so many slots."""
    is_busy = draw(st.sampled_from([IDLE, BUSY, UNKNOWN]))
    jobs = draw(st.none() | st.integers(1, slots)) if is_busy else None
    since_s = draw(st.none() | st.floats(NOW_S - 600, NOW_S - 60)) if is_busy else None
    if since_s is None or not draw(st.booleans()):
        return {"is_busy": is_busy, "running_jobs": jobs, "busy_since_s": since_s}
    started_s = [since_s, *draw(st.lists(st.floats(since_s, NOW_S + 5), max_size=slots - 1))]
    return {
        "is_busy": is_busy,
        "running_jobs": len(started_s),
        "busy_since_s": since_s,
        "running": tuple(RunningJob(job_id="1", queue="mail", started_at_s=at_s) for at_s in started_s),
        "activity_source": ActivitySource.REPORTER,
        "activity_known_at_s": draw(st.floats(max(started_s), NOW_S + 5)),
    }


@st.composite
def fleets(draw: st.DrawFn) -> tuple[int, list[Worker]]:
    """Slots of a worker, and the workers of one pool on one host."""
    slots = draw(st.sampled_from([1, 1, 4]))
    found = draw(st.lists(words(slots), max_size=8))
    return slots, [
        Worker(
            worker_id=f"w{number}",
            pool="mail",
            template="mail",
            pid=number + 1,
            state=WorkerState.RUNNING,
            started_at_s=float(number),
            **word,
        )
        for number, word in enumerate(found)
    ]


QUEUES = st.fixed_dictionaries(
    {
        "waiting_jobs": st.sampled_from([0, 0, 0, 1, 5, 40]),
        "oldest_age_s": st.floats(0, 9),
        "service_time_s": st.none() | st.floats(0.01, 300),
        "arrival_rate_per_s": st.floats(0, 20),
        "start_rate_per_s": st.floats(0, 20),
        "completion_rate_per_s": st.floats(0, 20),
        "arrived_jobs": st.integers(0, 20),
    }
)
POOLS = st.fixed_dictionaries(
    {
        "starting_workers": st.sampled_from([0, 0, 1]),
        "leaving_workers": st.sampled_from([0, 0, 1]),
        "start_up_s": st.sampled_from([1.0, 8.0]),
    }
)


def evidence_now(workers: list[Worker], known: dict[str, Any]) -> WorkerEvidence:
    """What the words say of the instant of the sample."""
    instant = SampledInstant(at_s=NOW_S, service_time_s=known.get("service_time_s"))
    return evidence_of(workers, running_workers=len(workers), instant=instant)


def seen(slots: int, workers: list[Worker], known: dict[str, Any], pool: dict[str, Any]) -> PoolView:
    """The pool as a view builder shows it: what workers run stands in for a figure that is not known."""
    member = queue(**{"in_flight_jobs": None, **known})
    evidence = evidence_now(workers, known)
    is_uncounted = member.in_flight_jobs is None
    return view(
        member,
        slots_per_worker=slots,
        assigned_workers=len(workers) + pool["starting_workers"],
        running_workers=len(workers),
        idle_workers=evidence.idle_workers,
        unknown_activity_workers=evidence.unknown_workers,
        certain_jobs=evidence.certain_jobs,
        busy_workers=evidence.may_be_busy_workers if is_uncounted else None,
        busy_slots=min(evidence.most_slots(slots), len(workers) * slots) if is_uncounted else None,
        **pool,
    )


def target(known: PoolView, memory: Memory) -> int:
    return decide(known, memory, now_s=NOW_S)[0].target_workers


def demanded(known: PoolView) -> float:
    """The greatest demand of the default strategy, with every worker of unknown activity taken to be busy."""
    advice = BUILT_IN["hybrid"].advise(pooled(known.queues), known, {}, NOW_S)
    return max(demand.slots for demand in advice.demands)


FIGURES = st.none() | st.integers(0, 40)


@SEARCH
@given(fleet=fleets(), known=QUEUES, pool=POOLS, exact=FIGURES, least=st.integers(0, 40), data=st.data())
def test_an_idle_worker_of_which_nothing_is_known_any_more_lowers_nothing(
    fleet: tuple[int, list[Worker]],
    known: dict[str, Any],
    pool: dict[str, Any],
    exact: int | None,
    least: int,
    data: Any,
) -> None:
    slots, workers = fleet
    idle = [number for number, worker in enumerate(workers) if worker.is_busy is IDLE]
    assume(idle)
    chosen = data.draw(st.sampled_from(idle))
    blinded = [
        replace(worker, is_busy=UNKNOWN) if number == chosen else worker for number, worker in enumerate(workers)
    ]
    figures = {"in_flight_jobs": exact, "in_flight_min_jobs": least if exact is None else None}
    before, after = (seen(slots, each, known | figures, pool) for each in (workers, blinded))
    memory = Memory(target_workers=data.draw(st.integers(0, 12)))
    assert demanded(after) >= demanded(before) - 1e-9
    assert target(after, memory) >= target(before, memory)


@SEARCH
@given(fleet=fleets(), known=QUEUES, pool=POOLS, data=st.data())
def test_a_figure_that_is_not_known_any_more_lowers_no_demand_and_lets_one_worker_go_at_most(
    fleet: tuple[int, list[Worker]], known: dict[str, Any], pool: dict[str, Any], data: Any
) -> None:
    """The figure and the bound are true: no more run than have slots, and none where a worker is idle."""
    slots, workers = fleet
    evidence = evidence_now(workers, known)
    most = min(evidence.most_slots(slots), len(workers) * slots)
    exact = data.draw(st.integers(min(evidence.certain_jobs, most), most))
    least = data.draw(st.integers(0, exact))
    before = seen(slots, workers, known | {"in_flight_jobs": exact}, pool)
    after = seen(slots, workers, known | {"in_flight_min_jobs": least}, pool)
    memory = Memory(target_workers=data.draw(st.integers(0, 12)))
    assert demanded(after) >= demanded(before) - 1e-9
    is_any_asked = not (
        evidence.idle_workers or pool["leaving_workers"] or pool["starting_workers"] or known["waiting_jobs"]
    )
    assert target(after, memory) >= target(before, memory) - (is_any_asked and evidence.unknown_workers > 0)


@SEARCH
@given(fleet=fleets(), known=QUEUES, pool=POOLS, least=st.integers(0, 40))
def test_bounds_never_cross(
    fleet: tuple[int, list[Worker]], known: dict[str, Any], pool: dict[str, Any], least: int
) -> None:
    """At least so many as are known to run or to be in flight, at most what can run beside these."""
    slots, workers = fleet
    bounded = seen(slots, workers, known | {"in_flight_min_jobs": least}, pool)
    evidence = evidence_now(workers, known)
    fewest, most = (
        slots_of(each).busy(bounded.queues[0]) for each in (with_unknown_as_idle(bounded, slots_of(bounded)), bounded)
    )
    assert max(least, evidence.busy_workers) <= fewest <= most <= max(least, len(workers) * slots)
    assert (fewest == most) or evidence.unknown_workers


@st.composite
def spans(draw: st.DrawFn) -> list[tuple[float, float]]:
    """From when to when the jobs of one worker run: some for minutes, some for milliseconds."""
    starts = draw(st.lists(st.floats(NOW_S - 100, NOW_S + 5), max_size=4))
    return [(at_s, at_s + draw(st.sampled_from([0.002, 0.5, 20.0, 300.0]))) for at_s in starts]


@SEARCH
@given(
    jobs=st.lists(st.tuples(spans(), st.floats(-5, 20)), min_size=1, max_size=6),
    known=QUEUES,
    exact=st.integers(0, 20),
)
def test_no_fewer_jobs_are_counted_than_workers_certainly_ran_and_a_word_adds_none_for_longer_than_they_last(
    jobs: list[tuple[list[tuple[float, float]], float]], known: dict[str, Any], exact: int
) -> None:
    """Whatever the broker counts. Each worker reports its jobs some seconds before or after the sample."""
    workers, certain, possible = [], 0, 0
    for number, (of_worker, known_ago_s) in enumerate(jobs):
        known_at_s = NOW_S - known_ago_s
        named = [(start_s, end_s) for start_s, end_s in of_worker if start_s <= known_at_s < end_s]
        began = [(start_s, end_s) for start_s, end_s in named if start_s <= NOW_S]
        certain += len(began) if known_ago_s <= 0 else 0
        lasts_s = known["service_time_s"]
        possible += sum(lasts_s is None or known_ago_s <= max(lasts_s, known_at_s - start_s) for start_s, _ in began)
        workers.append(_reporting(number, [start_s for start_s, _ in named], known_at_s))
    view_now = seen(4, workers, known | {"in_flight_jobs": exact}, NOTHING_ELSE)
    assert max(exact, certain) <= slots_of(view_now).busy(view_now.queues[0]) <= max(exact, possible)


NOTHING_ELSE = {"starting_workers": 0, "leaving_workers": 0, "start_up_s": 1.0}


def _reporting(number: int, started_s: list[float], known_at_s: float) -> Worker:
    return Worker(
        worker_id=f"w{number}",
        pool="mail",
        template="mail",
        pid=number + 1,
        state=WorkerState.RUNNING,
        started_at_s=0.0,
        is_busy=bool(started_s),
        running_jobs=len(started_s),
        busy_since_s=min(started_s, default=None),
        running=tuple(RunningJob(job_id=f"{at_s}", queue="mail", started_at_s=at_s) for at_s in started_s),
        activity_source=ActivitySource.REPORTER,
        activity_known_at_s=known_at_s,
    )


@SEARCH
@given(fleet=fleets(), known=QUEUES, pool=POOLS, exact=FIGURES, least=st.integers(0, 40), last=st.integers(0, 12))
def test_who_is_asked_to_leave_is_idle_else_one_of_which_nobody_knows_what_it_does(
    fleet: tuple[int, list[Worker]],
    known: dict[str, Any],
    pool: dict[str, Any],
    exact: int | None,
    least: int,
    last: int,
) -> None:
    """Where nobody has asked for fewer. Who is busy stays as long as there is another."""
    slots, workers = fleet
    figures = {"in_flight_jobs": exact, "in_flight_min_jobs": least if exact is None else None}
    there = len(workers) + pool["starting_workers"]
    wanted = target(seen(slots, workers, known | figures, pool), Memory(target_workers=max(there, last)))
    row = Assignment(pool="mail", host_id="a", template="mail", base_workers=max(0, wanted - pool["starting_workers"]))
    asked = {action.worker_id for action in reconcile(workers, [row]) if isinstance(action, Drain)}
    gone, left = ([each for each in workers if (each.worker_id in asked) is is_gone] for is_gone in (True, False))
    if any(worker.is_busy is UNKNOWN for worker in workers):
        unknown_gone = [worker for worker in gone if worker.is_busy is UNKNOWN]
        assert not any(worker.is_busy is BUSY for worker in gone)
        assert len(unknown_gone) <= 1
        if unknown_gone:
            assert pool["leaving_workers"] == pool["starting_workers"] == known["waiting_jobs"] == 0
            assert not any(worker.is_busy is IDLE for worker in workers)
    if any(worker.is_busy is not BUSY for worker in left):
        assert not any(worker.is_busy is BUSY for worker in gone)


@SEARCH
@given(
    jobs_s=st.lists(st.sampled_from([0.0, 0.0, 7.0, 60.0, 180.0]), min_size=1, max_size=6),
    reports=st.lists(st.booleans(), min_size=6, max_size=6),
    floor=st.integers(0, 3),
    hold_s=st.sampled_from([0.0, 20.0]),
)
@example(jobs_s=[180.0] * 6, reports=[False] * 6, floor=0, hold_s=0.0)
def test_a_pool_comes_down_to_its_floor_and_cuts_into_no_more_than_one_job(
    jobs_s: list[float], reports: list[bool], floor: int, hold_s: float
) -> None:
    """Within 15 s a worker after the last end, with jobs that no broker sees and whoever reports what it does."""
    floor = min(floor, len(jobs_s))
    names = {f"w{number}": NOW_S + job_s if job_s else 0.0 for number, job_s in enumerate(jobs_s)}
    reporting = frozenset(name for name, does_report in zip(names, reports, strict=False) if does_report)
    pool = UnseenPool(profile=profile(workers_min=floor, hold_down_s=hold_s), ends_s=dict(names), reporting=reporting)
    last_end_s = max(NOW_S, *names.values()) + hold_s
    while len(pool.ends_s) > floor:
        assert pool.now_s <= last_end_s + 15.0 * len(jobs_s)
        staying = [pool.worker(name) for name in pool.ends_s if name not in pool.asked_s]
        idle_before = sum(worker.is_busy is IDLE for worker in staying)
        asked = pool.step()
        assert not any(worker.is_busy is BUSY for worker in asked)
        unknown_asked = sum(worker.is_busy is UNKNOWN for worker in asked)
        assert unknown_asked <= (0 if idle_before else 1)
        assert sum(name not in reporting for name in pool.asked_s) <= 1
    assert len(pool.ends_s) == floor
