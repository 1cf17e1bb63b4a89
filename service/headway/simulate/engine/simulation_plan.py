"""What a rehearsal is of: each pool's jobs, how its workers behave, and what goes wrong."""

from dataclasses import dataclass, field
from random import Random

from headway.errors import Invalid
from headway.scaling.metrics.behaviour import Behaviour, Spread, of_late_s
from headway.simulate.engine.draws import Draw, drawn, lognormal
from headway.simulate.engine.faults import Faults
from headway.simulate.engine.learned_starts import LearnedStarts
from headway.simulate.workloads.jobs import Jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """One pool of a rehearsal: its jobs and how its workers behave."""

    jobs: Jobs
    name: str = "jobs"
    start_up_s: float = 2.0
    start_up_spread: float = 0.0
    """Sigma of a lognormal start-up with the mean ``start_up_s``; 0 is always the same."""
    behaviour: Behaviour = field(default_factory=Behaviour)
    """What was measured of such workers. What is unknown takes no time, and a start-up takes ``start_up_s``."""
    known_start_up: Spread | None = None
    """How long starts took before, beside each other; ``None``: as ``behaviour`` says that they take."""
    is_live: bool = False
    """Whether this pool is seen as the live loop sees one, rather than exactly: its queue by buckets of the clock, jobs
    of leaving workers among those in flight, start-ups as they were of late; and starting workers leave first.
    """
    is_depth_only: bool = False
    """Whether its queue is seen by samples that say how many jobs wait, and nothing else: no event, no age."""
    job_cores: float = 0.0
    """Cores that a job at work takes from workers that start."""
    slots: int = 1
    workers_max: int = 1000
    warm_workers: int = 0
    """Workers that are ready at the first moment."""
    drain_deadline_s: float | None = None
    """A busy worker that was asked to leave is killed after this; ``None``: it always finishes its job."""
    template: str = "simulated"
    """What a host must report to get workers of this pool; without hosts it means nothing."""
    priority: int | None = None
    """Greater is placed first where room is short; ``None``: as the controller's profile says, else 100."""
    faults: Faults = field(default_factory=Faults)
    objective_s: float | None = None
    """The objective of its jobs; ``None``: that of the whole rehearsal."""

    def __post_init__(self) -> None:
        breaches = [
            f"pool {self.name!r}: {name}={value} is below {least}"
            for name, value, least in (
                ("slots", self.slots, 1),
                ("workers_max", self.workers_max, 0),
                ("warm_workers", self.warm_workers, 0),
                ("start_up_s", self.start_up_s, 0),
                ("start_up_spread", self.start_up_spread, 0),
                ("job_cores", self.job_cores, 0),
                ("drain_deadline_s", self.drain_deadline_s or 0, 0),
            )
            if value < least
        ]
        if breaches:
            raise Invalid(*breaches)


def start_ups(plan: PoolPlan, draws: Random) -> Draw:
    """Draws the start-up time of one worker after the other."""
    measured = plan.behaviour.start_up
    if measured is None:
        return lognormal(plan.start_up_s, plan.start_up_spread, draws)
    return drawn(measured, draws) or (lambda: 0.0)


def learned_starts(plan: PoolPlan, draws: Random) -> LearnedStarts:
    """What the control plane knows of the start-ups of ``plan`` at the beginning."""
    known = plan.known_start_up or plan.behaviour.start_up
    return LearnedStarts(known, of_late_s=of_late_s(plan.behaviour), draws=draws)
