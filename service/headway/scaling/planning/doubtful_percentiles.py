"""Objectives whose percentile is so low that it was probably meant as a share: 0.99 is 0.99 % of the jobs, not 99 %."""

from headway.scaling.arithmetic import PERCENT
from headway.scaling.profile import Profile

PERCENTILE_DOUBTFUL = 50.0  # below it, most jobs may be late without a breach


def doubtful_percentiles(profile: Profile) -> tuple[str, ...]:
    """A sentence, without its full stop, for each such objective of a pool and its queues."""
    percentiles = {f"pool {profile.pool!r}": profile.objective.percentile}
    percentiles |= {f"queue {queue!r}": each.percentile for queue, each in profile.member_objectives.items()}
    return tuple(
        f"{which}: the objective's percentile={percentile:g} asks {percentile:g} % of the jobs to start in time"
        f"{_meant(percentile)}"
        for which, percentile in percentiles.items()
        if percentile < PERCENTILE_DOUBTFUL
    )


def _meant(percentile: float) -> str:
    """A question after the percentile that a share was meant for; nothing where it cannot be one."""
    share = PERCENT * percentile
    return f"; did you mean {share:g}?" if PERCENTILE_DOUBTFUL <= share < PERCENT else ""
