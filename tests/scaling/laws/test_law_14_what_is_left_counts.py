"""Law 14. Each process that a worker start leaves counts against the bounds until it is gone.

A worker that ended without anybody's word has left something: its agent starts no other in its place. Fleets of every
kind, in which each worker that drains, or what one has left, keeps its place or has none.
"""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.scaling.model import COUNTED, Assignment, Inability, Worker, WorkerState
from headway.scaling.reconcile import Drain, Start, Upkeep, reconcile

SEARCH = settings(max_examples=max(60, 2 * settings.default.max_examples))
"""4,000 fleets under the profile ``searching``."""
ALIVE = (WorkerState.STARTING, WorkerState.RUNNING, WorkerState.BACKING_OFF, WorkerState.DRAINING, WorkerState.UNKNOWN)


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[Worker], frozenset[str]]:
    """The workers of one pool on one host, and the ids of those that keep their places though they drain."""
    states = draw(st.lists(st.sampled_from(ALIVE), max_size=10))
    workers = [
        Worker(
            worker_id=f"w{number}",
            pool="mail",
            template="mail",
            pid=number + 1,
            state=state,
            started_at_s=float(number),
            # One that starts has hardly had the time to take a job.
            is_busy=draw(st.sampled_from([True, False, None])) if state is not WorkerState.STARTING else None,
            is_left_behind=state is WorkerState.DRAINING and draw(st.booleans()),
            inability=draw(st.sampled_from([None, None, Inability.STOPPED])) if state is WorkerState.RUNNING else None,
        )
        for number, state in enumerate(states)
    ]
    draining = [each.worker_id for each in workers if each.state is WorkerState.DRAINING]
    return workers, frozenset(draw(st.lists(st.sampled_from(draining), unique=True)) if draining else ())


def assigned(workers: int) -> list[Assignment]:
    return [Assignment(pool="mail", host_id="h", template="mail", base_workers=workers)]


@SEARCH
@given(fleets(), st.integers(0, 10))
def test_no_start_takes_a_place_that_is_kept(fleet: tuple[list[Worker], frozenset[str]], wanted: int) -> None:
    """Only to replace one may there be one more for a while."""
    workers, keeping = fleet
    actions = reconcile(workers, assigned(wanted), upkeep=Upkeep(keeping_places=keeping))
    starts = sum(isinstance(action, Start) for action in actions)
    there = Counter(worker.state for worker in workers)
    counted = sum(there[state] for state in COUNTED) - (len(actions) - starts)
    # A worker that failed backs off in the place that what it left keeps: together they take the greater.
    kept = max(0, len(keeping) - there[WorkerState.BACKING_OFF])
    replaced = any(worker.inability is not None for worker in workers)
    assert starts == 0 or counted + kept + starts <= wanted + replaced


@SEARCH
@given(fleets(), st.integers(0, 10))
def test_a_place_that_is_kept_only_delays_starts(fleet: tuple[list[Worker], frozenset[str]], wanted: int) -> None:
    """It ends nothing, and once what kept it is gone, all is started that was wanted."""
    workers, keeping = fleet
    with_kept = reconcile(workers, assigned(wanted), upkeep=Upkeep(keeping_places=keeping))
    gone = [each for each in workers if each.worker_id not in keeping]
    without = reconcile(gone, assigned(wanted))
    assert [each for each in with_kept if isinstance(each, Drain)] == [
        each for each in without if isinstance(each, Drain)
    ]
    assert sum(isinstance(each, Start) for each in with_kept) <= sum(isinstance(each, Start) for each in without)


@SEARCH
@given(fleets(), st.integers(0, 10))
def test_who_takes_no_jobs_leaves_before_who_does(fleet: tuple[list[Worker], frozenset[str]], wanted: int) -> None:
    workers, keeping = fleet
    by_id = {each.worker_id: each for each in workers}
    actions = reconcile(workers, assigned(wanted), upkeep=Upkeep(keeping_places=keeping))
    left = {action.worker_id for action in actions if isinstance(action, Drain)}
    goes = [by_id[worker_id] for worker_id in left]
    stays = [each for each in workers if each.worker_id not in left and each.state is WorkerState.RUNNING]
    if any(each.state is WorkerState.RUNNING and each.inability is None for each in goes):
        assert all(each.inability is None for each in stays)


def test_each_of_two_places_that_are_kept_is_one_start_less() -> None:
    left = [
        Worker(worker_id=name, pool="mail", template="mail", pid=1, state=WorkerState.DRAINING, started_at_s=0.0)
        for name in ("a", "b")
    ]
    actions = reconcile(left, assigned(5), upkeep=Upkeep(keeping_places=frozenset({"a", "b"})))
    assert len(actions) == 3


def test_a_worker_that_backs_off_and_what_it_left_take_one_place() -> None:
    failed = [
        Worker(worker_id=name, pool="mail", template="mail", pid=1, state=state, started_at_s=0.0)
        for name, state in (("a", WorkerState.BACKING_OFF), ("b", WorkerState.DRAINING))
    ]
    actions = reconcile(failed, assigned(2), upkeep=Upkeep(keeping_places=frozenset({"b"})))
    assert actions == (Start(pool="mail", template="mail"),)
