"""Which decisions stand: deciding again would give the same, so it is left out.

The rule is safe rather than sharp. What it does not know to be without a clock does not stand.
"""

from collections.abc import Callable
from itertools import pairwise
from operator import attrgetter

from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import Memory, QueueMetrics
from headway.scaling.policy.limit import Clock, Rule, limit_of
from headway.scaling.policy.limits import by_name
from headway.scaling.reading.sample_age import freshness_of
from headway.scaling.strategy import Strategy
from headway.scaling.view import PoolView

REUSED_S_MAX = 120.0  # then it is decided again whatever holds, so that a stored decision is renewed in time

_of_queue = attrgetter(*(name for name in QueueMetrics.__slots__ if name != "sampled_at_s"))
# The readings that came round the pipeline matter to stale metrics only, and those never stand.
_of_view = attrgetter(*(name for name in PoolView.__slots__ if name not in {"queues", "direct"}))


def is_reusable(outcome: Outcome, view: PoolView, memory: Memory, *, now_s: float, strategy: Strategy) -> bool:
    """Whether deciding on ``view`` with ``memory`` at ``now_s`` would give ``outcome`` again.

    But for ``at_s`` and the times of samples: a queue that was read again and is as it was has not changed.
    """
    at_s = outcome.decision.at_s
    return (
        0 <= now_s - at_s <= REUSED_S_MAX
        and strategy.is_clockless
        and not _does_any_job_wait(view)
        and strategy.is_at_rest(memory.strategy_state, now_s)
        and _is_quiet(outcome, view, now_s=now_s)
        and memory == outcome.before == outcome.memory
        and is_same(outcome.view, view)
        and _do_limits_stand(outcome, strategy.come_down, now_s=now_s)
    )


def is_lasting(outcome: Outcome, *, strategy: Strategy) -> bool:
    """Whether deciding again gives ``outcome`` again at any later time, while the pool stays as it is and is sampled.

    So ``is_reusable`` holds from then on, for as long as nothing happens: a rehearsal passes over all of that time.
    """
    view, at_s, memory = outcome.view, outcome.decision.at_s, outcome.memory
    return (
        strategy.is_clockless
        and not memory.strategy_state
        and not memory.wanted
        and memory.stoppage is None
        and not _does_any_job_wait(view)
        and _ages_nothing(outcome)
        and _lowers_nothing(outcome)
        and outcome.before == memory
        and _do_clocks_stand(outcome, strategy.come_down, lambda clock: clock(view, at_s) is None)
    )


def is_same(one: PoolView, other: PoolView) -> bool:
    """Whether two views differ at most in the times of their samples and in what came round the pipeline."""
    return (
        len(one.queues) == len(other.queues)
        and bool(_of_view(one) == _of_view(other))
        and all(
            ours is theirs
            or ((ours.sampled_at_s is None) == (theirs.sampled_at_s is None) and _of_queue(ours) == _of_queue(theirs))
            for ours, theirs in zip(one.queues, other.queues, strict=True)
        )
    )


def _is_quiet(outcome: Outcome, view: PoolView, *, now_s: float) -> bool:
    """Whether nothing ages: no job is held back, none waited beside idle slots, and the metrics were and are fresh."""
    freshness = freshness_of(view.queues, view.profile, now_s=now_s)
    return (
        _ages_nothing(outcome)
        and freshness.is_fresh
        and (_lowers_nothing(outcome) or not (freshness.is_unread or _was_unread(outcome)))
    )


def _does_any_job_wait(view: PoolView) -> bool:
    """Whether a job waits, or is due later."""
    return any(queue.waiting_least_jobs or queue.delayed for queue in view.queues)


def _ages_nothing(outcome: Outcome) -> bool:
    """Whether the decision went by fresh metrics, holds no job back and knows of none that waited beside idle slots."""
    return outcome.decision.is_fresh and outcome.memory.held_since_s is None and outcome.memory.plateau is None


def _was_unread(outcome: Outcome) -> bool:
    return freshness_of(outcome.view.queues, outcome.view.profile, now_s=outcome.decision.at_s).is_unread


def _lowers_nothing(outcome: Outcome) -> bool:
    """Whether no fewer workers are wanted than there were: then there is nothing to hold, read or unread."""
    return outcome.decision.steps[0].workers >= max(outcome.before.target_workers or 0, outcome.view.assigned_workers)


def _do_limits_stand(outcome: Outcome, come_down: Rule, *, now_s: float) -> bool:
    """Whether every limit says at ``now_s`` what it said, given what ``is_reusable`` compares besides."""
    view, at_s = outcome.view, outcome.decision.at_s
    return _do_wants_stay(outcome, now_s=now_s) and _do_clocks_stand(
        outcome, come_down, lambda clock: clock(view, at_s) == clock(view, now_s)
    )


def _do_clocks_stand(outcome: Outcome, come_down: Rule, does_stand: Callable[[Clock], bool]) -> bool:
    """Whether all limits of the decision are known and each clock that they read ``does_stand``.

    That of a strategy's own way to take a lower count need not, where no change is asked for: there is nothing to hold.
    """
    known, own = by_name(come_down), limit_of(come_down)
    for before, step in pairwise(outcome.decision.steps):
        limit = known.get(step.name)
        if limit is None:
            return False
        is_kept = limit is own and before.workers == outcome.before.target_workers
        if not (limit.clock is None or is_kept or does_stand(limit.clock)):
            return False
    return True


def _do_wants_stay(outcome: Outcome, *, now_s: float) -> bool:
    """Whether what is remembered of wants stays as it is, whichever limit reads it."""
    hold_s = outcome.view.profile.hold_down_s
    if hold_s is None:  # chosen anew at each evaluation, by what each want would have cost
        return not outcome.memory.wanted
    return all(wanted.at_s >= now_s - hold_s for wanted in outcome.memory.wanted)
