from dataclasses import replace

import pytest

from headway.agent.desired_state import DesiredState
from headway.agent.policy.rollout import surplus
from headway.scaling.model import Assignment, Worker, WorkerState

ROW = Assignment(pool="mail", host_id="h", template="rq", base_workers=2)
IN_FORCE = DesiredState(cluster_id="c", epoch=5, revision=8, assignments=(ROW,))


@pytest.mark.parametrize(
    ("epoch", "revision", "is_newer"),
    [
        (5, 9, True),
        (6, 9, True),
        (6, 1, True),  # a restored database counts revisions again, under an epoch above the one we have seen
        (5, 8, False),
        (5, 7, False),
        (4, 99, False),  # a leader that was replaced
        (0, 0, False),  # nothing was ever decided: that is no order to stop everything
    ],
)
def test_an_older_epoch_or_revision_is_refused(epoch: int, revision: int, is_newer: bool) -> None:
    assert IN_FORCE.are_outdated_by(epoch=epoch, revision=revision) is is_newer


def test_revision_0_assigns_nothing_to_a_new_host() -> None:
    assert not DesiredState().are_outdated_by(epoch=0, revision=0)
    assert DesiredState().assignments is None


def test_in_another_cluster_the_assignment_stays_in_force_until_that_one_sends_another() -> None:
    moved = IN_FORCE.moved_to("d")
    assert moved.assignments == (ROW,)
    assert moved.are_outdated_by(epoch=1, revision=1)
    assert not moved.are_outdated_by(epoch=0, revision=0)


def test_where_nothing_can_be_started_nobody_leaves_for_a_replacement() -> None:
    """Of an exclusive pool, and of a template without room for one more, the old one goes first."""
    held = [
        Worker(worker_id=each, pool="mail", template="old", pid=1, state=WorkerState.RUNNING, started_at_s=0.0)
        for each in ("a", "b", "c")
    ]
    wanted = [Assignment(pool="mail", host_id="h", template="new", base_workers=2, restart_generation=3)]
    for row in (wanted[0], replace(wanted[0], is_exclusive=True)):
        assert len(surplus(held, [row])) == 1, "only what is too much"
    assert len(surplus(held, [])) == 3
    assert surplus(held[:1], wanted) == ()
