"""Arrivals that nobody recorded: drawn from a shape and a seed. The same workload is the same jobs, always."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from heapq import merge
from random import Random
from typing import ClassVar

from headway.errors import Invalid
from headway.scaling.arithmetic import DAY_S

SYNTHETIC_JOBS_MAX = 20_000_000  # more do not fit into a machine's memory at once
PARETO_SHAPE = 1.5  # a finite mean without a finite variance, as measured of files and of batch jobs
MAY_BE_NONE = frozenset({"at_s", "within_s", "closed", "opens_s", "rush"})
SYNTHETIC_TAIL_MAX = 1000.0  # mean service times: no job takes longer than a queue can be watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson:
    """Independent arrivals at one rate."""

    rate_per_s: float = 1.0

    def arrivals(self, chance: Random, *, for_s: float) -> Iterator[float]:
        """When jobs arrive, in seconds from the start."""
        return thinned(lambda _: self.rate_per_s, most_per_s=self.rate_per_s, chance=chance, for_s=for_s)

    def expected_jobs(self, for_s: float) -> float:
        """How many arrive in ``for_s`` at most, on average."""
        return self.rate_per_s * for_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Diurnal:
    """A day's wave around a mean rate: least at the start, most half a period later."""

    rate_per_s: float = 1.0
    swing: float = 0.8
    """How far the wave goes from the mean, as a share of it: 0.8 is 0.2 to 1.8 times the mean."""
    period_s: float = 86_400.0

    def arrivals(self, chance: Random, *, for_s: float) -> Iterator[float]:
        """When jobs arrive, in seconds from the start."""
        most_per_s = self.rate_per_s * (1 + self.swing)
        return thinned(self._rate_per_s, most_per_s=most_per_s, chance=chance, for_s=for_s)

    def _rate_per_s(self, at_s: float) -> float:
        return self.rate_per_s * (1 - self.swing * math.cos(2 * math.pi * at_s / self.period_s))

    def expected_jobs(self, for_s: float) -> float:
        """How many arrive in ``for_s`` at most, on average."""
        return self.rate_per_s * (1 + self.swing) * for_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Flash:
    """A quiet rate, and one crowd that comes within a minute and leaves slowly."""

    rate_per_s: float = 1.0
    peak: float = 20.0
    """The crowd's greatest rate as a multiple of the quiet one."""
    at_s: float = 3600.0
    rise_s: float = 60.0
    decay_s: float = 600.0
    """After so long the crowd is down to 37 %."""

    def arrivals(self, chance: Random, *, for_s: float) -> Iterator[float]:
        """When jobs arrive, in seconds from the start."""
        most_per_s = self.rate_per_s * max(1.0, self.peak)
        return thinned(self._rate_per_s, most_per_s=most_per_s, chance=chance, for_s=for_s)

    def _rate_per_s(self, at_s: float) -> float:
        since_s = at_s - self.at_s
        if since_s < 0:
            crowd = 0.0
        elif since_s < self.rise_s:
            crowd = since_s / self.rise_s
        else:
            crowd = math.exp((self.rise_s - since_s) / self.decay_s)
        return self.rate_per_s * (1 + (self.peak - 1) * crowd)

    def expected_jobs(self, for_s: float) -> float:
        """How many arrive in ``for_s`` at most, on average."""
        crowd_s = min(for_s, self.rise_s + self.decay_s)
        return self.rate_per_s * (for_s + max(0.0, self.peak - 1) * crowd_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOff:
    """Bursts and silence in turn, each of a random length."""

    rate_per_s: float = 5.0
    """While it is on."""
    on_s: float = 300.0
    off_s: float = 900.0

    def arrivals(self, chance: Random, *, for_s: float) -> Iterator[float]:
        """When jobs arrive, in seconds from the start."""
        turn_s = 0.0
        while turn_s < for_s:
            ends_s = min(for_s, turn_s + chance.expovariate(1 / self.on_s))
            at_s = turn_s + chance.expovariate(self.rate_per_s)
            while at_s < ends_s:
                yield at_s
                at_s += chance.expovariate(self.rate_per_s)
            turn_s = ends_s + chance.expovariate(1 / self.off_s)

    def expected_jobs(self, for_s: float) -> float:
        """How many arrive in ``for_s`` at most, on average."""
        return self.rate_per_s * for_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """The same number of jobs at every full period, each within a moment of it."""

    jobs: float = 50.0
    every_s: float = 300.0
    within_s: float = 2.0

    def arrivals(self, chance: Random, *, for_s: float) -> Iterator[float]:
        """When jobs arrive, in seconds from the start."""
        for turn in range(math.ceil(for_s / self.every_s)):
            offsets_s = sorted(chance.uniform(0, min(self.within_s, self.every_s)) for _ in range(round(self.jobs)))
            yield from (at_s for offset_s in offsets_s if (at_s := turn * self.every_s + offset_s) < for_s)

    def expected_jobs(self, for_s: float) -> float:
        """How many arrive in ``for_s`` at most, on average."""
        return self.jobs * math.ceil(for_s / self.every_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """A rate and silence in turn, each of the same length every time."""

    rate_per_s: float = 20.0
    """While it is on."""
    on_s: float = 25.0
    off_s: float = 25.0

    def arrivals(self, chance: Random, *, for_s: float) -> Iterator[float]:
        """When jobs arrive, in seconds from the start."""
        period_s = self.on_s + self.off_s
        whole = thinned(lambda _: self.rate_per_s, most_per_s=self.rate_per_s, chance=chance, for_s=for_s)
        return (at_s for at_s in whole if at_s % period_s < self.on_s)

    def expected_jobs(self, for_s: float) -> float:
        """How many arrive in ``for_s`` at most, on average."""
        return self.rate_per_s * for_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly:
    """Days of work and days off, over and over: a rush as each day of work opens, a rate while it is open, less else.

    It begins with the first day of work.
    """

    rate_per_s: float = 0.5
    """While it is open."""
    closed: float = 0.02
    """What comes while it is closed, as a share of that."""
    days: float = 5.0
    """Of work in a week of seven."""
    opens_s: float = 9 * 3600.0
    closes_s: float = 17 * 3600.0
    rush: float = 50.0
    """Jobs that come as a day of work opens."""
    within_s: float = 5.0

    def arrivals(self, chance: Random, *, for_s: float) -> Iterator[float]:
        """When jobs arrive, in seconds from the start."""
        most_per_s = self.rate_per_s * max(1.0, self.closed)
        steady = thinned(self._rate_per_s, most_per_s=most_per_s, chance=chance, for_s=for_s)
        # A stream of chance of its own, or each would depend on how far the other has been drawn.
        return merge(steady, self._rushes(Random(chance.random()), for_s=for_s))  # noqa: S311

    def _rushes(self, chance: Random, *, for_s: float) -> Iterator[float]:
        for day in range(math.ceil(for_s / DAY_S)):
            if day % 7 < self.days:
                offsets_s = sorted(chance.uniform(0, self.within_s) for _ in range(round(self.rush)))
                yield from (at_s for each in offsets_s if (at_s := day * DAY_S + self.opens_s + each) < for_s)

    def _rate_per_s(self, at_s: float) -> float:
        day, of_day_s = divmod(at_s, DAY_S)
        is_open = day % 7 < self.days and self.opens_s <= of_day_s < self.closes_s
        return self.rate_per_s * (1.0 if is_open else self.closed)

    def expected_jobs(self, for_s: float) -> float:
        """How many arrive in ``for_s`` at most, on average."""
        return self.rate_per_s * max(1.0, self.closed) * for_s + self.rush * math.ceil(for_s / DAY_S)


Arrivals = Poisson | Diurnal | Flash | OnOff | Cron | Square | Weekly

KINDS: Mapping[str, type[Arrivals]] = {
    "poisson": Poisson,
    "diurnal": Diurnal,
    "flash": Flash,
    "onoff": OnOff,
    "cron": Cron,
    "square": Square,
    "weekly": Weekly,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """A workload to be drawn: how jobs arrive, how long they take, for how long and with which seed."""

    TAILS: ClassVar[tuple[str, ...]] = ("exponential", "none", "lognormal", "pareto")

    arrivals: Arrivals = field(default_factory=Poisson)
    service_s: float = 1.0
    tail: str = "exponential"
    """How service times spread around their mean: not at all, or with a tail that grows heavier in this order."""
    for_s: float = 7200.0
    seed: int = 1

    def __post_init__(self) -> None:
        breaches = [*self._numbers()]
        if self.tail not in self.TAILS:
            breaches.append(f"tail {self.tail!r} is not known; known: {', '.join(self.TAILS)}")
        if not breaches and self.arrivals.expected_jobs(self.for_s) > SYNTHETIC_JOBS_MAX:
            breaches.append(
                f"about {self.arrivals.expected_jobs(self.for_s):,.0f} jobs; up to {SYNTHETIC_JOBS_MAX:,} can be drawn"
            )
        if breaches:
            raise Invalid(*(f"synthetic workload: {breach}" for breach in breaches))

    def _numbers(self) -> Iterator[str]:
        values = {item.name: getattr(self.arrivals, item.name) for item in fields(self.arrivals)}
        for name, value in {**values, "service_s": self.service_s, "for_s": self.for_s}.items():
            if name == "swing" and not 0 <= value <= 1:
                yield f"{name}={value:g} must lie in 0..1"
            elif name in MAY_BE_NONE and not 0 <= value < math.inf:
                yield f"{name}={value:g} must not be negative"
            elif name not in {"swing", *MAY_BE_NONE} and not 0 < value < math.inf:
                yield f"{name}={value:g} must be above 0"

    def jobs(self) -> Iterator[tuple[float, float]]:
        """Each job's arrival, in seconds from the start, and its service time, in order of arrival."""
        # Two streams of chance: another spread of the service times leaves the arrivals as they are.
        of_arrivals, of_service = (Random(f"{self.seed}/{stream}") for stream in ("arrivals", "service"))  # noqa: S311
        service_s = service_times(self.service_s, tail=self.tail, chance=of_service)
        for at_s in self.arrivals.arrivals(of_arrivals, for_s=self.for_s):
            yield at_s, service_s()


def thinned(
    rate_per_s: Callable[[float], float], *, most_per_s: float, chance: Random, for_s: float
) -> Iterator[float]:
    """Arrivals of a Poisson process whose rate changes with time and never exceeds ``most_per_s``.

    Source: P. A. W. Lewis and G. S. Shedler, "Simulation of Nonhomogeneous Poisson Processes by Thinning", Naval
    Research Logistics Quarterly 26 (1979).
    """
    at_s = chance.expovariate(most_per_s)
    while at_s < for_s:
        if chance.random() * most_per_s < rate_per_s(at_s):
            yield at_s
        at_s += chance.expovariate(most_per_s)


def service_times(mean_s: float, *, tail: str, chance: Random) -> Callable[[], float]:
    """Draws one service time after the other, around ``mean_s``; at least a millisecond."""
    sigma = 1.0  # the lognormal's 99th percentile is then about six times its mean
    draw: Mapping[str, Callable[[], float]] = {
        "none": lambda: mean_s,
        "exponential": lambda: chance.expovariate(1 / mean_s),
        "lognormal": lambda: chance.lognormvariate(math.log(mean_s) - sigma**2 / 2, sigma),
        "pareto": lambda: mean_s * min(SYNTHETIC_TAIL_MAX, chance.paretovariate(PARETO_SHAPE) * (1 - 1 / PARETO_SHAPE)),
    }
    drawn = draw[tail]
    return lambda: max(0.001, drawn())
