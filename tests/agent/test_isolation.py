from pathlib import Path

import pytest

from headway.agent.controlplane.isolation import FORGETTABLE_S, ISOLATION_FIRST_CALL_S, Contact, Isolation, unisolated
from headway.agent.policy.rollout import held_back
from headway.agent.state.state_dir import StateFolder
from headway.local import procfs
from headway.scaling.model import Assignment, Worker, WorkerState
from headway.store.hosts.host_lease import HOST_LEASE_S
from support.workers import template


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def contact(root: Path, clock: Clock) -> Contact:
    return Contact(StateFolder(root), clock=clock)


def test_it_counts_from_when_the_last_report_that_was_answered_was_sent(tmp_path: Path, clock: Clock) -> None:
    known = contact(tmp_path, clock)
    clock.now_s += 20.0
    known.received(sent_at_s=1_015.0)
    known.received(sent_at_s=1_012.0)  # an older one, answered later
    assert known.lost_for_s() == 5.0


def test_an_agent_that_has_just_begun_is_given_the_time_to_call(tmp_path: Path, clock: Clock) -> None:
    contact(tmp_path, clock).received(sent_at_s=1_000.0)
    clock.now_s += 500.0
    successor = contact(tmp_path, clock)
    assert successor.lost_for_s() == 0.0
    clock.now_s += ISOLATION_FIRST_CALL_S
    assert successor.lost_for_s() == 500.0 + ISOLATION_FIRST_CALL_S


def test_a_successor_that_was_answered_is_not_partitioned(tmp_path: Path, clock: Clock) -> None:
    contact(tmp_path, clock).received(sent_at_s=1_000.0)
    clock.now_s += 500.0
    successor = contact(tmp_path, clock)
    successor.received(sent_at_s=1_501.0)
    clock.now_s += ISOLATION_FIRST_CALL_S
    assert successor.lost_for_s() == ISOLATION_FIRST_CALL_S - 1.0


@pytest.mark.parametrize("written", ["", "{", '{"boot_id": "an-earlier-boot", "at_s": 3.0}', "{}"])
def test_without_word_of_this_boot_it_counts_from_its_own_beginning(tmp_path: Path, clock: Clock, written: str) -> None:
    (tmp_path / "contact.json").write_text(written)
    begun = contact(tmp_path, clock)
    clock.now_s += 60.0
    assert begun.lost_for_s() == 60.0


def test_contact_is_written_down_now_and_then_and_by_boot(tmp_path: Path, clock: Clock) -> None:
    known = contact(tmp_path, clock)
    known.received(sent_at_s=1_001.0)
    known.received(sent_at_s=1_002.0)
    known.received(sent_at_s=1_006.0)
    written = (tmp_path / "contact.json").read_text()
    assert '"at_s":1006.0' in written
    assert procfs.boot_id() in written


def test_only_templates_that_may_not_go_on_so_long_are_isolated_and_it_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    isolation = Isolation()
    limits_s = {"pinned": 30.0, "slower": 90.0}
    found = [isolation.templates(limits_s, lost_for_s=lost_for_s) for lost_for_s in (0.0, 29.9, 30.0, 31.0, 95.0, 1.0)]
    assert found == [set(), set(), {"pinned"}, {"pinned"}, {"pinned", "slower"}, set()]
    assert len(caplog.messages) == 4
    assert caplog.messages[0] == "partitioned for 30 s: draining the workers of template=pinned"


def test_an_isolated_templates_pools_are_left_out_of_what_is_to_run() -> None:
    rows = [
        Assignment(pool=pool, host_id="a", template=template, base_workers=1)
        for pool, template in (("mail", "pinned"), ("web", "plain"))
    ]
    assert unisolated(rows, {"pinned"}) == (rows[1],)
    assert unisolated(rows, ()) == tuple(rows)


PINNED = {"pinned": 30.0}


def test_what_was_partitioned_stays_doubtful_until_the_control_plane_has_confirmed_what_is_to_run(
    tmp_path: Path, clock: Clock
) -> None:
    known, isolation = contact(tmp_path, clock), Isolation()
    known.received(sent_at_s=clock.now_s)
    isolation.doubtful(PINNED, known)
    known.answered(asked_at_s=clock.now_s)
    clock.now_s += 29.0
    assert isolation.doubtful(PINNED, known) == set()
    clock.now_s += 2.0
    assert isolation.doubtful(PINNED, known) == {"pinned"}
    known.received(sent_at_s=clock.now_s)  # it is heard again, and has not been told yet
    clock.now_s += 1.0
    assert isolation.doubtful(PINNED, known) == {"pinned"}
    known.answered(asked_at_s=clock.now_s)
    assert isolation.doubtful(PINNED, known) == set()


def test_an_answer_from_before_this_host_reported_again_ends_no_doubt_and_it_is_asked_for_once_more(
    tmp_path: Path, clock: Clock
) -> None:
    """The poll is answered first: until a report arrives, what it lists may still be replaced elsewhere."""
    known, isolation = contact(tmp_path, clock), Isolation()
    known.received(sent_at_s=clock.now_s)
    clock.now_s += 31.0
    assert isolation.doubtful(PINNED, known) == {"pinned"}
    clock.now_s += 1.0
    known.answered(asked_at_s=clock.now_s)
    clock.now_s += 0.1
    assert isolation.doubtful(PINNED, known) == {"pinned"}, "it is cut off until it is heard"
    assert not isolation.wants_word, "asked now, it might have to be asked again"
    known.received(sent_at_s=clock.now_s)
    clock.now_s += 0.1
    found = [(isolation.doubtful(PINNED, known), isolation.wants_word) for _ in range(2)]
    assert found == [({"pinned"}, True), ({"pinned"}, False)], "asked for once"
    clock.now_s += 0.1
    known.answered(asked_at_s=clock.now_s)
    assert isolation.doubtful(PINNED, known) == set()


def test_a_host_that_was_never_cut_off_for_too_long_doubts_nothing(tmp_path: Path, clock: Clock) -> None:
    known, isolation = contact(tmp_path, clock), Isolation()
    known.received(sent_at_s=clock.now_s)
    isolation.doubtful(PINNED, known)
    known.answered(asked_at_s=clock.now_s)
    for _ in range(20):
        clock.now_s += 15.0
        known.received(sent_at_s=clock.now_s)
        assert isolation.doubtful(PINNED, known) == set()  # nobody need tell it anew


def test_an_agent_that_begins_on_a_host_that_is_cut_off_starts_nothing_on_its_predecessors_orders(
    tmp_path: Path, clock: Clock
) -> None:
    contact(tmp_path, clock).received(sent_at_s=clock.now_s)
    clock.now_s += 500.0
    successor, isolation = contact(tmp_path, clock), Isolation()
    successor.received(sent_at_s=clock.now_s)
    assert isolation.doubtful(PINNED, successor) == {"pinned"}
    assert isolation.wants_word
    successor.answered(asked_at_s=clock.now_s)
    assert isolation.doubtful(PINNED, successor) == set()


@pytest.mark.parametrize("written", ["", '{"boot_id": "an-earlier-boot", "at_s": 3.0}'])
def test_without_word_of_this_boot_nothing_is_started_on_what_was_ordered_before(
    tmp_path: Path, clock: Clock, written: str
) -> None:
    """A host that was off for an hour has been replaced: it starts a payment's worker only where it is assigned."""
    (tmp_path / "contact.json").write_text(written)
    begun, isolation = contact(tmp_path, clock), Isolation()
    assert isolation.doubtful(PINNED, begun) == {"pinned"}
    begun.answered(asked_at_s=clock.now_s)
    clock.now_s += 1.0
    assert isolation.doubtful(PINNED, begun) == {"pinned"}, "told before it was heard"
    begun.received(sent_at_s=clock.now_s)
    assert isolation.doubtful(PINNED, begun) == {"pinned"}
    assert isolation.wants_word
    begun.answered(asked_at_s=clock.now_s)
    assert isolation.doubtful(PINNED, begun) == set()


def test_of_doubtful_templates_nothing_is_started_and_nothing_ended() -> None:
    rows = [
        Assignment(pool=pool, host_id="a", template=template, base_workers=2, burst_workers=1)
        for pool, template in (("mail", "pinned"), ("web", "plain"))
    ]
    there = [
        Worker(worker_id=state.value, pool="mail", template="pinned", pid=1, state=state, started_at_s=0.0)
        for state in (WorkerState.RUNNING, WorkerState.DRAINING)
    ]
    mail, web = held_back(rows, {"pinned"}, there)
    assert (mail.base_workers, mail.burst_workers) == (1, 0)
    assert web == rows[1]


@pytest.mark.parametrize(("gap_s", "is_doubted"), [(FORGETTABLE_S - 1.0, False), (FORGETTABLE_S, True)])
def test_where_no_agent_called_for_long_enough_to_be_forgotten_somebody_must_stand_by_the_orders(
    tmp_path: Path, clock: Clock, gap_s: float, is_doubted: bool
) -> None:
    contact(tmp_path, clock).received(sent_at_s=clock.now_s)
    clock.now_s += gap_s
    successor = contact(tmp_path, clock)
    clock.now_s += 600.0  # the control plane is away: meanwhile nothing is known
    assert successor.is_perhaps_forgotten() == is_doubted
    successor.answered(asked_at_s=clock.now_s)
    assert not successor.is_perhaps_forgotten()


def test_of_exclusive_pools_nothing_is_started_while_the_host_is_perhaps_forgotten() -> None:
    rows = tuple(
        Assignment(pool=pool, host_id="a", template="plain", base_workers=1, is_exclusive=pool != "web")
        for pool in ("ledger", "mail", "web")
    )
    runs = Worker(worker_id="a", pool="mail", template="plain", pid=1, state=WorkerState.RUNNING, started_at_s=0.0)
    held = held_back(rows, (), [runs], is_perhaps_forgotten=True)
    assert {row.pool: row.base_workers for row in held} == {"ledger": 0, "mail": 1, "web": 1}
    assert held_back(rows, (), [runs]) == rows


def test_whoever_may_be_forgotten_reckons_with_it() -> None:
    """The control plane refuses to forget a host for as long as its lease."""
    assert FORGETTABLE_S <= HOST_LEASE_S


def test_what_was_reported_to_the_control_plane_holds_while_it_receives_no_other(tmp_path: Path, clock: Clock) -> None:
    """Whoever edits host.toml on a host that is cut off does not change what it is replaced by."""
    known = contact(tmp_path, clock)
    first = {"pinned": template(name="pinned", isolation_drain_after_s=30.0), "plain": template(name="plain")}
    assert known.limits_s(first) == {"pinned": 30.0}
    known.commit_to({"pinned": 30.0})
    known.received(sent_at_s=clock.now_s)
    for after in (
        {},
        {"pinned": template(name="pinned")},
        {"pinned": template(name="pinned", isolation_drain_after_s=90.0)},
    ):
        assert known.limits_s(after) == contact(tmp_path, clock).limits_s(after) == {"pinned": 30.0}
    assert known.limits_s({"pinned": template(name="pinned", isolation_drain_after_s=9.0)}) == {"pinned": 9.0}
    known.commit_to({"other": 5.0})  # this may have arrived
    assert known.limits_s({}) == contact(tmp_path, clock).limits_s({}) == {"pinned": 30.0, "other": 5.0}
    known.commit_to({})
    known.received(sent_at_s=clock.now_s)
    assert known.limits_s({}) == contact(tmp_path, clock).limits_s({}) == {}


@pytest.mark.parametrize("written", ['"promised": 5', '"promised": {"pinned": "30"}', '"promised": {"pinned": null}'])
def test_what_another_version_wrote_costs_no_agent(tmp_path: Path, clock: Clock, written: str) -> None:
    (tmp_path / "contact.json").write_text(f"{{{written}}}")
    assert contact(tmp_path, clock).limits_s({}) == {}
