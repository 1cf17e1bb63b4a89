from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.agent.config.templates import Recycle, Template
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.policy.recycling import (
    RECYCLING_FRESH_S,
    RECYCLING_FRESH_UNKNOWN_S,
    RECYCLING_JITTER,
    RECYCLING_TRIAL_S,
    Recycling,
    worn_by,
)
from headway.agent.workers.worker_record import Record
from headway.scaling.model import WorkerState
from support.workers import record as a_record
from support.workers import template

NOW_S = 10_000.0
FIRST, LAST = "00000000" + "0" * 24, "ffffffff" + "0" * 24  # whose lots are 0 and 1


def record(age_s: float, worker_id: str = FIRST) -> Record:
    found = a_record(worker_id, pid=7, started_ticks=0, pool="mail")
    return replace(found, template="py", life=replace(found.life, started_at_s=NOW_S - age_s))


@pytest.mark.parametrize(
    ("recycle", "age_s", "activity", "why"),
    [
        (Recycle(), 1e9, Activity(is_busy=False, memory_bytes=10**12, ended_jobs=10**9), None),
        (Recycle(after_s=100.0), 99.0, NOT_KNOWN, None),
        (Recycle(after_s=100.0), 100.0, NOT_KNOWN, "it has run for 100 s"),
        (Recycle(jobs=5), 1.0, Activity(is_busy=True, ended_jobs=4), None),
        (Recycle(jobs=5), 1.0, Activity(is_busy=True, ended_jobs=5), "it has ended 5 jobs"),
        (Recycle(jobs=5), 1.0, NOT_KNOWN, None),  # not known is not zero, nor enough
        (Recycle(memory_bytes=10**8), 100.0, Activity(is_busy=None, memory_bytes=10**8), "it takes 100 MB"),
        (Recycle(memory_bytes=10**8), RECYCLING_TRIAL_S - 1.0, Activity(is_busy=None, memory_bytes=10**8), None),
        (Recycle(memory_bytes=10**8), 100.0, NOT_KNOWN, None),
    ],
)
def test_a_worker_has_served_for_long_enough_by_age_jobs_or_memory(
    recycle: Recycle, age_s: float, activity: Activity, why: str | None
) -> None:
    assert worn_by(recycle, record(age_s), activity, now_s=NOW_S) == why


@given(st.uuids().map(lambda each: each.hex))
def test_each_worker_has_an_age_of_its_own_that_is_never_more_than_asked_for(worker_id: str) -> None:
    recycle = Recycle(after_s=100.0)
    assert worn_by(recycle, record(100.0 * (1.0 - RECYCLING_JITTER) - 0.1, worker_id), NOT_KNOWN, now_s=NOW_S) is None
    assert worn_by(recycle, record(100.0, worker_id), NOT_KNOWN, now_s=NOW_S) is not None


def test_workers_that_were_started_together_are_not_replaced_together() -> None:
    worn = {
        worker_id: worn_by(Recycle(after_s=100.0), record(90.0, worker_id), NOT_KNOWN, now_s=NOW_S)
        for worker_id in (FIRST, LAST)
    }
    assert [worker_id for worker_id, why in worn.items() if why] == [LAST]


def worn(recycling: Recycling, *records: Record, **values: Any) -> frozenset[str]:
    activity = Activity(is_busy=False, **values)
    templates = {"py": template(recycle=Recycle(after_s=100.0, jobs=5))}
    return recycling.worn([(each, activity) for each in records], templates, now_s=NOW_S)


def test_only_a_running_worker_of_a_template_that_is_there_is_recycled() -> None:
    old = record(200.0)
    assert worn(Recycling(), old) == {old.worker_id}
    assert worn(Recycling(), replace(old, template="gone")) == frozenset()
    for state in set(WorkerState) - {WorkerState.RUNNING}:
        assert worn(Recycling(), replace(old, life=replace(old.life, state=state))) == frozenset()


LIMITED = template(recycle=Recycle(memory_bytes=10**8))


def worn_by_memory(
    recycling: Recycling, age_s: float, *, used: Template = LIMITED, worker_id: str = FIRST, **values: Any
) -> bool:
    activity = Activity(**{"is_busy": False, "memory_bytes": 10**8, **values})
    return bool(recycling.worn([(record(age_s, worker_id), activity)], {"py": used}, now_s=NOW_S))


def test_workers_that_are_too_large_before_their_first_job_are_not_replaced_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recycling = Recycling()
    assert not worn_by_memory(recycling, 5.0)
    assert not worn_by_memory(recycling, 100.0)
    assert not worn_by_memory(recycling, 5.0, worker_id=LAST)
    assert not worn_by_memory(recycling, 1_000.0, is_busy=True, ended_jobs=3, memory_bytes=10**9)
    (message,) = caplog.messages
    assert "a worker takes 100 MB before its first job" in message


def test_a_template_that_is_changed_is_judged_by_its_own_fresh_workers(caplog: pytest.LogCaptureFixture) -> None:
    recycling = Recycling()
    worn_by_memory(recycling, 5.0)
    raised = template(recycle=Recycle(memory_bytes=2 * 10**8))
    assert worn_by_memory(recycling, 1_000.0, used=raised, memory_bytes=3 * 10**8)
    worn_by_memory(recycling, 5.0, used=raised, memory_bytes=3 * 10**8)
    assert not worn_by_memory(recycling, 1_000.0, used=raised, memory_bytes=3 * 10**8)
    assert len(caplog.messages) == 2


@pytest.mark.parametrize(
    "first",
    [
        {"is_busy": True},  # it may have grown by its job
        {"ended_jobs": 1},
        {"memory_bytes": 10**8 - 1},
        {"memory_bytes": None},
    ],
)
def test_a_worker_that_grew_is_replaced_for_its_memory(first: dict[str, Any]) -> None:
    recycling = Recycling()
    assert not worn_by_memory(recycling, 5.0, **first)
    assert worn_by_memory(recycling, RECYCLING_FRESH_S + 1.0)


def test_a_worker_of_which_nobody_knows_what_it_does_is_fresh_for_a_minute_only() -> None:
    recycling = Recycling()
    assert worn_by_memory(recycling, RECYCLING_FRESH_UNKNOWN_S + 1.0, is_busy=None)
    assert not worn_by_memory(recycling, RECYCLING_FRESH_UNKNOWN_S + 1.0, is_busy=False, worker_id=LAST)
    assert not worn_by_memory(Recycling(), RECYCLING_FRESH_UNKNOWN_S - 1.0, is_busy=None)


def test_a_worker_that_is_gone_is_forgotten() -> None:
    recycling = Recycling()
    worn_by_memory(recycling, 5.0, is_busy=True)
    recycling.worn([], {"py": LIMITED}, now_s=NOW_S)
    assert not recycling._have_worked


def test_age_and_jobs_still_replace_workers_that_are_too_large() -> None:
    recycling = Recycling()
    used = template(recycle=Recycle(after_s=1_000.0, memory_bytes=10**8))
    assert not worn_by_memory(recycling, 5.0, used=used)
    assert worn_by_memory(recycling, 1_000.0, used=used)


def test_that_a_worker_is_to_be_recycled_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    recycling = Recycling()
    for _ in range(3):
        worn(recycling, record(1.0), ended_jobs=6)
    assert caplog.messages == ["to be recycled pool=mail template=py pid=7: it has ended 6 jobs"]
