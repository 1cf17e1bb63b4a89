"""From what each pool wants alone to what all get together: shared where room is short, and placed on hosts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headway.scaling.decide import predicted_pickup_s
from headway.scaling.model import Assignment, Decision, Host, LastMove, Memory, Mode, Step
from headway.scaling.placement import PoolTarget, place, placed_workers
from headway.scaling.share import Claim, share, urgency
from headway.scaling.view import PoolView

NEVER_DOWN = frozenset({Mode.PAUSE, Mode.PAUSE_DOWN})  # what an operator keeps from going down, others do not take


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one pool that was decided."""

    view: PoolView
    before: Memory
    """What was remembered when it was decided."""
    decision: Decision
    memory: Memory


def settled(
    outcomes: Sequence[Outcome],
    hosts: Sequence[Host],
    current: Sequence[Assignment],
    *,
    held: Iterable[Assignment] = (),
) -> tuple[tuple[Outcome, ...], tuple[Assignment, ...]]:
    """The outcomes with what ``share`` left each, and where every worker of theirs goes.

    A pool that only gets advice takes part in nothing: its decision stays and its rows are not among the result.

    Args:
        outcomes: one a pool, decided as if it were alone.
        hosts: all hosts.
        current: what is in place.
        held: rows of pools that were not decided and stay as they are; they are not returned.
    """
    held = tuple(held)
    present = {row.pool for row in current}
    # Most pools of a large installation have nothing and want nothing: no place is looked for.
    acting = [
        outcome
        for outcome in outcomes
        if outcome.decision.mode is not Mode.RECOMMEND
        and (outcome.decision.target_workers or outcome.decision.pool in present)
    ]
    rows = place(map(_target, acting), hosts, current, held=held, may_take_over=False)
    got = placed_workers(rows)
    if all(got.get(outcome.decision.pool, 0) == outcome.decision.target_workers for outcome in acting):
        return tuple(outcomes), rows
    granted = share(map(_claim, acting), hosts, held=held, current=current)
    left = tuple(_left(outcome, granted.get(outcome.decision.pool)) for outcome in outcomes)
    targets = [_target(outcome) for outcome in left if outcome.decision.pool in granted]
    return left, place(targets, hosts, current, held=held)


def _target(outcome: Outcome) -> PoolTarget:
    return PoolTarget(
        pool=outcome.decision.pool,
        template=outcome.view.profile.template,
        workers=outcome.decision.target_workers,
        burst_workers=outcome.decision.burst_workers,
        priority=outcome.view.profile.priority,
        labels=outcome.view.profile.placement.labels,
        spread=outcome.view.profile.placement.spread,
    )


def _claim(outcome: Outcome) -> Claim:
    profile = outcome.view.profile
    return Claim(
        pool=profile.pool,
        template=profile.template,
        workers=outcome.decision.target_workers,
        guaranteed_workers=_guaranteed_workers(outcome),
        priority=profile.priority,
        weight=profile.weight,
        urgency=urgency(outcome.decision),
        labels=profile.placement.labels,
    )


def _guaranteed_workers(outcome: Outcome) -> int:
    """The floor of this moment, a pinned count, and what an operator keeps from going down."""
    profile = outcome.view.profile
    floor = profile.bounds_at(outcome.decision.at_s, outcome.view.zones).workers_min
    kept = _last_workers(outcome) if profile.mode in NEVER_DOWN else 0
    return max(floor, kept, profile.pinned or 0)


def _last_workers(outcome: Outcome) -> int:
    before = outcome.before
    return outcome.view.assigned_workers if before.target_workers is None else before.target_workers


def _left(outcome: Outcome, workers: int | None) -> Outcome:
    """``outcome`` with no more than ``workers``: a step says so, and what is remembered and predicted is of these."""
    decision, before = outcome.decision, outcome.before
    if workers is None or workers >= decision.target_workers:
        return outcome
    moved = workers - _last_workers(outcome)
    return replace(
        outcome,
        decision=replace(
            decision,
            target_workers=workers,
            burst_workers=min(decision.burst_workers, workers),
            binding="share",
            steps=(*decision.steps, Step(name="share", workers=workers)),
            predicted_pickup_s=predicted_pickup_s(
                replace(outcome.view, queues=decision.metrics), target_workers=workers
            ),
        ),
        memory=replace(
            outcome.memory,
            target_workers=workers,
            last_move=LastMove(at_s=decision.at_s, is_up=moved > 0) if moved else before.last_move,
        ),
    )
