"""What compares reports with what jobs wrote: it finds each event that is missing, doubled or of nothing that was."""

from collections.abc import Callable

import pytest

from support.queues.kills import LAST, UNREPORTED, Kill, lost
from support.queues.lives import Due, Event, Run, Verdict, judged, runs_from

RUNS = [
    Run("a", 7, 11.0, ended_s=12.0, ending="fail"),
    Run("a", 8, 14.0, ended_s=15.0, ending="well"),
    Run("b", 9, 16.0),
]
EVENTS = [
    Event("a", "enqueued", 10.0),
    Event("a", "started", 11.01),
    Event("a", "failed", 12.0),
    Event("a", "retried", 12.0),
    Event("a", "enqueued", 12.0),
    Event("a", "started", 14.0),
    Event("a", "finished", 15.0),
    Event("b", "enqueued", 13.0),
    Event("b", "started", 16.0),
    Event("b", "failed", 90.0),
]


def verdict(events: list[Event], *, may_miss: Callable[[Run, str], str | None] = lambda *_: None) -> Verdict:
    entries, retries = {"a": Due(2, 2), "b": Due(1, 1)}, {"a": Due(1, 1)}
    return judged(events, RUNS, entries=entries, retries=retries, may_miss=may_miss, may_add=lambda _: None)


def test_each_event_once_is_right() -> None:
    found = verdict(EVENTS)
    assert found.differences == []
    assert max(found.off_s) == pytest.approx(0.01)


@pytest.mark.parametrize("number", range(len(EVENTS)))
def test_each_event_that_is_missing_or_doubled_is_found(number: int) -> None:
    assert len(verdict(EVENTS[:number] + EVENTS[number + 1 :]).differences) == 1
    assert len(verdict([*EVENTS, EVENTS[number]]).differences) == 1


def test_what_may_be_missing_is_counted() -> None:
    without_b = [event for event in EVENTS if event.job_id != "b" or event.kind == "enqueued"]
    found = verdict(without_b, may_miss=lambda run, _: "killed" if run.job_id == "b" else None)
    assert (found.differences, found.excused) == ([], {"killed": 2})


KILLED_AND_STOPPED = [
    Run("a", 7, 11.0, ended_s=12.0, ending="killed"),
    Run("a", 8, 12.5),
]
"""A run whose process is killed, after which the job runs again and is ended by hand."""


@pytest.mark.parametrize(
    ("failed_s", "missing"),
    [([12.0, 12.6], []), ([12.6], []), ([12.0], ["ended_s=None"]), ([], ["ended_s=None"])],
)
def test_the_end_that_must_be_there_is_not_taken_for_one_that_may_be_missing(
    failed_s: list[float], missing: list[str]
) -> None:
    events = [Event("a", "started", 11.0), Event("a", "started", 12.5)]
    found = judged(
        [*events, *(Event("a", "failed", at_s) for at_s in failed_s)],
        KILLED_AND_STOPPED,
        entries={},
        retries={},
        may_miss=lambda run, what: "given back" if (run.ending, what) == ("killed", "end") else None,
        may_add=lambda _: None,
        late_s=0.5,
    )
    assert len(found.differences) == len(missing)
    assert all(each in difference for each, difference in zip(missing, found.differences, strict=True))


def test_runs_are_read_as_jobs_write_them() -> None:
    lines = [
        {"id": "a", "what": "start", "at_s": 11.0, "pid": 7, "parent": 6, "attempt": None},
        {"id": "b", "what": "start", "at_s": 11.5, "pid": 8, "parent": 6, "attempt": 2},
        {"id": "a", "what": "fail", "at_s": 12.0, "pid": 7, "parent": 1, "attempt": None},
    ]
    assert runs_from(lines) == [
        Run("a", 7, 11.0, ended_s=12.0, ending="fail", parent=6),
        Run("b", 8, 11.5, attempt=2, parent=6),
    ]


KILL = Kill(worker=6, began_s=50.0, done_s=50.1, pids=frozenset({6, 8, 9}), with_children=False)


@pytest.mark.parametrize(
    ("run", "what", "stopped_s", "why"),
    [
        (Run("a", 8, 49.9, parent=6), "start", (), LAST),
        (Run("a", 8, 49.0, parent=6), "start", (), None),
        (Run("a", 8, 49.0, parent=6), "end", (), UNREPORTED),
        (Run("a", 8, 60.0, ended_s=61.0, ending="well", parent=1), "end", (), LAST),  # nobody was left to report it
        # The process of this run was ended a moment before the kill, and replaced.
        (Run("a", 7, 49.9, parent=6), "start", (), LAST),
        (Run("a", 7, 49.0, ended_s=49.8, ending="retry", parent=6), "end", (), LAST),
        (Run("a", 7, 49.0, ended_s=49.8, ending="killed", parent=6), "end", (), LAST),
        (Run("a", 7, 49.0, parent=6), "end", (49.9,), LAST),
        # It was ended long before, it ended well long before, or it is of another worker.
        (Run("a", 7, 40.0, parent=6), "end", (45.0,), None),
        (Run("a", 7, 40.0, parent=6), "end", (), None),
        (Run("a", 7, 49.0, ended_s=49.4, ending="well", parent=6), "end", (), None),
        (Run("a", 7, 49.9, parent=5), "start", (), None),
        (Run("a", 7, 49.0, ended_s=49.9, ending="killed", parent=5), "end", (), None),
    ],
)
def test_only_what_a_killed_worker_had_not_sent_is_lost(
    run: Run, what: str, stopped_s: tuple[float, ...], why: str | None
) -> None:
    assert lost(run, what, [KILL], grace_s=0.3, stopped_s=stopped_s) == why
