"""Whether a decision holds anything that the one before did not: only then is it stored before the heartbeat is due."""

from headway.scaling.decisions.bottlenecks import bottlenecks_of
from headway.scaling.model import Decision

SHARED_NEWS_S = 30.0  # between two decisions that differ only in how many jobs run on workers of other pools


def is_new(decision: Decision, last: Decision | None) -> bool:
    """Whether the target, its reason or a circumstance differs from the ``last`` decision that was stored.

    What is measured anew at each evaluation is no change, in a field or in the words of a note: the heartbeat renews
    it. The facts of notes are compared.
    """
    if last is None or _reasons_of(decision) != _reasons_of(last):
        return True
    return decision.at_s - last.at_s >= SHARED_NEWS_S and _sharing_of(decision) != _sharing_of(last)


def _reasons_of(decision: Decision) -> tuple[object, ...]:
    is_kept_from_jobs = decision.suspension, decision.stoppage
    reasons = decision.target_workers, decision.binding, decision.mode, is_kept_from_jobs, decision.note_facts
    is_sharing = bool(decision.helping_workers), tuple(each.queue for each in decision.helped if each.jobs)
    return *reasons, is_sharing, bottlenecks_of(decision)


def _sharing_of(decision: Decision) -> tuple[object, ...]:
    return decision.helping_workers, decision.helping, decision.helped
