"""Which events of pools an evaluation may lead to, and the reason that each would have. The database says which do.

Reasons are rendered here, outside of the leader's transaction, and only of changes: a thousand pools may be late at
once, for an hour.
"""

from collections.abc import Collection, Iterable, Mapping

from headway.scaling.decisions.outcome import Outcome
from headway.scaling.decisions.worst_wait import predicted_wait
from headway.scaling.explain import member_prediction
from headway.scaling.explanations.explanation import Worded, explanation_of
from headway.scaling.model import Decision, MemberPickup, Mode, PoolEventKind
from headway.store.outbox.pool_events import PREDICTED_AGAIN_AFTER_S, PossibleEvents, Subscribers

SCALED, BREACH_PREDICTED = PoolEventKind.SCALED, PoolEventKind.BREACH_PREDICTED


class EventReasons:
    """The reasons of events, from one evaluation to the next."""

    def __init__(self, subscribers_of: Subscribers, strategies: Mapping[str, Worded]) -> None:
        self._subscribers_of = subscribers_of
        self._strategies = strategies
        self._predicted_at_s: dict[str, float] = {}
        """Pool -> when a breach of it was predicted last, while this process leads."""

    def forget(self) -> None:
        """Begin again: another process may have led meanwhile."""
        self._predicted_at_s = {}

    def of(
        self, outcomes: Collection[Outcome], stored: Iterable[Decision], targets: Mapping[str, int], *, now_s: float
    ) -> PossibleEvents:
        """The events that may follow from decisions that replace ``targets`` by those of ``stored``."""
        reasons = {}
        predicted = {}
        for outcome in outcomes:
            decision, sentence = outcome.decision, self._prediction(outcome)
            if sentence is None:
                continue
            pool = decision.pool
            predicted[pool] = decision
            if self._is_another(pool, now_s=now_s):
                reasons[BREACH_PREDICTED, pool] = f"{sentence} {self._why(decision, targets)}"
        for decision in stored:
            pool = decision.pool
            is_change = decision.mode is not Mode.RECOMMEND and targets.get(pool) != decision.target_workers
            if is_change and self._subscribers_of(SCALED, pool):
                reasons[SCALED, pool] = self._why(decision, targets)
        return PossibleEvents(subscribers_of=self._subscribers_of, predicted=predicted, reasons=reasons)

    def keep(self, events: PossibleEvents, pools: Collection[str], *, now_s: float) -> None:
        """Note the predictions of an evaluation that is stored, of the ``pools`` that there are."""
        known = self._predicted_at_s | dict.fromkeys(events.predicted, now_s)
        self._predicted_at_s = {pool: at_s for pool, at_s in known.items() if pool in pools}

    def _prediction(self, outcome: Outcome) -> str | None:
        """The sentence that predicts a breach; ``None`` if none is predicted, or no receiver subscribes to it."""
        decision = outcome.decision
        wait = predicted_wait(decision, outcome.view.profile)
        if wait is None or not wait.is_late or not self._subscribers_of(BREACH_PREDICTED, decision.pool):
            return None
        return member_prediction(
            MemberPickup(queue=wait.queue, objective=wait.objective, predicted_pickup_s=wait.wait_s)
        )

    def _is_another(self, pool: str, *, now_s: float) -> bool:
        """Whether the last prediction is so long ago that this may be another, or the clock was set back."""
        last_s = self._predicted_at_s.get(pool)
        return last_s is None or not 0.0 <= now_s - last_s < PREDICTED_AGAIN_AFTER_S

    def _why(self, decision: Decision, targets: Mapping[str, int]) -> str:
        before = targets.get(decision.pool, 0)
        return explanation_of(decision, previous_workers=before, strategies=self._strategies).why
