"""Law 12. Prediction counts only the workers that will exist (capped, starting), and is scored afterwards.

The predecessor divided by what it wished for, and so never foresaw a breach.
"""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.model import Memory
from headway.scaling.view import PoolView
from scaling.laws.drawn import LAW, MEMORIES, WORKERS, by_every_strategy, views
from support.installed import decide
from support.pools import NOW_S, predicted_pickup_s


@LAW
@given(view=views(), wished=WORKERS, more=WORKERS)
def test_wishing_for_more_than_there_are_predicts_nothing_better(view: PoolView, wished: int, more: int) -> None:
    there = view.running_workers + view.starting_workers
    if there and wished >= there:
        few, many = (predicted_pickup_s(view, target_workers=target) for target in (wished, wished + more))
        assert few == many


@LAW
@given(view=views(), memory=MEMORIES)
def test_what_was_cut_off_is_not_predicted_with(view: PoolView, memory: Memory) -> None:
    """A decision predicts with what its last limit left, not with what was wanted."""
    for seen in by_every_strategy(view):
        decision, _ = decide(seen, memory, now_s=NOW_S)
        at_decision = replace(seen, queues=decision.metrics)
        expected = predicted_pickup_s(at_decision, target_workers=decision.target_workers)
        assert decision.predicted_pickup_s == expected


@LAW
@given(view=views(), target=WORKERS, fewer=WORKERS)
def test_fewer_workers_never_predict_a_shorter_wait(view: PoolView, target: int, fewer: int) -> None:
    waits_s = [predicted_pickup_s(view, target_workers=workers) for workers in (min(target, fewer), target)]
    if None not in waits_s and (view.running_workers or not view.starting_workers):
        few_s, many_s = (math.inf if wait_s is None else wait_s for wait_s in waits_s)
        assert few_s >= many_s


@LAW
@given(view=views(), target=WORKERS, more=st.integers(0, 500))
def test_more_that_waits_never_predicts_a_shorter_wait(view: PoolView, target: int, more: int) -> None:
    first, *others = view.queues
    longer = replace(view, queues=(replace(first, waiting_jobs=(first.waiting_jobs or 0) + more), *others))
    before, after = (predicted_pickup_s(each, target_workers=target) for each in (view, longer))
    if before is not None:
        assert after is not None
        assert after >= before
