"""Objectives whose late jobs are counted within 2 %, because their seconds are no edge of the sketches."""

from bisect import bisect

from headway.scaling.explanations.phrases import duration
from headway.scaling.profile import Profile
from headway.scaling.sketch_edges import EDGES_S, is_exact


def inexact_objectives(profile: Profile) -> tuple[str, ...]:
    """A sentence, without its full stop, for each such objective of a pool and its queues; none where all are exact."""
    targets_s = {f"pool {profile.pool!r}": profile.objective.target_s}
    targets_s |= {f"queue {queue!r}": each.target_s for queue, each in profile.member_objectives.items()}
    return tuple(
        f"{which}: a wait within 2 % of the objective's {duration(target_s)} may count as late or not; "
        f"{_exact(target_s)}"
        for which, target_s in targets_s.items()
        if not is_exact(target_s)
    )


def _exact(target_s: float) -> str:
    """The edges beside a target."""
    above = bisect(EDGES_S, target_s)
    beside = [duration(edge_s) for edge_s in EDGES_S[max(0, above - 1) : above + 1]]
    return f"{' and '.join(beside)} {'is' if len(beside) == 1 else 'are'} exact"
