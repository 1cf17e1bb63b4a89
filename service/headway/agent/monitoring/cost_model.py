"""What one worker of each template costs: as measured here once enough samples exist, else by ``host.toml``.

A cost rises at once and falls slowly: workers that have nothing to do for an hour do not make room for twice as many.
The reported cost changes only when the measured one has changed by enough to matter, so that noise moves no worker.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headway.agent.config.templates import Template
from headway.agent.monitoring.resource_usage import WorkerUsage
from headway.scaling import model

COST_SAMPLES_MIN = 5  # samples of a worker, a minute apart
COST_WARM_UP_S = 60.0  # younger ones are still loading
COST_RISE = 0.5  # of the difference a minute
COST_FALL = 0.02  # half of it in 35 minutes
COST_REPORT_BAND = 0.1  # reported again when it differs by more
COST_FLOOR = 0.25  # of the cost in host.toml: a night without jobs does not make a morning's workers free
CPU_CORES_LEAST = 0.01
MEMORY_BYTES_LEAST = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one worker of a template takes, over so many samples."""

    cpu_cores: float
    memory_bytes: float
    samples: int = 0


class CostModel:
    """The measured cost of each template, and its last report."""

    def __init__(self, known: Mapping[str, Cost] | None = None) -> None:
        self.known = dict(known or {})
        """Template -> what is known of it."""
        self._published: dict[str, Cost] = {}

    def learn(self, weights: Mapping[str, Sequence[WorkerUsage]]) -> None:
        """Fold one sample of the workers of each template into what is known."""
        for template, each in weights.items():
            if each:
                self.known[template] = learnt(self.known.get(template), each)

    def reported(self, template: Template) -> model.Template:
        """What the control plane may know of the template, at its cost now."""
        known = self.known.get(template.name)
        if not template.is_measured or known is None or known.samples < COST_SAMPLES_MIN:
            return template.reported()
        before = self._published.get(template.name)
        if before is None or differs(before, known):
            self._published[template.name] = before = known
        return replace(
            template.reported(),
            cpu_cores=round(max(CPU_CORES_LEAST, COST_FLOOR * template.cpu_cores, before.cpu_cores), 3),
            memory_bytes=int(max(MEMORY_BYTES_LEAST, COST_FLOOR * template.memory_bytes, before.memory_bytes)),
        )


def learnt(known: Cost | None, weights: Sequence[WorkerUsage]) -> Cost:
    """What is known after one more sample of some workers, whose mean counts."""
    memory_bytes = sum(weight.memory_bytes for weight in weights) / len(weights)
    cpu_cores = [weight.cpu_cores for weight in weights if weight.cpu_cores is not None]
    if not cpu_cores:
        return known or Cost(cpu_cores=0.0, memory_bytes=memory_bytes)
    mean_cores = sum(cpu_cores) / len(cpu_cores)
    if known is None or not known.samples:
        return Cost(cpu_cores=mean_cores, memory_bytes=memory_bytes, samples=len(weights))
    return Cost(
        cpu_cores=_moved(known.cpu_cores, mean_cores),
        memory_bytes=_moved(known.memory_bytes, memory_bytes),
        samples=known.samples + len(weights),
    )


def differs(reported: Cost, known: Cost) -> bool:
    """Whether the known cost is no longer the reported one."""
    return abs(known.memory_bytes - reported.memory_bytes) > COST_REPORT_BAND * reported.memory_bytes or abs(
        known.cpu_cores - reported.cpu_cores
    ) > COST_REPORT_BAND * max(reported.cpu_cores, CPU_CORES_LEAST)


def _moved(known: float, seen: float) -> float:
    return known + (COST_RISE if seen > known else COST_FALL) * (seen - known)
