from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.scaling.model import COUNTED, Assignment, Worker, WorkerState
from headway.scaling.reconcile import (
    DRAINING_FRACTION,
    RECONCILE_SURGE_WORKERS,
    Action,
    Drain,
    Start,
    Upkeep,
    reconcile,
)

RUNNING, STARTING = WorkerState.RUNNING, WorkerState.STARTING


def worker(worker_id: str, **values: Any) -> Worker:
    given = {"pool": "mail", "template": "rq", "pid": 1, "state": RUNNING, "started_at_s": 0.0}
    return Worker(worker_id=worker_id, **(given | values))


def row(base_workers: int, burst_workers: int = 0, **values: Any) -> Assignment:
    given = {"pool": "mail", "host_id": "a", "template": "rq"}
    return Assignment(base_workers=base_workers, burst_workers=burst_workers, **(given | values))


def applied(workers: list[Worker], actions: tuple[Action, ...], *, template_hash: str = "") -> list[Worker]:
    """The workers once ``actions`` have begun."""
    drained = {action.worker_id for action in actions if isinstance(action, Drain)}
    after = [replace(each, state=WorkerState.DRAINING) if each.worker_id in drained else each for each in workers]
    for number, action in enumerate(action for action in actions if isinstance(action, Start)):
        after.append(
            worker(
                f"new{len(workers)}-{number}",
                pool=action.pool,
                template=action.template,
                is_burst=action.is_burst,
                restart_generation=action.restart_generation,
                state=STARTING,
                template_hash=template_hash,
            )
        )
    return after


def drains(actions: tuple[Action, ...]) -> list[str]:
    return [action.worker_id for action in actions if isinstance(action, Drain)]


def starts(actions: tuple[Action, ...]) -> list[Start]:
    return [action for action in actions if isinstance(action, Start)]


def test_what_is_missing_is_started() -> None:
    actions = reconcile([worker("a")], [row(2, 1, restart_generation=0)])
    assert actions == (Start(pool="mail", template="rq"), Start(pool="mail", template="rq", is_burst=True))


def test_what_is_assigned_and_runs_is_left_alone() -> None:
    assert reconcile([worker("a"), worker("b", state=STARTING)], [row(2)]) == ()


def test_workers_of_a_pool_without_a_row_are_drained() -> None:
    assert drains(reconcile([worker("a"), worker("b", pool="web")], [row(1)])) == ["b"]


def test_a_draining_worker_does_not_count() -> None:
    assert starts(reconcile([worker("a", state=WorkerState.DRAINING)], [row(1)])) == [Start(pool="mail", template="rq")]


def test_a_worker_that_backs_off_holds_its_place_and_is_the_first_to_lose_it() -> None:
    waiting = worker("b", state=WorkerState.BACKING_OFF)
    assert reconcile([worker("a"), waiting], [row(2)]) == ()
    assert drains(reconcile([worker("a", is_busy=False), waiting], [row(1)])) == ["b"]


@pytest.mark.parametrize(
    ("stays", "goes"),
    [
        (worker("a", is_busy=False), worker("b", state=STARTING)),  # it serves nobody yet
        (worker("a", is_busy=True), worker("b", is_busy=False)),
        (worker("a", is_busy=None), worker("b", is_busy=False)),  # unknown is treated as busy
        (worker("a", state=STARTING, is_busy=True), worker("b", is_busy=False)),
        (worker("a", is_busy=True, busy_since_s=10.0), worker("b", is_busy=True, busy_since_s=20.0)),  # younger job
        (worker("a", is_busy=None, started_at_s=5.0), worker("b", is_busy=None, started_at_s=6.0)),  # younger worker
        (worker("a", is_busy=False, started_at_s=5.0), worker("b", is_busy=False, started_at_s=6.0)),
        (worker("a", is_busy=False, started_at_s=6.0, moves_due_jobs=True), worker("b", is_busy=False)),
        (worker("a", is_busy=None), worker("b", is_busy=False, moves_due_jobs=True)),
    ],
)
def test_least_is_lost_when_workers_must_go(stays: Worker, goes: Worker) -> None:
    assert drains(reconcile([stays, goes], [row(1)])) == [goes.worker_id]
    assert drains(reconcile([goes, stays], [row(1)])) == [goes.worker_id]


@pytest.mark.parametrize(
    ("b", "c", "base_workers", "gone"),
    [
        ({}, {}, 1, []),  # a is busy or idle: nobody knows yet whom the pool can do without
        ({"is_busy": True}, {}, 1, []),
        ({"is_busy": False}, {}, 1, ["b"]),  # known to be idle: it may go, and the next one must wait
        ({"is_busy": False}, {"is_busy": False}, 1, ["b", "c"]),
        ({"state": WorkerState.BACKING_OFF, "pid": 0}, {}, 1, ["b"]),
        ({}, {}, 0, ["c", "b", "a"]),  # all go: there is nothing to choose
        ({}, {}, 3, []),
    ],
)
def test_nobody_is_asked_to_leave_while_it_is_about_to_be_known_who_is_busy(
    b: dict[str, Any], c: dict[str, Any], base_workers: int, gone: list[str]
) -> None:
    there = [worker("a"), worker("b", started_at_s=1.0, **b), worker("c", started_at_s=2.0, **c)]
    actions = reconcile(there, [row(base_workers)], upkeep=Upkeep(awaited=["a"]))
    assert sorted(drains(actions)) == sorted(gone)
    suspended = reconcile(there, [row(base_workers, is_suspended=True)], upkeep=Upkeep(awaited=["a"]))
    assert sorted(drains(suspended)) == sorted(gone)
    assert len(drains(reconcile(there, [row(base_workers)], upkeep=Upkeep(awaited=["d"])))) == 3 - base_workers


def test_base_and_burst_workers_do_not_stand_in_for_each_other() -> None:
    actions = reconcile([worker("a", is_burst=True)], [row(1)])
    assert (drains(actions), starts(actions)) == (["a"], [Start(pool="mail", template="rq")])


def test_a_spent_burst_place_stays_empty() -> None:
    assert reconcile([], [row(0, 2)], spent={"mail": 2}) == ()
    assert len(reconcile([], [row(0, 2)], spent={"mail": 1})) == 1
    assert len(reconcile([], [row(0, 2)], spent={"web": 9})) == 2


def test_outdated_workers_are_replaced_one_by_one_and_none_goes_before_its_replacement_runs() -> None:
    wanted = [row(3, restart_generation=1)]
    workers = [worker(name) for name in ("a", "b", "c")]
    serving_min, steps = 3, 0
    while actions := reconcile(workers, wanted):
        workers = [each for each in applied(workers, actions) if each.state in COUNTED]
        serving_min = min(serving_min, sum(each.state is RUNNING for each in workers))
        assert len(workers) <= 3 + RECONCILE_SURGE_WORKERS
        workers = [replace(each, state=RUNNING) for each in workers]
        steps += 1
    assert {each.restart_generation for each in workers} == {1}
    assert (len(workers), serving_min, steps) == (3, 3, 4)


def test_a_replacement_that_does_not_come_up_costs_no_worker() -> None:
    wanted = [row(2, restart_generation=1)]
    there = [worker("a"), worker("b"), worker("c", state=WorkerState.BACKING_OFF, restart_generation=1)]
    assert reconcile(there, wanted) == ()


def test_another_template_replaces_workers_as_another_generation_does() -> None:
    actions = reconcile([worker("a")], [row(1, template="rq2")])
    assert actions == (Start(pool="mail", template="rq2"),)
    assert drains(reconcile([worker("a"), worker("b", template="rq2")], [row(1, template="rq2")])) == ["a"]


def test_scaling_down_amid_a_restart_drains_the_outdated_first() -> None:
    there = [worker("a", is_busy=False), worker("b"), worker("c", restart_generation=1)]
    assert drains(reconcile(there, [row(1, restart_generation=1)])) == ["a", "b"]


def test_a_changed_template_replaces_its_workers_and_one_that_is_not_known_here_replaces_none() -> None:
    there = [worker("a", template_hash="old"), worker("b", template_hash="new")]
    changed = Upkeep(template_hashes={"rq": "new"})
    assert starts(reconcile(there, [row(2)], upkeep=changed)) == [Start(pool="mail", template="rq")]
    assert reconcile(there, [row(2)], upkeep=Upkeep(template_hashes={"other": "new"})) == ()


def test_a_worn_worker_goes_when_its_replacement_runs_the_idle_one_first() -> None:
    there = [worker("a", is_busy=True), worker("b", is_busy=False), worker("c", is_busy=False)]
    worn = Upkeep(worn={"a", "b"})
    assert reconcile(there, [row(3)], upkeep=worn) == (Start(pool="mail", template="rq"),)
    assert drains(reconcile([*there, worker("d")], [row(3)], upkeep=worn)) == ["b"]


def test_the_first_replacement_must_prove_that_it_stays() -> None:
    """A release that dies a few seconds after its start would else take the place of one worker after the other."""
    there = [worker("a"), worker("b"), worker("new", restart_generation=1)]
    wanted = [row(2, restart_generation=1)]
    assert reconcile(there, wanted, upkeep=Upkeep(unproven={"new"})) == ()
    assert len(drains(reconcile(there, wanted))) == 1
    cramped = Upkeep(unproven={"new"}, cramped={"rq"})
    assert reconcile(there[1:], wanted, upkeep=cramped) == ()
    assert drains(reconcile(there[1:], wanted, upkeep=replace(cramped, unproven=()))) == ["b"]


def test_once_one_has_proved_itself_the_others_count_as_soon_as_they_run() -> None:
    there = [worker("a"), worker("old", restart_generation=1), worker("new", restart_generation=1)]
    assert drains(reconcile(there, [row(2, restart_generation=1)], upkeep=Upkeep(unproven={"new"}))) == ["a"]


def test_unproven_workers_are_no_reason_to_start_more_or_to_keep_too_many() -> None:
    young = Upkeep(unproven={"a", "b", "c"})
    assert reconcile([worker("a"), worker("b")], [row(2)], upkeep=young) == ()
    assert len(drains(reconcile([worker("a"), worker("b"), worker("c")], [row(1)], upkeep=young))) == 2


def test_of_an_exclusive_pool_one_ends_before_another_starts() -> None:
    wanted = [row(1, restart_generation=1, is_exclusive=True)]
    old = worker("old")
    assert reconcile([old], wanted) == (Drain(worker_id="old"),)
    assert reconcile([replace(old, state=WorkerState.DRAINING)], wanted) == ()  # however long its job takes
    (start,) = reconcile([replace(old, state=WorkerState.GONE)], wanted)
    assert start == Start(pool="mail", template="rq", restart_generation=1)


def test_an_exclusive_pool_of_three_is_never_more_than_one_short() -> None:
    wanted = [row(3, restart_generation=1, is_exclusive=True)]
    old, renewed = [worker(name) for name in "abc"], worker("new", restart_generation=1)
    assert len(drains(reconcile(old, wanted))) == 1
    assert reconcile([*old[1:], replace(old[0], state=WorkerState.DRAINING)], wanted) == ()
    assert len(starts(reconcile(old[1:], wanted))) == 1
    assert reconcile([*old[1:], replace(renewed, state=STARTING)], wanted) == ()
    assert len(drains(reconcile([*old[1:], renewed], wanted))) == 1


@pytest.mark.parametrize("wears_out", [{"template_hashes": {"rq": "new"}}, {"worn": {"old"}}])
def test_an_exclusive_pool_does_not_overlap_either_where_its_host_replaces_it(wears_out: dict[str, Any]) -> None:
    wanted, upkeep = [row(1, is_exclusive=True)], Upkeep(**wears_out)
    assert reconcile([worker("old")], wanted, upkeep=upkeep) == (Drain(worker_id="old"),)
    assert reconcile([worker("old", state=WorkerState.DRAINING)], wanted, upkeep=upkeep) == ()


def test_what_an_exclusive_pool_gets_back_waits_for_what_it_just_let_go() -> None:
    leaving = worker("old", state=WorkerState.DRAINING)
    assert reconcile([leaving], [row(1, is_exclusive=True)]) == ()
    assert len(starts(reconcile([leaving], [row(2, is_exclusive=True)]))) == 1


def test_while_many_still_finish_their_jobs_no_more_are_replaced() -> None:
    """Else a pool with long jobs would run twice, and take the memory of two."""
    outdated = [worker(f"{number}") for number in range(8)]
    finishing = [worker(f"d{number}", state=WorkerState.DRAINING) for number in range(3)]
    wanted = [row(8, restart_generation=1)]
    assert len(finishing) > DRAINING_FRACTION * 8
    assert reconcile([*outdated, *finishing], wanted) == ()
    assert len(starts(reconcile([*outdated, *finishing[1:]], wanted))) == 1


def test_where_there_is_no_room_for_one_more_one_goes_first_and_the_next_once_its_replacement_runs() -> None:
    cramped = Upkeep(template_hashes={"rq": "new"}, cramped={"rq"})
    there = [worker("a", template_hash="old", is_busy=False), worker("b", template_hash="old")]
    first = reconcile(there, [row(2)], upkeep=cramped)
    assert (drains(first), len(starts(first))) == (["a"], 1)
    leaving = replace(there[0], state=WorkerState.DRAINING)
    waiting = reconcile([leaving, there[1]], [row(2)], upkeep=cramped)  # its place is not free yet
    assert (drains(waiting), len(starts(waiting))) == ([], 1)
    coming = worker("c", template_hash="new", state=STARTING)
    assert reconcile([coming, there[1]], [row(2)], upkeep=cramped) == ()
    assert drains(reconcile([replace(coming, state=RUNNING), there[1]], [row(2)], upkeep=cramped)) == ["b"]


# --- what no record tells of -----------------------------------------------------------------------------------------


def test_what_is_not_known_to_be_a_worker_takes_a_place_and_nobody_is_ended_for_it() -> None:
    unknown = worker("u", state=WorkerState.UNKNOWN, template="", restart_generation=0)
    assert starts(reconcile([unknown], [row(3)])) == starts(reconcile([worker("a")], [row(3)]))
    assert reconcile([unknown, worker("a")], [row(1)]) == ()
    assert drains(reconcile([unknown, worker("a"), worker("b")], [row(1)])) != []
    assert reconcile([unknown], []) == ()
    assert reconcile([unknown], [row(1, restart_generation=5)]) == (), "nor is it replaced"
    assert reconcile([unknown], [replace(row(1), is_exclusive=True)]) == ()


def test_reconcile_counts_a_worker_of_an_unknown_pool_in_any_pool() -> None:
    unknown = worker("u", pool="", state=WorkerState.UNKNOWN)
    assert len(starts(reconcile([unknown], [row(1), row(2, pool="web")]))) == 2
    assert len(starts(reconcile([], [row(1), row(2, pool="web")]))) == 3


# --- laws ------------------------------------------------------------------------------------------------------------

POOLS = st.sampled_from(["mail", "web"])
WORKERS = st.lists(
    st.builds(
        worker,
        st.integers(0, 99).map(str),
        pool=POOLS,
        template=st.sampled_from(["rq", "rq2"]),
        state=st.sampled_from([*WorkerState]),
        started_at_s=st.floats(0, 100),
        is_burst=st.booleans(),
        is_busy=st.sampled_from([None, False, True]),
        busy_since_s=st.none() | st.floats(0, 100),
        restart_generation=st.integers(0, 2),
        template_hash=st.sampled_from(["old", "new"]),
    ),
    max_size=12,
    unique_by=lambda each: each.worker_id,
)
ROWS = st.lists(
    st.builds(row, st.integers(0, 5), st.integers(0, 3), pool=POOLS, restart_generation=st.integers(0, 2)),
    unique_by=lambda each: each.pool,
)
SPENT = st.dictionaries(POOLS, st.integers(0, 3))
UPKEEPS = st.builds(
    Upkeep,
    template_hashes=st.dictionaries(st.sampled_from(["rq", "rq2"]), st.just("new")),
    worn=st.sets(st.integers(0, 99).map(str)),
    cramped=st.sets(st.just("rq")),
    unproven=st.sets(st.integers(0, 99).map(str)),
)


@given(WORKERS, ROWS, SPENT)
def test_reconciling_twice_does_nothing_the_second_time(
    workers: list[Worker], rows: list[Assignment], spent: dict[str, int]
) -> None:
    after = applied(workers, reconcile(workers, rows, spent=spent))
    assert reconcile(after, rows, spent=spent) == ()


@given(WORKERS, ROWS, SPENT)
def test_only_workers_that_count_are_drained_and_each_once(
    workers: list[Worker], rows: list[Assignment], spent: dict[str, int]
) -> None:
    drained = drains(reconcile(workers, rows, spent=spent))
    assert len(set(drained)) == len(drained)
    assert set(drained) <= {each.worker_id for each in workers if each.state in COUNTED - {WorkerState.UNKNOWN}}


@given(WORKERS, ROWS, SPENT)
def test_no_pool_gets_more_than_assigned_but_for_one_replacement(
    workers: list[Worker], rows: list[Assignment], spent: dict[str, int]
) -> None:
    after = applied(workers, reconcile(workers, rows, spent=spent))
    for each in rows:
        for is_burst, count in (
            (False, each.base_workers),
            (True, max(0, each.burst_workers - spent.get(each.pool, 0))),
        ):
            there = [
                found
                for found in after
                if (found.pool, found.is_burst) == (each.pool, is_burst) and found.state in COUNTED
            ]
            assert count <= len(there) <= max(count + RECONCILE_SURGE_WORKERS, len(workers))
            if any(found.state is WorkerState.UNKNOWN for found in there):
                continue  # nobody is ended for what may be none
            if all(found.template == "rq" and found.restart_generation >= each.restart_generation for found in there):
                assert len(there) == count


@given(WORKERS, ROWS, SPENT)
def test_one_pools_workers_change_nothing_for_another(
    workers: list[Worker], rows: list[Assignment], spent: dict[str, int]
) -> None:
    both = reconcile(workers, rows, spent=spent)
    for pool in ("mail", "web"):
        mine = [each for each in workers if each.pool == pool]
        alone = reconcile(mine, [each for each in rows if each.pool == pool], spent=spent)
        ids = {each.worker_id for each in mine}
        assert [
            action for action in both if (action.pool == pool if isinstance(action, Start) else action.worker_id in ids)
        ] == list(alone)


@given(WORKERS, ROWS, SPENT, st.randoms())
def test_the_same_workers_in_another_order_have_the_same_to_do(
    workers: list[Worker], rows: list[Assignment], spent: dict[str, int], rng: Any
) -> None:
    shuffled = rng.sample(workers, len(workers))
    assert reconcile(shuffled, rows, spent=spent) == reconcile(workers, rows, spent=spent)


@given(WORKERS, ROWS)
def test_workers_that_become_ready_always_end_in_what_is_assigned(
    workers: list[Worker], rows: list[Assignment]
) -> None:
    for _ in range(100):
        actions = reconcile(workers, rows)
        if not actions and all(each.state is RUNNING for each in workers):
            break
        workers = [
            replace(each, worker_id=f"{number}", state=RUNNING)
            for number, each in enumerate(applied(workers, actions))
            if each.state in COUNTED
        ]
    counts = {(each.pool, is_burst): 0 for each in rows for is_burst in (False, True)}
    for each in workers:
        assert each.template == "rq"
        counts[each.pool, each.is_burst] += 1
    assert counts == {
        (each.pool, is_burst): count
        for each in rows
        for is_burst, count in ((False, each.base_workers), (True, each.burst_workers))
    }


@given(WORKERS, ROWS, SPENT, UPKEEPS)
def test_upkeep_done_twice_does_nothing_the_second_time(
    workers: list[Worker], rows: list[Assignment], spent: dict[str, int], upkeep: Upkeep
) -> None:
    after = applied(workers, reconcile(workers, rows, spent=spent, upkeep=upkeep), template_hash="new")
    assert reconcile(after, rows, spent=spent, upkeep=upkeep) == ()


def is_current(found: Worker, wanted: Assignment, upkeep: Upkeep) -> bool:
    return (
        found.template == "rq"
        and found.restart_generation >= wanted.restart_generation
        and upkeep.template_hashes.get("rq", found.template_hash) == found.template_hash
        and found.worker_id not in upkeep.worn
    )


def does_serve(found: Worker) -> bool:
    """Whether it runs, or has a job though it is not known to be ready yet."""
    return found.state is RUNNING or (found.state is STARTING and found.is_busy is True)


ONE_STARTS_WITH_A_JOB = [
    worker("a", template_hash="old", state=STARTING, is_busy=True),
    *(worker(name, template_hash="old", is_busy=None) for name in "bc"),
]


@given(WORKERS, ROWS, UPKEEPS)
@example(ONE_STARTS_WITH_A_JOB, [row(3)], Upkeep(template_hashes={"rq": "new"}, cramped={"rq"}))
def test_upkeep_takes_away_no_serving_worker_before_another_runs_and_but_one_where_there_is_no_room(
    workers: list[Worker], rows: list[Assignment], upkeep: Upkeep
) -> None:
    drained = set(drains(reconcile(workers, rows, upkeep=upkeep)))
    for each, is_burst in ((each, is_burst) for each in rows for is_burst in (False, True)):
        count = each.burst_workers if is_burst else each.base_workers
        serving = [found for found in workers if (found.pool, found.is_burst) == (each.pool, is_burst)]
        serving = [found for found in serving if does_serve(found)]
        left = sum(found.worker_id not in drained or is_current(found, each, upkeep) for found in serving)
        assert left >= min(len(serving), count - (each.template in upkeep.cramped))


@given(WORKERS, ROWS, UPKEEPS)
def test_upkeep_adds_no_more_than_one_worker_to_what_is_assigned_and_none_where_there_is_no_room(
    workers: list[Worker], rows: list[Assignment], upkeep: Upkeep
) -> None:
    added = starts(reconcile(workers, rows, upkeep=upkeep))
    for each, is_burst in ((each, is_burst) for each in rows for is_burst in (False, True)):
        count = each.burst_workers if is_burst else each.base_workers
        new = sum((start.pool, start.is_burst) == (each.pool, is_burst) for start in added)
        there = [
            found
            for found in workers
            if (found.pool, found.is_burst) == (each.pool, is_burst) and found.state in COUNTED
        ]
        surge = 0 if each.template in upkeep.cramped else RECONCILE_SURGE_WORKERS
        assert new == 0 or len(there) - len(_drained_of(there, workers, rows, upkeep)) + new <= count + surge


def _drained_of(there: list[Worker], workers: list[Worker], rows: list[Assignment], upkeep: Upkeep) -> list[Worker]:
    drained = drains(reconcile(workers, rows, upkeep=upkeep))
    return [each for each in there if each.worker_id in drained]


@given(WORKERS, ROWS, UPKEEPS)
def test_upkeep_comes_to_an_end_with_what_is_assigned_all_of_it_current(
    workers: list[Worker], rows: list[Assignment], upkeep: Upkeep
) -> None:
    ended: set[str] = set()
    upkeep = replace(upkeep, unproven=())  # time passes
    for turn in range(200):
        actions = reconcile(workers, rows, upkeep=upkeep)
        if not actions and all(each.state is RUNNING for each in workers):
            break
        going = [each.worker_id for each in workers if each.state is WorkerState.DRAINING]
        ended.update(going)
        workers = [
            replace(each, worker_id=f"t{turn}-{number}" if each.state is STARTING else each.worker_id, state=RUNNING)
            if each.state in COUNTED
            else each
            for number, each in enumerate(applied(workers, actions, template_hash="new"))
            if each.worker_id not in going and each.state is not WorkerState.GONE
        ]
    assert reconcile(workers, rows, upkeep=upkeep) == ()
    counts = {(each.pool, is_burst): 0 for each in rows for is_burst in (False, True)}
    for each in workers:
        assert each.template == "rq"
        assert each.worker_id not in upkeep.worn
        assert upkeep.template_hashes.get("rq", each.template_hash) == each.template_hash
        counts[each.pool, each.is_burst] += 1
    assert counts == {
        (each.pool, is_burst): count
        for each in rows
        for is_burst, count in ((False, each.base_workers), (True, each.burst_workers))
    }


@given(WORKERS, ROWS, UPKEEPS, st.data())
def test_of_an_exclusive_pool_no_more_than_assigned_ever_exist_and_in_the_end_all_are_current(
    workers: list[Worker], rows: list[Assignment], upkeep: Upkeep, data: Any
) -> None:
    workers = [each for each in workers if each.state is not WorkerState.UNKNOWN]  # which only a person ends
    rows = [replace(each, is_exclusive=True, burst_workers=0) for each in rows]
    most = {each.pool: each.base_workers for each in rows}

    def existing() -> dict[str, int]:
        return {
            pool: sum(each.pool == pool and each.state is not WorkerState.GONE for each in workers) for pool in most
        }

    # What ran before it was exclusive may be too much; from then on it only falls.
    bound = {pool: max(most[pool], count) for pool, count in existing().items()}
    upkeep = replace(upkeep, worn=frozenset(), unproven=frozenset())
    new = upkeep.template_hashes.get("rq", "")
    for step in range(200):
        workers = applied(workers, reconcile(workers, rows, upkeep=upkeep), template_hash=new)
        now = existing()
        assert all(now[pool] <= bound[pool] for pool in most)
        bound = {pool: max(most[pool], now[pool]) for pool in most}
        ready = [replace(each, state=RUNNING) if each.state is STARTING else each for each in workers]
        may_end = [each.worker_id for each in ready if each.state is WorkerState.DRAINING]
        ended = set(may_end) if step > 20 else data.draw(st.sets(st.sampled_from(may_end))) if may_end else set()
        workers = [
            replace(each, state=RUNNING) if each.state is WorkerState.BACKING_OFF else each
            for each in ready
            if each.worker_id not in ended
        ]
        if step > 20 and not reconcile(workers, rows, upkeep=upkeep):
            break
    assert all(existing()[pool] == count for pool, count in most.items())
