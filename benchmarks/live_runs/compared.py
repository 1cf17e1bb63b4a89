"""What live runs of a workload came to, and what rehearsals of the same jobs say."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

from headway.scaling.metrics.behaviour import Behaviour, behaviour_from_mapping
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.jobs import Jobs
from live_runs.cores import CORES, busy_cores
from live_runs.workloads import Workload

FIGURES = ("attainment_percent", "worker_s", "starts")
TOLERANCES = {"attainment_percent": 0.5, "worker_s": 0.10, "starts": 0.15}
"""Points of attainment; shares of the others."""
PARTS = ("exit", "dispatch_overhead_s", "sample_lag", "worker_lag", "evaluation_delay", "apply_delay", "wake_delay")
STARTING_MAX = max(
    8, 4 * (os.cpu_count() or 1)
)  # what an agent lets start at once, unless its host file says otherwise
SEEDS = 8
POOL, QUEUE = "rehearsed", "live/rehearsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One workload: figures by name, of each live run and of the rehearsals of it."""

    workload: Workload
    behaviour: Behaviour
    busy_cores: float
    """What other programs wanted of the machine in the calibration, by how long starts took beside each other."""
    live: Mapping[str, Sequence[float]]
    live_until_done_s: Sequence[float]
    """The worker-seconds of each live run up to the end of its last job."""
    rehearsed: Mapping[str, Sequence[float]]
    """With the behaviour of the calibration, at the ticks that the live runs had."""
    plain: Mapping[str, Sequence[float]]
    """The plain model at the same ticks, all start-ups as long as the median one."""
    without: Mapping[str, Mapping[str, Sequence[float]]]
    """The same as if one part of the behaviour took no time, by its name: what that part costs is the difference."""
    live_service_s: Sequence[float]
    """How long a job of each live run took at the mean: more than it asks for where jobs wait for a core."""
    commits: Sequence[str]
    """Of this code, that the live runs were made with."""
    loads: Sequence[float]
    """How many processes wanted a processor before each run."""

    def difference(self, figure: str, *, of: str = "rehearsed") -> float:
        """Live beyond the rehearsal, of the medians: points of attainment, a share of the others."""
        live, ours = median(self.live[figure]), median(getattr(self, of)[figure])
        if figure == "attainment_percent":
            return live - ours
        return live / ours - 1 if ours else float("inf")

    def holds(self, figure: str) -> bool:
        """Whether the difference is within its tolerance."""
        return abs(self.difference(figure)) <= TOLERANCES[figure]


def compared(workload: Workload, calibration: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Comparison:
    """The live runs of ``rows`` beside their rehearsals, with what the calibration measured."""
    behaviour = behaviour_from_mapping(calibration["behaviour"])
    assert behaviour.start_up is not None, "no worker has started in the calibration"
    busy = busy_cores(behaviour, calibration["spawned_at_s"])
    whole = partial(_all, workload, rows, busy_cores=busy)
    return Comparison(
        workload=workload,
        behaviour=behaviour,
        busy_cores=busy,
        live={name: [row["live"][name] for row in rows] for name in FIGURES},
        live_until_done_s=[row["live"]["worker_s_until_done"] for row in rows],
        rehearsed=whole(behaviour),
        plain=_gathered([_rehearsed(workload, row, 0, start_up_s=behaviour.start_up.p50_s) for row in rows]),
        without={part: whole(_without(behaviour, part)) for part in PARTS if getattr(behaviour, part) is not None},
        live_service_s=[row["live"]["service_s"] for row in rows],
        commits=sorted({row["commit"] for row in (calibration, *rows)}),
        loads=[row["load"][0] for row in rows],
    )


def _all(
    workload: Workload, rows: Sequence[Mapping[str, Any]], behaviour: Behaviour, *, busy_cores: float
) -> Mapping[str, Sequence[float]]:
    machine = {"starting_max": STARTING_MAX, "host_cores": CORES, "busy_cores": busy_cores}
    setting = {"behaviour": behaviour, "is_new_pool": True, **machine}
    return _gathered([_rehearsed(workload, row, seed, **setting) for row in rows for seed in range(SEEDS)])


def _without(behaviour: Behaviour, part: str) -> Behaviour:
    return replace(behaviour, **({"exit": None, "exit_alone": None} if part == "exit" else {part: None}))


def _rehearsed(workload: Workload, row: Mapping[str, Any], seed: int, **setting: Any) -> dict[str, float]:
    result = rehearse(
        Jobs.of(workload.jobs()),
        workload.profile(POOL, QUEUE),
        Setting(tick_phase_s=row["phase_s"], seed=seed, goes_on_s=workload.goes_on_s, **setting),
        begins_at_s=row["began_at_s"],
    )
    return {
        "attainment_percent": result.attainment_percent,
        "worker_s": result.worker_hours * 3600,
        "starts": float(result.spawns),
    }


def _gathered(found: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    return {name: [each[name] for each in found] for name in FIGURES}
