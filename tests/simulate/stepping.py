"""Controllers small enough to check a rehearsal by hand."""

from collections.abc import Callable
from dataclasses import dataclass

from headway.simulate.controller import Observation
from headway.simulate.workloads.jobs import Jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How many workers are wanted."""

    target_workers: int
    burst_workers: int = 0


class Script:
    """Wants what its function of the observation says, and keeps what it saw."""

    def __init__(self, wish: Callable[[Observation], int | Wish]) -> None:
        self.seen: list[Observation] = []
        self.now_s: list[float] = []
        self._wish = wish

    def step(self, observation: Observation, *, now_s: float | None = None) -> Wish:
        self.seen.append(observation)
        self.now_s.append(observation.at_s if now_s is None else now_s)
        wish = self._wish(observation)
        return wish if isinstance(wish, Wish) else Wish(target_workers=wish)


def always(workers: int) -> Script:
    return Script(lambda _: workers)


def by_time(*targets: tuple[float, int]) -> Script:
    """The target of the last pair whose time has come."""
    return Script(lambda seen: [workers for at_s, workers in targets if at_s <= seen.at_s][-1])


def jobs(*pairs: tuple[float, float]) -> Jobs:
    """Jobs from pairs of arrival and service time."""
    return Jobs(at_s=[at_s for at_s, _ in pairs], service_s=[service_s for _, service_s in pairs])
