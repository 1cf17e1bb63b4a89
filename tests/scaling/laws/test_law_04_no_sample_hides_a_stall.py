"""Law 4. The signal is the worst of the finished waits, the age of the oldest waiting job and the predicted wait.

Samples of jobs that ended never hide that nothing starts any more.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.allocation.fair_share import urgency
from headway.scaling.decisions.worst_wait import worst_wait
from headway.scaling.model import Decision, Memory
from headway.scaling.reading.sample_age import is_seen
from headway.scaling.view import PoolView
from scaling.laws.drawn import AGES_S, LAW, MEMORIES, by, by_every_strategy, maybe, views
from support.installed import decide
from support.pools import NOW_S


@LAW
@given(view=views(), memory=MEMORIES)
def test_the_signal_is_the_worst_of_all_waits(view: PoolView, memory: Memory) -> None:
    for seen in by_every_strategy(view):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        used = [
            wait_s / seen.profile.objective_of(queue.queue).target_s
            for queue in decision.metrics
            for wait_s in (queue.pickup_objective_s, queue.oldest_age_s, _predicted_s(decision, queue.queue))
            if wait_s is not None and is_seen(queue)
        ]
        worst = worst_wait(decision, seen.profile)
        assert (None if worst is None else worst.used) == max(used, default=None)


def _predicted_s(decision: Decision, queue: str) -> float | None:
    if len(decision.metrics) == 1:
        return decision.predicted_pickup_s
    return next((each.predicted_pickup_s for each in decision.member_pickups if each.queue == queue), None)


@LAW
@given(view=views(), memory=MEMORIES, better_s=maybe(AGES_S))
def test_finished_waits_never_make_a_stall_seem_better(view: PoolView, memory: Memory, better_s: float | None) -> None:
    """However well the jobs waited that did start, the pool is as urgent as its oldest job, and wants as much."""
    seen = by("hybrid", view)
    sampled = replace(
        seen,
        queues=tuple(
            replace(
                queue, pickup_p50_s=better_s, pickup_p95_s=better_s, pickup_p99_s=better_s, pickup_objective_s=better_s
            )
            for queue in seen.queues
        ),
    )
    silent = replace(
        seen, queues=tuple(replace(queue, pickup_p95_s=None, pickup_objective_s=None) for queue in seen.queues)
    )
    with_samples, without = (decide(each, memory, now_s=NOW_S)[0] for each in (sampled, silent))
    assert with_samples.target_workers >= without.target_workers
    assert urgency(with_samples, seen.profile) >= urgency(without, seen.profile)


@LAW
@given(view=views(sampled_ago_s=st.floats(0, 20)), memory=MEMORIES, later_s=st.floats(0, 300))
def test_the_oldest_job_ages_while_nothing_is_sampled(view: PoolView, memory: Memory, later_s: float) -> None:
    now, _ = decide(by("hybrid", view), memory, now_s=NOW_S)
    later, _ = decide(by("hybrid", view), memory, now_s=NOW_S + later_s)
    for before, after, given_queue in zip(now.metrics, later.metrics, view.queues, strict=True):
        if given_queue.waiting_jobs and before.oldest_age_s is not None and not view.direct:
            assert after.oldest_age_s is not None
            assert abs(after.oldest_age_s - before.oldest_age_s - later_s) < 1e-6
