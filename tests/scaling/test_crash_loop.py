"""What dies everywhere is not asked for in greater numbers."""

import pytest

from headway.scaling.decide import decide
from headway.scaling.explain import explained
from headway.scaling.model import Host, HostState, Template
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.policy.limits import crash_loop
from support.hosts import any_host
from support.pools import NOW_S, ground_of, held, profile, queue, view

MAIL = Template(name="mail", content_hash="1")
LATE = queue(waiting_jobs=50, oldest_age_s=60.0)


@pytest.mark.parametrize(
    ("last", "asked", "left"),
    [
        (0, 50, 1),  # one tells when it is well again
        (3, 50, 3),
        (3, 2, 2),  # fewer are as welcome as ever
        (3, 0, 0),
    ],
)
def test_a_pool_that_fails_everywhere_gets_no_more_than_it_had(last: int, asked: int, left: int) -> None:
    ground = ground_of(view(is_failing=True), last=last)
    assert crash_loop(asked, ground) == left


def test_the_decision_says_so_and_what_to_do() -> None:
    decision, _ = decide(view(LATE, is_failing=True), held(2), now_s=NOW_S)
    assert (decision.target_workers, decision.binding) == (2, "crash_loop")
    assert any("fails on every host" in note for note in decision.notes)


def test_nobody_predicts_when_a_worker_that_only_fails_takes_a_job() -> None:
    for values in ({}, {"starting_workers": 2}, {"running_workers": 2}):
        decision, _ = decide(
            view(queue(waiting_jobs=1), start_up_s=1.4, is_failing=True, **values), held(2), now_s=NOW_S
        )
        assert decision.predicted_pickup_s is None
        text = " ".join(explained(decision))
        assert "The wait of a new job is unknown: the workers of its template crash." in text
        assert "should start" not in text


def test_the_floor_is_kept_to_all_the_same() -> None:
    seen = view(LATE, is_failing=True, profile=profile(workers_min=4))
    assert decide(seen, held(0), now_s=NOW_S)[0].target_workers == 4


def test_where_nothing_fails_no_decision_mentions_it() -> None:
    decision, _ = decide(view(LATE), held(2), now_s=NOW_S)
    assert "crash_loop" not in {step.name for step in decision.steps}


def host(name: str, *, is_failing: bool, state: HostState = HostState.SERVING) -> Host:
    failing = frozenset({"mail"} if is_failing else ())
    return any_host(name, memory_bytes=2**30, templates=(MAIL,), failing=failing, state=state)


@pytest.mark.parametrize(
    ("hosts", "does_fail"),
    [
        ([], False),
        ([host("a", is_failing=True)], True),
        ([host("a", is_failing=True), host("b", is_failing=False)], False),
        ([host("a", is_failing=True), host("b", is_failing=False, state=HostState.CORDONED)], True),
    ],
)
def test_a_template_fails_where_it_fails_on_every_host_that_may_get_a_worker(
    hosts: list[Host], does_fail: bool
) -> None:
    assert HostCapacities(hosts).does_fail("mail") is does_fail
