"""Every edge of the drawing in lifecycle.py, and no other: a test for each, named after it."""

import re
import sys

import pytest

from headway.agent.workers import lifecycle
from headway.agent.workers.crash_backoff import CRASH_WITHIN_S
from headway.agent.workers.lifecycle import Life
from headway.scaling.model import WorkerState

STARTED_S = 100.0
STATES = {
    WorkerState.STARTING: lifecycle.spawned(now_s=STARTED_S, is_burst=False),
    WorkerState.RUNNING: lifecycle.ready(lifecycle.spawned(now_s=STARTED_S, is_burst=False), now_s=101.0),
    WorkerState.DRAINING: lifecycle.stop_requested(lifecycle.spawned(now_s=STARTED_S, is_burst=False), now_s=101.0),
    WorkerState.BACKING_OFF: lifecycle.held_back(now_s=STARTED_S, is_burst=False),
    WorkerState.GONE: lifecycle.over(lifecycle.held_back(now_s=STARTED_S, is_burst=False), now_s=101.0),
}


def life(state: WorkerState, *, is_burst: bool = False) -> Life:
    found = STATES[state]
    return Life(state=found.state, started_at_s=found.started_at_s, since_s=found.since_s, is_burst=is_burst)


def test_wanted_to_starting_spawned() -> None:
    made = lifecycle.spawned(now_s=5.0, is_burst=True)
    assert made == Life(state=WorkerState.STARTING, started_at_s=5.0, since_s=5.0, is_burst=True)


def test_wanted_to_backing_off_it_cannot_be_spawned() -> None:
    assert lifecycle.held_back(now_s=5.0, is_burst=False).state is WorkerState.BACKING_OFF


def test_starting_to_running_ready() -> None:
    after = lifecycle.ready(life(WorkerState.STARTING), now_s=103.0)
    assert (after.state, after.since_s, after.started_at_s) == (WorkerState.RUNNING, 103.0, STARTED_S)


def test_starting_to_draining_not_ready_in_time_counts_as_a_failure() -> None:
    after = lifecycle.late(life(WorkerState.STARTING), now_s=160.0)
    assert (after.state, after.has_failed) == (WorkerState.DRAINING, True)


def test_starting_to_draining_asked_to_stop() -> None:
    after = lifecycle.stop_requested(life(WorkerState.STARTING), now_s=105.0)
    assert (after.state, after.since_s, after.has_failed) == (WorkerState.DRAINING, 105.0, False)


def test_running_to_draining_asked_to_stop() -> None:
    after = lifecycle.stop_requested(life(WorkerState.RUNNING), now_s=105.0)
    assert (after.state, after.since_s, after.has_failed) == (WorkerState.DRAINING, 105.0, False)


def test_draining_to_draining_signalled_and_its_deadline_stays() -> None:
    before = lifecycle.stop_requested(life(WorkerState.RUNNING), now_s=105.0)
    after = lifecycle.signalled(before)
    assert (before.is_being_told, after.is_being_told) == (True, False)
    assert (after.state, after.since_s) == (WorkerState.DRAINING, 105.0)


def test_draining_to_draining_perhaps_never_signalled_it_gets_all_its_time() -> None:
    after = lifecycle.stop_repeated(life(WorkerState.DRAINING), now_s=170.0)
    assert (after.state, after.since_s, after.is_being_told) == (WorkerState.DRAINING, 170.0, True)


def test_draining_to_draining_it_reports_that_it_does_not_stop_and_is_asked_again() -> None:
    signalled = lifecycle.signalled(lifecycle.stop_requested(life(WorkerState.RUNNING), now_s=105.0))
    after = lifecycle.stop_repeated(signalled, now_s=115.0)
    assert (after.state, after.since_s, after.is_being_told) == (WorkerState.DRAINING, 115.0, True)


def test_draining_to_draining_its_time_is_over_and_its_deadline_stays() -> None:
    before = life(WorkerState.DRAINING)
    after = lifecycle.forced(before)
    assert (after.state, after.is_forced, after.since_s) == (WorkerState.DRAINING, True, before.since_s)


@pytest.mark.parametrize("exit_code", [0, 1, -9, None])
def test_draining_to_gone_ended_however_it_ended(exit_code: int | None) -> None:
    after = lifecycle.ended(life(WorkerState.DRAINING), exit_code=exit_code, now_s=102.0)
    assert (after.state, after.exit_code, after.is_spent) == (WorkerState.GONE, exit_code, False)


def test_draining_to_backing_off_ended_when_it_had_failed_to_get_ready() -> None:
    late = lifecycle.late(life(WorkerState.STARTING), now_s=160.0)
    assert lifecycle.ended(late, exit_code=0, now_s=161.0).state is WorkerState.BACKING_OFF


@pytest.mark.parametrize("exit_code", [0, 1, -9, None])
def test_starting_to_backing_off_ended_before_it_was_ready(exit_code: int | None) -> None:
    """However late: a worker that takes a minute to come up and then dies is not started again at once."""
    after = lifecycle.ended(life(WorkerState.STARTING), exit_code=exit_code, now_s=STARTED_S + 60.0)
    assert after.state is WorkerState.BACKING_OFF


@pytest.mark.parametrize("age_s", [0.0, CRASH_WITHIN_S - 0.1])
def test_running_to_backing_off_ended_too_soon_to_have_been_of_use(age_s: float) -> None:
    after = lifecycle.ended(life(WorkerState.RUNNING), exit_code=1, now_s=STARTED_S + age_s)
    assert (after.state, after.has_failed) == (WorkerState.BACKING_OFF, True)


@pytest.mark.parametrize("age_s", [CRASH_WITHIN_S, 3600.0])
def test_running_to_gone_ended_later(age_s: float) -> None:
    after = lifecycle.ended(life(WorkerState.RUNNING), exit_code=1, now_s=STARTED_S + age_s)
    assert (after.state, after.has_failed) == (WorkerState.GONE, False)


def test_starting_to_gone_ended_when_its_end_was_due() -> None:
    after = lifecycle.ended(life(WorkerState.STARTING), exit_code=0, now_s=STARTED_S + 1.0, is_due=True)
    assert (after.state, after.has_failed, after.is_spent) == (WorkerState.GONE, False, False)


def test_running_to_gone_ended_when_its_end_was_due_however_soon() -> None:
    after = lifecycle.ended(life(WorkerState.RUNNING), exit_code=0, now_s=STARTED_S + 1.0, is_due=True)
    assert (after.state, after.has_failed, after.is_spent) == (WorkerState.GONE, False, False)


@pytest.mark.parametrize("exit_code", [0, None])
def test_starting_to_gone_a_burst_worker_that_found_nothing_to_do_is_spent(exit_code: int | None) -> None:
    """Also where nobody saw how: to refill the place of one that finds nothing to do would go on for ever."""
    after = lifecycle.ended(life(WorkerState.STARTING, is_burst=True), exit_code=exit_code, now_s=STARTED_S + 1.0)
    assert (after.state, after.is_spent) == (WorkerState.GONE, True)


@pytest.mark.parametrize("exit_code", [0, None])
def test_running_to_gone_the_same(exit_code: int | None) -> None:
    after = lifecycle.ended(life(WorkerState.RUNNING, is_burst=True), exit_code=exit_code, now_s=STARTED_S + 1.0)
    assert (after.state, after.is_spent) == (WorkerState.GONE, True)


def test_a_burst_worker_that_crashes_is_not_spent() -> None:
    crashed = lifecycle.ended(life(WorkerState.RUNNING, is_burst=True), exit_code=1, now_s=STARTED_S + 1.0)
    assert (crashed.state, crashed.is_spent) == (WorkerState.BACKING_OFF, False)


def test_a_burst_worker_that_was_asked_to_stop_is_not_spent() -> None:
    drained = lifecycle.stop_requested(life(WorkerState.RUNNING, is_burst=True), now_s=101.0)
    assert not lifecycle.ended(drained, exit_code=0, now_s=102.0).is_spent


def test_backing_off_to_gone_its_pause_is_over_or_nobody_wants_it() -> None:
    assert lifecycle.over(life(WorkerState.BACKING_OFF), now_s=110.0).state is WorkerState.GONE
    assert lifecycle.stop_requested(life(WorkerState.BACKING_OFF), now_s=110.0).state is WorkerState.GONE


MOVES = {
    "ready": (lambda each: lifecycle.ready(each, now_s=1.0), {WorkerState.STARTING}),
    "late": (lambda each: lifecycle.late(each, now_s=1.0), {WorkerState.STARTING}),
    "forced": (lifecycle.forced, {WorkerState.DRAINING}),
    "signalled": (lifecycle.signalled, {WorkerState.DRAINING}),
    "stop_repeated": (lambda each: lifecycle.stop_repeated(each, now_s=1.0), {WorkerState.DRAINING}),
    "over": (lambda each: lifecycle.over(each, now_s=1.0), {WorkerState.BACKING_OFF}),
    "stop_requested": (
        lambda each: lifecycle.stop_requested(each, now_s=1.0),
        {WorkerState.STARTING, WorkerState.RUNNING, WorkerState.BACKING_OFF},
    ),
    "ended": (
        lambda each: lifecycle.ended(each, exit_code=0, now_s=1.0),
        {WorkerState.STARTING, WorkerState.RUNNING, WorkerState.DRAINING},
    ),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("state", sorted({*WorkerState} - {WorkerState.UNKNOWN}))
def test_no_move_begins_where_the_drawing_has_none(move: str, state: WorkerState) -> None:
    make, allowed = MOVES[move]
    if state in allowed:
        make(life(state))
    else:
        with pytest.raises(AssertionError):
            make(life(state))


EDGE = re.compile(r"^    \(?(\w+)\)? +-> (\w+) +(.+)$", re.MULTILINE)


def test_each_edge_of_the_drawing_has_a_test_named_after_it() -> None:
    edges = EDGE.findall(lifecycle.__doc__ or "")
    assert len(edges) > 10
    drawn = {f"test_{before}_to_{after}_{_words(why)}" for before, after, why in edges}
    tests = {name for name in vars(sys.modules[__name__]) if name.startswith("test_")}
    assert sorted(edge for edge in drawn if not any(name.startswith(edge) for name in tests)) == []
    states_named = "|".join(("wanted", *WorkerState))
    named = {name for name in tests if re.match(f"test_({states_named})_to_({states_named})_", name)}
    assert sorted(name for name in named if not any(name.startswith(edge) for edge in drawn)) == []


def _words(why: str) -> str:
    """The first clause of a reason, as it stands in a name."""
    return re.split(r"[,:]|\bor\b", why)[0].strip().replace(" ", "_")
