"""After a pause jobs take as long as those that ended last: the rehearsal never forgot it, and the live loop did."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.measure import SERVICE_WINDOW_S, queue_metrics
from headway.scaling.model import EventKind, JobEvent, MeasuredService, Memory, Objective, QueueMetrics, QueueSample
from headway.scaling.reading.service_recall import BATCH_HALF_LIFE_S
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


def of_batch(*, longest_s: float = 30.0, ago_s: float) -> Memory:
    """Short jobs end, and ``ago_s`` before now long ones ended together."""
    long = MeasuredService(time_s=0.1, batch_s=0.1, longest_batch_s=longest_s, longest_at_s=NOW_S - ago_s)
    return replace(held(0), service=long)


def among_short_jobs(memory: Memory, *queues: QueueMetrics) -> int:
    """The target for forty jobs that have just come, while the jobs that end take 0.1 s."""
    burst = queue(waiting_jobs=40, oldest_age_s=4.0, service_time_s=0.1, service_batch_s=0.1)
    return decide(view(burst, *queues, start_up_s=2.0), memory, now_s=NOW_S)[0].target_workers


def test_a_batch_of_long_jobs_is_recalled_while_short_ones_end() -> None:
    assert among_short_jobs(replace(held(0), service=SHORT)) <= 2
    assert among_short_jobs(of_batch(ago_s=0.0)) == 40
    assert among_short_jobs(of_batch(ago_s=2 * BATCH_HALF_LIFE_S)) == 40  # 7.5 s: more than half of the 6 s left
    assert among_short_jobs(of_batch(ago_s=8 * BATCH_HALF_LIFE_S)) <= 4


def test_of_several_queues_nobody_knows_which_had_the_long_jobs() -> None:
    other = queue(queue="redis/other")
    assert among_short_jobs(of_batch(ago_s=0.0), other) == among_short_jobs(held(0), other) < 40


@given(lengths_s=st.tuples(st.floats(0.01, 600), st.floats(0.01, 600)), ago_s=st.floats(0, 7200))
def test_longer_jobs_that_are_recalled_never_lower_a_target(lengths_s: tuple[float, float], ago_s: float) -> None:
    shorter_s, longer_s = sorted(lengths_s)
    fewer = among_short_jobs(of_batch(longest_s=shorter_s, ago_s=ago_s))
    assert fewer <= among_short_jobs(of_batch(longest_s=longer_s, ago_s=ago_s))


def test_the_longest_batch_stays_until_it_has_faded_below_what_is_measured() -> None:
    def after(memory: Memory, *, batch_s: float | None, after_s: float = 0.0) -> MeasuredService:
        measured = queue(service_time_s=0.1, service_batch_s=batch_s, sampled_at_s=NOW_S + after_s)
        service = decide(view(measured), memory, now_s=NOW_S + after_s)[1].service
        assert service is not None
        return service

    long = of_batch(ago_s=BATCH_HALF_LIFE_S)  # 15 s by now
    for batch_s, longest in ((0.1, (30.0, -BATCH_HALF_LIFE_S)), (None, (30.0, -BATCH_HALF_LIFE_S)), (16.0, (16.0, 0))):
        found = after(long, batch_s=batch_s)
        assert (found.batch_s, found.longest_batch_s, found.longest_at_s - NOW_S) == (batch_s, *longest)
    # While the same is measured on and on, the memory changes once a window.
    first = after(held(0), batch_s=20.0)
    assert after(replace(held(0), service=first), batch_s=20.0, after_s=SERVICE_WINDOW_S - 1) == first
    assert after(replace(held(0), service=first), batch_s=20.0, after_s=SERVICE_WINDOW_S) != first


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
