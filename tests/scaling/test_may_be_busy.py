"""Workers of which nobody knows what they do: they come down one at a time, and none of them is taken to be idle."""

from dataclasses import replace
from typing import Any

import pytest

from headway.scaling.decide import decide
from headway.scaling.explain import explained
from headway.scaling.model import Memory, QueueMetrics
from headway.scaling.policy.ground import Ground
from headway.scaling.policy.limits import may_be_busy
from headway.scaling.profile import Override
from headway.scaling.view import PoolView
from scaling.unseen import UnseenPool
from support.pools import NOW_S, ground_of, profile, queue, view


def unknown(
    workers: int = 0, *, last: int = 0, idle: int = 0, busy: int = 0, waiting_jobs: int = 0, **values: Any
) -> Ground:
    """A pool with so many running workers of unknown activity, beside idle and busy ones."""
    running = workers + idle + busy
    member = queue(waiting_jobs=waiting_jobs)
    seen = view(member, running_workers=running, idle_workers=idle, unknown_activity_workers=workers, **values)
    return ground_of(seen, last=last or running)


@pytest.mark.parametrize(
    ("pool", "wanted", "left"),
    [
        (unknown(6), 0, 5),  # the first is asked
        (unknown(5, last=5, leaving_workers=1), 0, 5),  # the next only once that one has ended
        (unknown(2, idle=3), 0, 2),  # idle ones go first, all of them at once
        (unknown(2, idle=3), 4, 4),
        (unknown(1, idle=1, busy=2), 0, 3),
        (unknown(1, busy=3), 0, 3),
        (unknown(4, starting_workers=1, last=5), 0, 5),  # one that starts is about to do something
        (unknown(6, waiting_jobs=1), 0, 6),  # where a job waits, all may be busy
        (unknown(6), 7, 7),
        (unknown(6, last=5), 0, 5),  # the first has yet to hear of it
        (unknown(0, idle=4), 0, 0),
        (unknown(0, busy=4), 0, 0),  # where each is known, the demand holds the busy ones
    ],
)
def test_down_by_idle_workers_and_then_by_one_unknown_one(pool: Ground, wanted: int, left: int) -> None:
    assert may_be_busy(wanted, pool) == left


# --- from evaluation to evaluation ------------------------------------------------------------------------------------


def fleet(*ends_s: float, known: bool = False, **values: Any) -> UnseenPool:
    names = {f"w{number}": NOW_S + end_s if end_s else 0.0 for number, end_s in enumerate(ends_s)}
    reporting = frozenset(names) if known else frozenset[str]()
    return UnseenPool(profile=profile(**values), ends_s=names, reporting=reporting)


def test_an_idle_pool_of_unknown_workers_comes_down_to_its_floor_within_15_s_a_worker() -> None:
    pool = fleet(*[0.0] * 6, workers_min=1)
    while len(pool.ends_s) > 1:
        assert len(pool.step()) <= 1
        assert pool.now_s - NOW_S <= 15 * 6
    assert [pool.step() for _ in range(4)] == [[]] * 4


def test_an_idle_pool_whose_workers_report_comes_down_at_once() -> None:
    pool = fleet(*[0.0] * 6, known=True, workers_min=1)
    assert len(pool.step()) == 5


def test_while_long_jobs_run_unseen_one_worker_at_most_is_asked() -> None:
    pool = fleet(*[180.0] * 6)
    asked = [worker for _ in range(35) for worker in pool.step()]
    assert len(asked) == 1
    assert len(pool.ends_s) == 6  # that one finishes its job
    while pool.ends_s:
        assert len(pool.step()) <= 1
        assert pool.now_s - NOW_S <= 180 + 15 * 6


def test_no_busy_worker_is_asked_while_an_idle_one_is_there() -> None:
    pool = fleet(180.0, 0.0, 180.0, 0.0, known=True)
    assert sorted(worker.worker_id for worker in pool.step()) == ["w1", "w3"]
    assert [pool.step() for _ in range(10)] == [[]] * 10


def test_a_decision_says_how_many_it_keeps_because_they_may_be_busy() -> None:
    pool = fleet(*[180.0] * 3)
    pool.step()
    assert pool.decision is not None
    assert (pool.decision.target_workers, pool.decision.binding) == (2, "may_be_busy")
    assert "2 workers may be busy: kept. Such workers leave one at a time." in explained(pool.decision)


@pytest.mark.parametrize(
    "said", [{"workers_max": 1}, {"override": Override(workers=1, until_s=NOW_S + 60, reason="x")}]
)
def test_what_a_person_says_is_done_at_once(said: dict[str, Any]) -> None:
    assert len(fleet(*[180.0] * 4, **said).step()) == 3


def test_jobs_that_wait_ask_for_workers_as_if_every_unknown_one_were_busy() -> None:
    """Four workers may each have a job of minutes, and three more jobs have no time left."""
    waits: dict[str, Any] = {"waiting_jobs": 3, "oldest_age_s": 9.0, "service_time_s": 180.0}
    seen = workers_unknown(queue(in_flight_jobs=None, in_flight_min_jobs=0, **waits), 4)
    decision, _ = decide(seen, Memory(target_workers=4), now_s=NOW_S)
    assert (decision.target_workers, decision.binding, decision.steps[0].workers) == (7, "backlog_drain", 7)


def test_an_idle_worker_stays_for_a_job_that_waits_while_another_may_be_busy() -> None:
    """One is busy, of one nobody knows, and the third is about to take the job."""
    waits = queue(in_flight_jobs=None, in_flight_min_jobs=0, waiting_jobs=1)
    seen = replace(workers_unknown(waits, 3), idle_workers=1, unknown_activity_workers=1, busy_workers=2, busy_slots=2)
    decision, _ = decide(seen, Memory(target_workers=3), now_s=NOW_S)
    assert (decision.target_workers, decision.steps[0].workers) == (3, 2)


def workers_unknown(known: QueueMetrics, workers: int) -> PoolView:
    return view(
        known,
        assigned_workers=workers,
        running_workers=workers,
        idle_workers=0,
        unknown_activity_workers=workers,
        busy_workers=workers,
        busy_slots=workers,
    )


def test_a_figure_that_is_lost_lowers_no_target_by_more_than_the_one_that_is_asked() -> None:
    exact = workers_unknown(queue(in_flight_jobs=4), 4)
    lost = replace(exact, queues=(queue(in_flight_jobs=None, in_flight_min_jobs=1),))
    assert decide(exact, Memory(target_workers=4), now_s=NOW_S)[0].target_workers == 4
    assert decide(lost, Memory(target_workers=4), now_s=NOW_S)[0].target_workers == 3
