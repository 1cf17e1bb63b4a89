"""What other programs took of a machine, by how long starts took beside each other in a calibration.

Other programs want cores as well, and the scheduler gives everybody an even part: each worker leads a session of its
own, and Linux shares cores between sessions first, whatever priority the programs within have. So many of them as make
the median start of the calibration take what it took, each start with what it takes alone, were there.
"""

import os
from collections.abc import Sequence
from statistics import median

from headway.scaling.metrics.behaviour import Behaviour
from headway.simulate.engine.cores import Cores, Work

CORES = float(os.cpu_count() or 1)
MOST = 64.0
ROUNDS = 30  # a millionth


def busy_cores(behaviour: Behaviour, spawned_at_s: Sequence[float]) -> float:
    """The cores that others wanted, from 0 to ``MOST``.

    Args:
        behaviour: What was learned of the calibration, its start-ups as they were and as they take alone.
        spawned_at_s: When each worker of the calibration was spawned, Unix seconds.
    """
    assert behaviour.start_up is not None
    least, most = 0.0, MOST
    for _ in range(ROUNDS):
        busy = (least + most) / 2
        if _median_start_s(behaviour, spawned_at_s, busy) > behaviour.start_up.p50_s:
            most = busy
        else:
            least = busy
    return least


def _median_start_s(behaviour: Behaviour, spawned_at_s: Sequence[float], busy: float) -> float:
    assert behaviour.start_up_alone is not None
    assert behaviour.start_up_cpu_s is not None
    rest_s = max(0.0, behaviour.start_up_alone.p50_s - behaviour.start_up_cpu_s)
    machine = Cores(CORES, starting_max=None, busy_cores=lambda: busy)
    took_s: dict[int, float] = {}
    for number, at_s in enumerate(sorted(spawned_at_s)):

        def on_plan(spawned_s: float, ready_s: float, number: int = number) -> None:
            took_s[number] = ready_s - spawned_s

        machine.begin(Work(worker=number, cpu_s=behaviour.start_up_cpu_s, rest_s=rest_s, on_plan=on_plan), at_s)
        machine.plan(at_s)
    return median(took_s.values())
