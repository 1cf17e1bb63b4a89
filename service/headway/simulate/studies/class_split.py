"""Job classes that share a queue and should not: what long jobs do to short ones that stand behind them.

All forms speak of the steady state at the mean rate; a rehearsal says what a real day makes of it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.errors import Invalid
from headway.scaling.planning.queueing import allen_cunneen_wait_s, erlang_c, slots_for

POISSON_CV2 = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLoad:
    """What one class of jobs brings, and its objective."""

    name: str
    jobs: int
    rate_per_s: float
    service_s: float
    """The mean."""
    service_cv2: float
    """The squared coefficient of variation: variance over the mean's square."""
    target_s: float

    def __post_init__(self) -> None:
        breaches = [
            f"class {self.name!r}: {name}={getattr(self, name)} must be finite and above 0"
            for name in ("rate_per_s", "service_s", "target_s")
            if not 0 < getattr(self, name) < math.inf
        ]
        if not 0 <= self.service_cv2 < math.inf:
            breaches.append(f"class {self.name!r}: service_cv2={self.service_cv2} must be finite and at least 0")
        if breaches:
            raise Invalid(*breaches)

    @property
    def offered_load(self) -> float:
        """Slots that it keeps busy on average."""
        return self.rate_per_s * self.service_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Some classes in one queue, first come first served, with so many slots as the strictest objective needs."""

    classes: tuple[ClassLoad, ...]
    slots: int
    wait_s: float
    """The mean, of every class alike."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the classes."""
        return tuple(each.name for each in self.classes)

    @property
    def load(self) -> float:
        """Slots that the classes keep busy on average."""
        return sum(each.offered_load for each in self.classes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A queue's classes together, and in two queues: the short jobs or the urgent ones apart from the others."""

    together: Shared
    quick: Shared
    slow: Shared

    @property
    def head_of_line_s(self) -> float:
        """How long a quick job waits on average because slow ones stand before it: with the same slots in all, and as
        many of them for the slow ones as they keep busy, rounded up.
        """
        left = self.together.slots - math.ceil(self.slow.load)
        alone_s = _wait_s(self.quick.classes, max(left, math.ceil(self.quick.load) + 1))
        return max(0.0, self.together.wait_s - alone_s)

    @property
    def slots(self) -> int:
        """Of both queues."""
        return self.quick.slots + self.slow.slots


def class_load(name: str, service_s: Sequence[float], *, length_s: float, target_s: float) -> ClassLoad:
    """What the jobs of one class brought in ``length_s``, given how long each took."""
    mean_s = sum(service_s) / len(service_s)
    variance = sum((each - mean_s) ** 2 for each in service_s) / len(service_s)
    return ClassLoad(
        name=name,
        jobs=len(service_s),
        rate_per_s=len(service_s) / length_s,
        service_s=mean_s,
        service_cv2=variance / mean_s**2 if mean_s else 0.0,
        target_s=target_s,
    )


def shared(classes: Sequence[ClassLoad], *, percentile: float) -> Shared:
    """``classes`` in one queue."""
    load, service_s, service_cv2 = mixed(classes)
    target_s = min(each.target_s for each in classes)
    slots = slots_for(load, service_s, target_s, percentile)
    while exceeds_probability(slots, load, service_s, service_cv2, target_s) > 1 - percentile / 100:
        slots += 1
    return Shared(classes=tuple(classes), slots=slots, wait_s=_wait_s(classes, slots))


def best_split(classes: Sequence[ClassLoad], *, percentile: float) -> Split | None:
    """The division in two that needs the fewest slots, and of equals the one that saves quick jobs the most waiting.

    Classes are divided where their service times or their objectives leave the greatest gain: never a longer class with
    the short ones and a shorter one without. ``None`` of a single class.
    """
    together = shared(classes, percentile=percentile)
    found = [
        Split(together=together, quick=shared(quick, percentile=percentile), slow=shared(slow, percentile=percentile))
        for quick, slow in _divisions(classes)
    ]
    return min(found, key=lambda each: (each.slots, -each.head_of_line_s), default=None)


def _divisions(classes: Sequence[ClassLoad]) -> Iterable[tuple[Sequence[ClassLoad], Sequence[ClassLoad]]]:
    by_service = sorted(classes, key=lambda each: (each.service_s, each.name))
    by_target = sorted(classes, key=lambda each: (each.target_s, each.name))
    for ordered in (by_service, by_target):
        yield from ((ordered[:cut], ordered[cut:]) for cut in range(1, len(ordered)))


def mixed(classes: Sequence[ClassLoad]) -> tuple[float, float, float]:
    """The offered load of ``classes`` together, the mean of their service times and its squared variation.

    Source: the second moment of a mixture is the mixture of the second moments.
    """
    rate_per_s = sum(each.rate_per_s for each in classes)
    load = sum(each.offered_load for each in classes)
    mean_s = load / rate_per_s
    square = sum(each.rate_per_s * each.service_s**2 * (1 + each.service_cv2) for each in classes) / rate_per_s
    return load, mean_s, max(0.0, square / mean_s**2 - 1)


def exceeds_probability(slots: int, load: float, service_s: float, service_cv2: float, target_s: float) -> float:
    """The chance that a job waits longer than ``target_s`` where service times vary as they do (M/G/c, approximate).

    Source: W. Whitt, "Approximations for the GI/G/m queue", Production and Operations Management 2 (1993): the chance
    of waiting at all is that of M/M/c, and who waits does so for an exponential time with Allen and Cunneen's mean.
    """
    if slots <= load:
        return 1.0
    mean_s = service_s / (slots - load) * (POISSON_CV2 + service_cv2) / 2
    return erlang_c(slots, load) * (math.exp(-target_s / mean_s) if mean_s else 0.0)


def _wait_s(classes: Sequence[ClassLoad], slots: int) -> float:
    load, service_s, service_cv2 = mixed(classes)
    return allen_cunneen_wait_s(slots, load, service_s, POISSON_CV2, service_cv2)
