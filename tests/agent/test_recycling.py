from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.agent.config.templates import Recycle
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.policy.recycling import RECYCLING_JITTER, RECYCLING_TRIAL_S, Recycling, worn_by
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


def test_that_a_worker_is_to_be_recycled_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    recycling = Recycling()
    for _ in range(3):
        worn(recycling, record(1.0), ended_jobs=6)
    assert caplog.messages == ["to be recycled pool=mail template=py pid=7: it has ended 6 jobs"]
