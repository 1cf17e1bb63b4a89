"""Pools of which a figure is NaN or infinite: their evaluation has failed, and they keep what is assigned to them."""

from collections.abc import Iterable
from dataclasses import replace

from headway.scaling.decisions.finite_figures import non_finite_decided, non_finite_in
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import Assignment, Note, NoteKind, Step

FAILED = "failed"
"""The binding limit of such a pool's decision."""


def failures(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Pool -> the figure for which its evaluation has failed, of pools of which one is not finite."""
    figures = ((each.decision.pool, non_finite_in(each.view) or non_finite_decided(each)) for each in outcomes)
    return {pool: figure for pool, figure in figures if figure is not None}


def failed_outcome(outcome: Outcome, rows: Iterable[Assignment], *, figure: str) -> Outcome:
    """``outcome`` with the workers that ``rows`` assign to its pool; nothing of the evaluation is remembered."""
    own = [row for row in rows if row.pool == outcome.decision.pool]
    workers = sum(row.workers for row in own)
    decision = replace(
        outcome.decision,
        target_workers=workers,
        burst_workers=sum(row.burst_workers for row in own),
        binding=FAILED,
        steps=(*outcome.decision.steps, Step(name=FAILED, workers=workers)),
        predicted_pickup_s=None,
        member_pickups=(),
    ).with_notes(
        Note(
            kind=NoteKind.NOT_EVALUATED,
            text=f"not evaluated: {figure}; the pool keeps the workers that are assigned to it",
            about=(figure,),
        )
    )
    return replace(outcome, decision=decision, memory=outcome.before)
