"""Whether a decision holds anything that the one before did not: only then is it stored before the heartbeat is due."""

from headway.scaling.decisions.bottlenecks import bottlenecks_of
from headway.scaling.model import Decision


def is_new(decision: Decision, last: Decision | None) -> bool:
    """Whether the target, its reason or a circumstance differs from the ``last`` decision that was stored.

    What is measured anew at each evaluation is no change, in a field or in the words of a note: the heartbeat renews
    it. The facts of notes are compared.
    """
    return last is None or _reasons_of(decision) != _reasons_of(last)


def _reasons_of(decision: Decision) -> tuple[object, ...]:
    is_kept_from_jobs = decision.suspension, decision.stoppage
    # Whether workers help is news; how many jobs they run is measured each time.
    sharing = bool(decision.helping_workers), tuple(each.queue for each in decision.helped if each.jobs)
    reasons = decision.target_workers, decision.binding, decision.mode, is_kept_from_jobs, decision.note_facts
    return *reasons, sharing, bottlenecks_of(decision)
