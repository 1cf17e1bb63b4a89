"""When jobs of a backlog are taken to have vanished: what is there no more, and neither began nor ended."""

from typing import Any

import pytest

from headway.scaling.decide import decide
from headway.scaling.model import MeasuredService, Memory, PoolDepths
from headway.scaling.reading.vanished_jobs import BACKLOG_LEARNED_S, backlog_of, without_vanished
from headway.scaling.view import PoolView
from support.pools import NOW_S, queue, view

STARTED = {"start_rate_per_s": 0.0}


def seen(at_s: float, waiting_jobs: int, in_flight_jobs: int | None = 0, **values: Any) -> PoolView:
    of_pool = {name: values.pop(name) for name in ("do_workers_report", "running_workers") if name in values}
    found = queue(sampled_at_s=at_s, waiting_jobs=waiting_jobs, in_flight_jobs=in_flight_jobs, **{**STARTED, **values})
    return view(found, **of_pool)


def vanished(before: PoolView, after: PoolView, *, passed_s: float = 5.0) -> int:
    """Found at the second of two evaluations, and at a third that has no later sample."""
    memory = Memory()
    found = 0
    for at_s, each in ((NOW_S, before), (NOW_S + passed_s, after), (NOW_S + 2 * passed_s, after)):
        backlog = backlog_of(each, memory, now_s=at_s)
        found += 0 if backlog is None else backlog.vanished_jobs
        memory = Memory(backlog=backlog)
    return found


@pytest.mark.parametrize(
    ("before", "after", "jobs"),
    [
        (seen(NOW_S, 100), seen(NOW_S + 5, 0), 100),
        (seen(NOW_S, 100), seen(NOW_S + 5, 50), 50),
        (seen(NOW_S, 100), seen(NOW_S + 5, 51), 0),  # less than half: somebody removed some
        (seen(NOW_S, 10), seen(NOW_S + 5, 0), 10),
        (seen(NOW_S, 9), seen(NOW_S + 5, 0), 0),  # too few to tell
        (seen(NOW_S, 100), seen(NOW_S + 5, 0, start_rate_per_s=1.0), 0),  # 60 of them began
        (seen(NOW_S, 100), seen(NOW_S + 5, 0, start_rate_per_s=0.5), 70),
        (seen(NOW_S, 100), seen(NOW_S + 5, 0, completion_rate_per_s=1.0), 0),  # who reports no start reports an end
        (seen(NOW_S, 100), seen(NOW_S + 5, 0, 100), 0),  # workers have reserved them
        (seen(NOW_S, 100, 0), seen(NOW_S + 5, 0, None, running_workers=1), 0),  # what workers have is not known
        (seen(NOW_S, 100, None, running_workers=1), seen(NOW_S + 5, 0, running_workers=1), 100),
        (seen(NOW_S, 100), seen(NOW_S + 5, 0, start_rate_per_s=None), 0),  # nobody knows whether any began
        (seen(NOW_S, 100), seen(NOW_S + 5, 0, start_rate_per_s=None, do_workers_report=True), 100),
    ],
)
def test_a_backlog_has_vanished_where_most_of_it_is_gone_without_a_start(
    before: PoolView, after: PoolView, jobs: int
) -> None:
    assert vanished(before, after) == jobs


def test_starts_of_the_last_moments_may_not_be_known_yet() -> None:
    memory = Memory(backlog=backlog_of(seen(NOW_S, 100), Memory(), now_s=NOW_S))
    for later_s, found in ((8.9, 0), (9.0, 100)):
        backlog = backlog_of(seen(NOW_S + 5, 0), memory, now_s=NOW_S + later_s)
        assert backlog is not None
        assert backlog.vanished_jobs == found


def test_what_was_known_before_is_kept_while_jobs_wait_for_an_hour_at_most() -> None:
    memory = Memory(strategy_state={"guard": "before"})
    for later_s, state in ((0.0, "soon"), (BACKLOG_LEARNED_S, "late"), (BACKLOG_LEARNED_S + 5.0, "later")):
        backlog = backlog_of(seen(NOW_S + later_s, 100), memory, now_s=NOW_S + later_s)
        assert backlog is not None
        assert backlog.learned == {"guard": "late" if later_s > BACKLOG_LEARNED_S else "before"}
        memory = Memory(strategy_state={"guard": state}, backlog=backlog)


def test_nothing_is_remembered_of_a_pool_in_which_hardly_any_job_waits() -> None:
    _, memory = decide(seen(NOW_S, 9, 50, running_workers=50), Memory(), now_s=NOW_S)
    assert memory.backlog is None


@pytest.mark.parametrize("service", [MeasuredService(time_s=3.0), None])
def test_the_pace_that_depths_showed_before_is_known_again(service: MeasuredService | None) -> None:
    before = Memory(depths=PoolDepths(cycle_s=4.0), service=service)
    memory = Memory(
        backlog=backlog_of(seen(NOW_S, 100), before, now_s=NOW_S),
        depths=PoolDepths(cycle_s=0.01, ended_jobs=90.0, busy_slots=2),
        service=MeasuredService(time_s=0.01),
    )
    gone = seen(NOW_S + 5, 0, has_unknown_rates=True)
    after = without_vanished(memory, backlog_of(gone, memory, now_s=NOW_S + 10), gone.queues)
    assert (after.depths, after.service) == (PoolDepths(cycle_s=4.0, busy_slots=2), service)


def test_how_long_jobs_took_that_ran_stays_known() -> None:
    """The first jobs of a pool run and end; minutes later those that still wait are purged."""
    running = {"running_workers": 2, "in_flight_jobs": 2}
    _, memory = decide(seen(NOW_S, 600, service_time_s=None, **running), Memory(), now_s=NOW_S)
    _, memory = decide(seen(NOW_S + 5, 590, service_time_s=0.2, **running), memory, now_s=NOW_S + 5)
    _, memory = decide(seen(NOW_S + 90, 400, service_time_s=None, **running), memory, now_s=NOW_S + 90)
    for later_s in (95.0, 100.0):
        gone = seen(NOW_S + later_s, 0, service_time_s=None, running_workers=2)
        decision, memory = decide(gone, memory, now_s=NOW_S + later_s)
    assert "402 jobs left without having been started: nothing is learned from them" in decision.notes
    assert memory.service == MeasuredService(time_s=0.2)
