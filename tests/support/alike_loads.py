"""Loads that begin like those of `LOADS` and go on otherwise: until then no strategy can know which.

A strategy that suits one of the two by chance pays for it on the other. So who beats `hybrid` on a load is asked what
it does on the load that begins alike.
"""

from collections.abc import Mapping
from dataclasses import replace

from headway.scaling.arithmetic import HOUR_S
from headway.simulate.workloads.loads import LOADS, Load
from headway.simulate.workloads.synthetic import Poisson, Synthetic

ALIKE: Mapping[str, Load] = {
    # The same jobs, and after ten minutes one more now and then, which may come while another is at work.
    "metronome": Load(
        parts=(
            *LOADS["metronome"].parts,
            Synthetic(arrivals=Poisson(rate_per_s=1 / 600), service_s=20.0, tail="none", for_s=6 * HOUR_S),
        )
    ),
    # The same arrivals of jobs that take six times as long: four workers suffice, and three do not.
    "over_ceiling": Load(
        parts=tuple(replace(part, service_s=0.06) for part in LOADS["over_ceiling"].parts),
        workers_max=LOADS["over_ceiling"].workers_max,
    ),
}


def alike_s(load: Load, other: Load, *, start_up_s: float) -> float:
    """How long ``load`` and ``other`` are the same to a pool that starts from nothing.

    They differ from the first job that only one of them has, or from the first end of a job that does not take the same
    time in both. A job ends no earlier than the first worker can be up and have done it.
    """
    pairs = [[*zip(jobs.at_s, jobs.service_s, strict=True)] for jobs in (load.jobs(), other.jobs())]
    for (at_s, service_s), (other_at_s, other_service_s) in zip(*pairs, strict=False):
        if at_s != other_at_s:
            return min(at_s, other_at_s)
        if service_s != other_service_s:
            return max(at_s, start_up_s) + min(service_s, other_service_s)
    return min(each[-1][0] for each in pairs)
