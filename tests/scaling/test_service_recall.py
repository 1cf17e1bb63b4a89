"""After a pause jobs take as long as those that ended last: the rehearsal never forgot it, and the live loop did."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.measure import queue_metrics
from headway.scaling.model import EventKind, JobEvent, MeasuredService, Memory, Objective, QueueSample
from support.defined_rows import bucket_rows
from support.pools import NOW_S, held, queue, view

SHORT = MeasuredService(time_s=0.3, batch_s=0.3)
OBJECTIVE = Objective(target_s=10.0)
PAUSE_S = 900.0
JOBS = 60


def woken(memory: Memory) -> int:
    """The target when ``JOBS`` jobs have just come to a pool without workers."""
    burst = queue(waiting_jobs=JOBS, oldest_age_s=4.0, service_time_s=None)
    return decide(view(burst, start_up_s=2.0), memory, now_s=NOW_S)[0].target_workers


def test_jobs_after_a_pause_are_not_asked_a_worker_each() -> None:
    assert woken(held(0)) == JOBS  # none has ended yet: one may take for ever
    assert woken(replace(held(0), service=SHORT)) <= 10


def test_what_is_measured_is_remembered_in_two_digits_and_replaces_what_was_before() -> None:
    measured = queue(service_time_s=0.12345, service_batch_s=None)
    _, after = decide(view(measured), replace(held(0), service=SHORT), now_s=NOW_S)
    assert after.service == MeasuredService(time_s=0.12, batch_s=None)
    _, later = decide(view(queue(service_time_s=None)), after, now_s=NOW_S)
    assert later.service == after.service


def test_a_decision_shows_what_was_measured_and_not_what_is_recalled() -> None:
    decision, _ = decide(view(queue(service_time_s=None)), replace(held(0), service=SHORT), now_s=NOW_S)
    assert decision.metrics[0].service_time_s is None


def sampled(at_s: float, waiting_jobs: int) -> QueueSample:
    age_s = 4.0 if waiting_jobs else 0.0
    return QueueSample(
        queue="redis/mail", at_s=at_s, waiting_jobs=waiting_jobs, in_flight_jobs=0, delayed_jobs=0, oldest_age_s=age_s
    )


@given(service_s=st.floats(0.01, 600), count=st.integers(1, 500))
def test_a_recalled_time_asks_for_as_much_as_the_same_time_measured(service_s: float, count: int) -> None:
    rounded_s = float(f"{service_s:.2g}")
    known = queue(waiting_jobs=count, oldest_age_s=4.0, service_time_s=rounded_s)
    unknown = replace(known, service_time_s=None)
    recalled = replace(held(0), service=MeasuredService(time_s=rounded_s))
    measured, _ = decide(view(known, start_up_s=2.0), held(0), now_s=NOW_S)
    remembered, _ = decide(view(unknown, start_up_s=2.0), recalled, now_s=NOW_S)
    assert remembered.target_workers == measured.target_workers


def test_the_rows_of_the_stream_forget_and_the_memory_does_not() -> None:
    """A burst, a pause of a quarter of an hour, and the same burst: the second asks for no more than it needs."""
    first = [
        JobEvent(kind=EventKind.FINISHED, queue="redis/mail", job_id=str(n), at_s=NOW_S, started_at_s=NOW_S - 0.3)
        for n in range(JOBS)
    ]
    later_s = NOW_S + PAUSE_S
    rows = bucket_rows([*first, sampled(NOW_S, 0), sampled(later_s, JOBS)])
    memory = held(0)
    targets = []
    for now_s in (NOW_S + 10.0, later_s):
        seen = queue_metrics(
            [row for row in rows if row.bucket_s <= now_s], queue="redis/mail", now_s=now_s, objective=OBJECTIVE
        )
        decision, memory = decide(view(seen, start_up_s=2.0), memory, now_s=now_s)
        targets.append(decision.target_workers)
    assert decision.metrics[0].service_time_s is None
    assert targets[0] == 0
    assert 1 <= targets[1] <= 10
