"""How many cores a machine has left for workers, by how long starts took beside each other in a calibration.

What else runs there takes its part, and the scheduler shares cores by groups and by weights: counting what others used
says less than how much slower starts became. The starts of the calibration are planned again on some number of cores,
each with what it takes alone. The number with which the median start takes what it took is what workers had.
"""

import os
from collections.abc import Sequence
from statistics import median

from headway.scaling.behaviour import Behaviour
from headway.simulate.cores import Cores, Work

LEAST = 0.1
ROUNDS = 20  # a millionth of the machine


def cores_left(behaviour: Behaviour, spawned_at_s: Sequence[float]) -> float:
    """The cores of this machine that workers had, of all at most.

    Args:
        behaviour: What was learned of the calibration, its start-ups as they were and as they take alone.
        spawned_at_s: When each worker of the calibration was spawned, Unix seconds.
    """
    assert behaviour.start_up is not None
    least, most = LEAST, float(os.cpu_count() or 1)
    for _ in range(ROUNDS):
        cores = (least + most) / 2
        if _median_start_s(behaviour, spawned_at_s, cores) > behaviour.start_up.p50_s:
            least = cores
        else:
            most = cores
    return most


def _median_start_s(behaviour: Behaviour, spawned_at_s: Sequence[float], cores: float) -> float:
    assert behaviour.start_up_alone is not None
    assert behaviour.start_up_cpu_s is not None
    rest_s = max(0.0, behaviour.start_up_alone.p50_s - behaviour.start_up_cpu_s)
    machine = Cores(cores, starting_max=None, busy_cores=lambda: 0.0)
    took_s: dict[int, float] = {}
    for number, at_s in enumerate(sorted(spawned_at_s)):

        def on_plan(spawned_s: float, ready_s: float, number: int = number) -> None:
            took_s[number] = ready_s - spawned_s

        machine.begin(Work(worker=number, cpu_s=behaviour.start_up_cpu_s, rest_s=rest_s, on_plan=on_plan), at_s)
        machine.plan(at_s)
    return median(took_s.values())
