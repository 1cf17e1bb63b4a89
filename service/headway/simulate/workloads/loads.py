"""Named loads that no recorded workload holds, each hard for a policy in a way of its own.

The objective that all of them are run with is 10 s. Figures in brackets are what ``hybrid`` came to when the load was
made: jobs in time in %, worker-hours ÷ hours of work, starts of workers. Beside them stands the cheapest pool of
constant size that starts as many jobs in time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from headway.scaling.arithmetic import HOUR_S
from headway.simulate.workloads.jobs import Jobs
from headway.simulate.workloads.synthetic import Cron, Poisson, Square, Synthetic

BURST_AT_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Parts that are drawn apart and served together."""

    parts: tuple[Synthetic, ...]
    burst_jobs: int = 0
    """At once, each as long as one of the first part, once a quarter of an hour has passed."""
    workers_max: int = 100
    dispatch_s: float = 0.0
    """What a worker is busy for around each job, beside its measured service time."""

    def jobs(self, *, seed: int = 1) -> Jobs:
        """The jobs of all parts, in order of arrival."""
        drawn = (replace(part, seed=100 * seed + number).jobs() for number, part in enumerate(self.parts))
        burst = [(BURST_AT_S, self.parts[0].service_s)] * self.burst_jobs
        ordered = sorted(chain(burst, *drawn))
        return Jobs(
            at_s=[at_s for at_s, _ in ordered],
            service_s=[service_s + self.dispatch_s for _, service_s in ordered],
            dispatch_s=self.dispatch_s,
        )


def _poisson(rate_per_s: float, service_s: float, *, for_s: float) -> Synthetic:
    return Synthetic(arrivals=Poisson(rate_per_s=rate_per_s), service_s=service_s, tail="none", for_s=for_s)


def _cron(jobs: int, service_s: float, *, every_s: float, for_s: float, within_s: float = 0.0) -> Synthetic:
    arrivals = Cron(jobs=jobs, every_s=every_s, within_s=within_s)
    return Synthetic(arrivals=arrivals, service_s=service_s, tail="none", for_s=for_s)


def _waves(length_s: float) -> Load:
    arrivals = Square(rate_per_s=40.0, on_s=length_s, off_s=length_s)
    return Load(parts=(Synthetic(arrivals=arrivals, service_s=1.0, tail="none", for_s=HOUR_S),))


LOADS: Mapping[str, Load] = {
    # Short jobs all the time, and forty long ones at once each 20 min: the mean service time says nothing of either.
    # [start-up 2: 98.7 / 2.2 / 1,500; start-up 8: 97.2]. Constant: 41 workers, 27 times the work.
    "blips_and_blocks": Load(
        parts=(_poisson(5.0, 0.1, for_s=4 * HOUR_S), _cron(40, 30.0, every_s=1200.0, within_s=2.0, for_s=4 * HOUR_S))
    ),
    # Forty jobs a second for so long, then nothing for as long: workers are dismissed in each pause.
    # [start-up 2: up to 7,000 starts an hour]. Constant: 30 workers, 1.5 times the work.
    "square_wave_15": _waves(15.0),
    "square_wave": _waves(25.0),
    "square_wave_40": _waves(40.0),
    # One job at a time, as regular as a clock. [start-up 8: 99.7 / 4.75]. Constant: 1 worker, 3.25 times the work.
    "metronome": Load(parts=(_cron(1, 20.0, every_s=65.0, within_s=3.0, for_s=6 * HOUR_S),)),
    # Four jobs of 10 min nearly at once, at 2.15 erlang. [start-up 8: 99.3 / 2.4]. Constant: 4 workers, 1.85.
    "giants": Load(parts=(_cron(4, 600.0, every_s=1116.0, within_s=8.0, for_s=60 * HOUR_S),)),
    # Seven jobs hang until a time-out of 60 s ends them, and are given out again 22 s later, over and over.
    # [start-up 8: 2.7]. Constant: 7 workers, 1.37.
    "poison": Load(parts=(_cron(7, 60.0, every_s=82.0, for_s=2 * HOUR_S),)),
    # 20,000 jobs of 2 ms at once, of which a worker really does 28 a second.
    "instant_backlog": Load(
        parts=(_cron(20_000, 0.002, every_s=HOUR_S, for_s=HOUR_S),), workers_max=100, dispatch_s=0.034
    ),
    # Sixty jobs of 2 ms a second, each with 28 ms of dispatch: start and end events show one busy second in fifteen.
    # [start-up 2: 63 / 4.4 / 2,587; with the cycle of 30 ms known 100 / 1.2 / 120]. Constant: 2 workers, 1.1.
    "dispatch": Load(parts=(_poisson(60.0, 0.002, for_s=HOUR_S / 2),), workers_max=50, dispatch_s=0.028),
    # Fifty short jobs at once each 5 min, and nothing between: a mean rate of one job each 6 s.
    "cron_burst": Load(parts=(_cron(50, 0.2, every_s=300.0, within_s=2.0, for_s=24 * HOUR_S),)),
    # A steady load of one worker, and after a quarter of an hour a burst that no number of workers below the ceiling
    # can start in time: the hour that follows must cost what it did before.
    "over_ceiling": Load(parts=(_poisson(60.0, 0.01, for_s=1.25 * HOUR_S),), burst_jobs=20_000, workers_max=4),
}
