"""Hosts that went silent, and hosts that are back without anybody having decided what they run."""

from typing import Any

import pytest

from headway.scaling.allocation.allocate import allocate
from headway.scaling.allocation.undecided_hosts import found_rows
from headway.scaling.allocation.unreachable_hosts import (
    ISOLATION_MARGIN_S,
    is_surely_gone,
    kept_rows,
    unknown_workers,
)
from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import Assignment, Host, Memory, Template, Worker, WorkerState
from headway.scaling.profile import Profile
from support.hosts import any_host
from support.pools import NOW_S, profile, queue, view

MAIL = Template(name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=0)
DRAINS = Template(
    name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=0, isolation_drain_after_s=60.0, drain_timeout_s=30.0
)
GONE_S = 60.0 + 30.0 + ISOLATION_MARGIN_S


def worker(number: int = 0, state: WorkerState = WorkerState.RUNNING, **values: Any) -> Worker:
    given = {"pool": "mail", "template": "mail", "pid": number, "started_at_s": 0.0}
    return Worker(worker_id=f"w{number}", state=state, **(given | values))


def host(name: str = "a", *workers: Worker, template: Template = MAIL, **values: Any) -> Host:
    return any_host(name, *workers, cpu_cores=10.0, templates=(template,), **values)


def silent(*workers: Worker, name: str = "a", template: Template = MAIL, silent_s: float = 50.0) -> Host:
    return host(name, *workers, template=template, is_known=False, silent_s=silent_s)


def row(host_id: str, base_workers: int, pool: str = "mail") -> Assignment:
    return Assignment(pool=pool, host_id=host_id, template="mail", base_workers=base_workers)


# --- what may still run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "assigned", "unknown"),
    [
        ((), 0, 0),
        ((worker(1), worker(2)), 2, 2),
        ((worker(1),), 3, 3),  # it may have started two more since
        ((worker(1), worker(2)), 1, 2),  # it was told to let one go, and may not have heard
        ((worker(1), worker(2, WorkerState.DRAINING)), 1, 2),  # one drains, and what it was told is another
        ((worker(1, WorkerState.BACKING_OFF),), 1, 1),
        ((worker(1, WorkerState.GONE),), 0, 0),
    ],
)
def test_unknown_is_what_was_there_or_what_the_host_was_assigned_whichever_is_more(
    workers: tuple[Worker, ...], assigned: int, unknown: int
) -> None:
    rows = [row("a", assigned)] if assigned else []
    assert unknown_workers([silent(*workers)], rows)["mail"] == unknown


def test_workers_of_known_hosts_are_not_unknown() -> None:
    assert not unknown_workers([host("a", worker(1))], [row("a", 1)])


@pytest.mark.parametrize(
    ("template", "silent_s", "is_gone"),
    [
        (DRAINS, GONE_S - 1.0, False),
        (DRAINS, GONE_S + 1.0, True),
        (MAIL, 1e9, False),  # its host never drains by itself
    ],
)
def test_only_what_a_cut_off_host_drains_by_itself_is_ever_surely_gone(
    template: Template, silent_s: float, is_gone: bool
) -> None:
    lost = silent(worker(1), template=template, silent_s=silent_s)
    assert is_surely_gone(lost, "mail") is is_gone
    assert unknown_workers([lost], [row("a", 1)])["mail"] == (0 if is_gone else 1)
    assert kept_rows([lost], [row("a", 1)]) == (() if is_gone else (row("a", 1),))


def test_a_host_that_is_known_has_lost_nothing() -> None:
    assert not is_surely_gone(host("a", template=DRAINS, silent_s=0.0), "mail")


# --- replacing what was lost -----------------------------------------------------------------------------------------


def decided(policy: Profile, hosts: list[Host], rows: list[Assignment], *, last: int) -> tuple[Outcome, dict[str, int]]:
    """A pool with work for four, decided and placed as a tick does it."""
    unknown = unknown_workers(hosts, rows)["mail"]
    known = any(each.is_known for each in hosts)
    seen = view(
        queue(waiting_jobs=4, oldest_age_s=60.0, service_time_s=None),
        profile=policy,
        capacity_workers=10 if known else None,
        unknown_workers=unknown,
    )
    memory = Memory(target_workers=last)
    decision, after = decide(seen, memory, now_s=NOW_S)
    (outcome,), placed = allocate([Outcome(view=seen, before=memory, decision=decision, memory=after)], hosts, rows)
    return outcome, {each.host_id: each.workers for each in placed}


def test_an_ordinary_pool_is_replaced_elsewhere_and_the_lost_host_keeps_its_row() -> None:
    hosts = [silent(*map(worker, range(4))), host("b")]
    outcome, placed = decided(profile(), hosts, [row("a", 4)], last=4)
    assert placed == {"a": 4, "b": 4}
    assert (outcome.decision.target_workers, outcome.decision.unknown_workers) == (4, 4)


def test_what_may_still_run_counts_against_the_ceiling() -> None:
    outcome, placed = decided(profile(workers_max=6), [silent(worker(1)), host("b")], [row("a", 3)], last=4)
    assert placed == {"a": 3, "b": 3}
    assert outcome.decision.target_workers + outcome.decision.unknown_workers == 6


def test_a_pinned_pool_is_not_replaced_while_its_worker_may_run() -> None:
    pinned = profile(workers_max=1, pinned=1)
    lost = silent(template=DRAINS, silent_s=GONE_S - 1.0)  # it was told to run one, and was never heard of again
    assert decided(pinned, [lost, host("b")], [row("a", 1)], last=1)[1] == {"a": 1}


def test_a_pinned_pool_is_replaced_once_its_worker_is_surely_gone() -> None:
    pinned = profile(workers_max=1, pinned=1)
    lost = silent(worker(1), template=DRAINS, silent_s=GONE_S + 1.0)
    assert decided(pinned, [lost, host("b")], [row("a", 1)], last=0)[1] == {"b": 1}


def test_a_pinned_pool_is_replaced_once_its_host_is_forgotten() -> None:
    assert decided(profile(workers_max=1, pinned=1), [host("b")], [], last=0)[1] == {"b": 1}


def test_a_pinned_worker_whose_host_is_back_stays_where_it_is() -> None:
    hosts = [host("a", worker(1)), host("b")]
    assert decided(profile(workers_max=1, pinned=1), hosts, [row("a", 1)], last=0)[1] == {"a": 1}


def test_when_every_host_is_silent_targets_are_held_and_rows_stay() -> None:
    outcome, placed = decided(profile(), [silent(worker(1), worker(2))], [row("a", 3)], last=3)
    assert placed == {"a": 3}
    assert outcome.memory.target_workers == outcome.decision.target_workers == 3


def test_stale_metrics_hold_the_count_of_a_host_that_is_back() -> None:
    stale = view(queue(sampled_at_s=NOW_S - 3_600), assigned_workers=9)
    assert decide(stale, Memory(target_workers=3), now_s=NOW_S)[0].target_workers == 9


# --- hosts that nobody has decided about -----------------------------------------------------------------------------


def test_what_an_undecided_host_runs_counts_as_if_it_had_been_assigned() -> None:
    workers = (
        worker(1),
        worker(2, WorkerState.STARTING),
        worker(3, is_burst=True),
        worker(4, WorkerState.DRAINING),
        worker(5, pool="news", template="rq"),
    )
    assert list(found_rows([host("a", *workers, is_undecided=True)])) == [
        Assignment(pool="mail", host_id="a", template="mail", base_workers=2, burst_workers=1),
        Assignment(pool="news", host_id="a", template="rq", base_workers=1),
    ]


def test_a_host_with_an_assignment_is_not_second_guessed() -> None:
    assert not list(found_rows([host("a", worker(1)), silent(worker(2))]))
