"""What a demo plays: recorded workloads, the queues they go to, and what is wanted of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.scaling.arithmetic import DAY_S
from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.simulate.replay import RecordedJob, scheduled
from headway.simulate.traces import BURSTY_LLM_CODE, DAY_FLIGHTS, DAY_TWEETS, load

CONNECTION = "demo"
WORKLOAD_CLOCK_BEGINS_S = 5 * 3600.0  # both recordings begin at five in the morning by New York's clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One queue: its jobs with their recorded times, and its profile, whose pool has the queue's name."""

    queue: str
    trace: str
    jobs: tuple[RecordedJob, ...]
    """Their work as the demo's workers do it."""
    profile: Profile
    source: str
    """What was recorded, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoWorkload:
    """What is played, and how fast."""

    name: str
    title: str
    lanes: tuple[Lane, ...]
    for_s: float
    """How long jobs are sent where nothing else is asked for."""
    times_faster: float = 1.0
    """Recorded time is divided by this; the work of a job is not."""
    length_s: float | None = None
    """How long the recording is, quiet included; ``None``: from its first job to its last."""
    clock_begins_s: float | None = None
    """The time of day at which the recording begins; ``None`` where that means nothing."""
    peak_recorded_s: float = 60.0
    """A pool for the peak is sized for the most jobs that came within so long a stretch of the recording."""
    peak_name: str = "minute"

    def summary(self, *, speed: float, for_s: float) -> str:
        """What is played, how fast and which part of it, for people."""
        times = speed * self.times_faster
        how_fast = "as fast as they were" if times == 1 else f"{times:g} times as fast"
        return f"{self.title}, {how_fast}: {self._part(speed=speed, for_s=for_s)}"

    def _part(self, *, speed: float, for_s: float) -> str:
        begins, ends = (self.clock(at_s, speed=speed) for at_s in (0.0, for_s))
        if begins is None:
            return f"{for_s:g} s"
        days = for_s / self.whole_s(speed=speed)
        if days < 1:
            return f"the first {for_s:g} s of it, from {begins} to {ends}"
        return f"{'' if days == 1 else f'{days:.3g} days in '}{for_s:g} s, from {begins}"

    def whole_s(self, *, speed: float) -> float:
        """How long jobs are sent where nothing else is asked for: a recorded day is one day at any speed."""
        return self.for_s if self.length_s is None else self.for_s / speed

    def jobs(self, lane: Lane, *, speed: float, for_s: float) -> tuple[RecordedJob, ...]:
        """The jobs of ``lane`` that are sent within ``for_s``, at the times when they are."""
        return scheduled(lane.jobs, speed=speed * self.times_faster, for_s=for_s, length_s=self.length_s)

    def clock(self, at_s: float, *, speed: float) -> str | None:
        """The recorded time of day ``at_s`` after the first moment, as ``14:05``."""
        if self.clock_begins_s is None:
            return None
        minutes = int((self.clock_begins_s + at_s * speed * self.times_faster) // 60)
        return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


def day() -> DemoWorkload:
    """A day with a rush, a plateau and a night, 24 hours in 216 s.

    Thinned, and with shorter work, so that a laptop has room: the busiest hour fills some ten workers of a queue.
    """
    mail = Lane(
        queue="mail",
        trace=DAY_FLIGHTS,
        jobs=_worked(load(DAY_FLIGHTS, keeps_quiet=True), 0.15),
        profile=_profile("mail", target_s=10.0, service_time_guess_s=4.0),
        source="departures from New York's airports, 14 May 2013, each fifth; 0.03 s of work a minute in the air",
    )
    reports = Lane(
        queue="reports",
        trace=DAY_TWEETS,
        jobs=_worked(load(DAY_TWEETS, keeps_quiet=True), 0.6),
        profile=_profile("reports", target_s=30.0, service_time_guess_s=2.0),
        source="tweets that named Apple, 31 March 2015, each 250th; work drawn from a recording, 1.9 s on average",
    )
    return DemoWorkload(
        name="day",
        title="a recorded day",
        lanes=(mail, reports),
        for_s=216.0,
        times_faster=400.0,
        length_s=DAY_S,
        clock_begins_s=WORKLOAD_CLOCK_BEGINS_S,
        peak_recorded_s=3600.0,
        peak_name="hour",
    )


def bursts() -> DemoWorkload:
    """Requests to a code-completion model at the speed at which they came: two large bursts and a small one."""
    profile = _profile("demo", queue="llm-code", target_s=10.0, service_time_guess_s=2.0)
    lane = Lane(
        queue="llm-code",
        trace=BURSTY_LLM_CODE,
        jobs=load(BURSTY_LLM_CODE),
        profile=replace(profile, workers_max=24),
        source="requests to a code-completion model, 11 November 2023, each as long as it was",
    )
    return DemoWorkload(name="bursts", title="recorded bursts", lanes=(lane,), for_s=180.0)


WORKLOADS = {"day": day, "bursts": bursts}
DEFAULT = "day"


def _profile(pool: str, *, target_s: float, service_time_guess_s: float, queue: str | None = None) -> Profile:
    return Profile(
        pool=pool,
        queues=(f"{CONNECTION}/{queue or pool}",),
        template=pool,
        objective=Objective(target_s=target_s, percentile=95.0, window_s=120.0),
        workers_min=0,
        workers_max=10,
        # What somebody would say who knows these jobs.
        service_time_guess_s=service_time_guess_s,
    )


def _worked(jobs: Sequence[RecordedJob], multiple: float) -> tuple[RecordedJob, ...]:
    return tuple(RecordedJob(at_s=job.at_s, service_s=job.service_s * multiple) for job in jobs)
