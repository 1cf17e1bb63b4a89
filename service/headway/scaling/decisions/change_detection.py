"""Whether a decision holds anything that the one before did not: only then is it stored before the heartbeat is due."""

import re
from functools import lru_cache

from headway.scaling.decisions.bottlenecks import bottlenecks_of
from headway.scaling.model import Decision

# A number that stands alone, as "12.5 workers" and "21 s". Those of names, settings (key=4) and moments are exact.
_FIGURE = re.compile(r"(?<![\w./=:-])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w./=:-])")


def is_new(decision: Decision, last: Decision | None) -> bool:
    """Whether the target, its reason or a circumstance differs from the ``last`` decision that was stored.

    What is measured anew at each evaluation is no change, in a field or in a strategy's note: the heartbeat renews it.
    """
    return last is None or _reasons_of(decision) != _reasons_of(last)


def _reasons_of(decision: Decision) -> tuple[object, ...]:
    notes = tuple(map(without_figures, decision.notes))
    is_kept_from_jobs = decision.suspension, decision.stoppage
    reasons = decision.target_workers, decision.binding, decision.mode, is_kept_from_jobs, notes
    return *reasons, bottlenecks_of(decision)


@lru_cache(maxsize=4096)  # the same few notes of each pool, at every evaluation
def without_figures(note: str) -> str:
    """``note`` with each figure that stands alone as ``#``: two that say the same of other figures are one."""
    return _FIGURE.sub("#", note)
