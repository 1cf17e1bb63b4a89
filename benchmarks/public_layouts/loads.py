"""The jobs that stand in for those of an application.

No public file says how many jobs there are. A load here keeps 40 % of the original's slots busy, with jobs that arrive
independently, and adds two bursts, each the work of all of its slots for half a minute. Periodic jobs come as often as
the application's own schedule sends them.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headway.simulate.replay import RecordedJob

BURSTS_AT = (0.35, 0.7)
"""When bursts arrive, as parts of the run."""
SPREAD = 0.5
"""A job takes up to this part more or less than its queue's mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLoad:
    """The jobs of one queue."""

    service_s: float
    """How long a job takes at the mean."""
    rate_per_s: float = 0.0
    every_s: float | None = None
    """Seconds between periodic jobs, which are sent beside those of ``rate_per_s``."""
    burst_jobs: int = 0

    @property
    def busy_slots(self) -> float:
        """Slots that the queue keeps busy without its bursts."""
        return self.service_s * (self.rate_per_s + (1 / self.every_s if self.every_s else 0.0))

    def jobs(self, *, for_s: float, seed: str) -> tuple[RecordedJob, ...]:
        """The jobs of the first ``for_s``, ordered by arrival: the same for the same seed."""
        rng = random.Random(seed)
        times_s = [for_s * part for part in BURSTS_AT for _ in range(self.burst_jobs)]
        if self.every_s:
            times_s += [self.every_s * number for number in range(int(for_s / self.every_s) + 1)]
        at_s = rng.expovariate(self.rate_per_s) if self.rate_per_s else for_s
        while at_s < for_s:
            times_s.append(at_s)
            at_s += rng.expovariate(self.rate_per_s)
        return tuple(
            RecordedJob(at_s=at_s, service_s=self.service_s * rng.uniform(1 - SPREAD, 1 + SPREAD))
            for at_s in sorted(times_s)
            if at_s < for_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """What the application's public file runs, and the load of its queues."""

    heading: str
    """Of the page's section about it."""
    slots: Sequence[Sequence[str]]
    """For each job that its processes run at once, the queues in the order in which that slot takes from them."""
    loads: Mapping[str, QueueLoad]
    """By the queue's last word, as in ``slots``."""
    slots_per_worker: Mapping[str, int] = field(default_factory=dict)
    """Template -> slots of a stand-in worker, where it has several."""
    worker_class: str = "live_runs.worker.DrainingForkingWorker"
    """Of the stand-in workers. Headway knows no order of queues of a class outside RQ, as of the original's program."""

    @property
    def busy_fraction(self) -> float:
        """The part of the original's slots that the load keeps busy without its bursts."""
        return sum(load.busy_slots for load in self.loads.values()) / len(self.slots)


_MASTODON = ("default", "push", "ingress", "mailers", "pull", "scheduler")
_REDASH = (("periodic", "emails", "default"), ("scheduled_queries", "schemas"), ("queries",), ("queries",))
ORIGINALS: Mapping[str, Original] = {
    "frappe": Original(
        heading="Frappe",
        slots=(("short", "default"), ("long", "default", "short")),
        loads={
            "short": QueueLoad(service_s=2.0, rate_per_s=0.14),
            "default": QueueLoad(service_s=4.0, rate_per_s=0.05, burst_jobs=15),
            "long": QueueLoad(service_s=20.0, every_s=60.0),
        },
    ),
    "mastodon": Original(
        heading="Mastodon",
        slots=(_MASTODON,) * 15,
        loads={
            "default": QueueLoad(service_s=2.0, rate_per_s=0.25),
            "push": QueueLoad(service_s=5.0, rate_per_s=0.6, burst_jobs=90),
            "ingress": QueueLoad(service_s=3.0, rate_per_s=0.45),
            "mailers": QueueLoad(service_s=4.0, rate_per_s=0.05),
            "pull": QueueLoad(service_s=8.0, rate_per_s=0.1),
            "scheduler": QueueLoad(service_s=3.0, every_s=60.0),
        },
        slots_per_worker={"sidekiq": 5, "sidekiq-scheduler": 5},
        worker_class="headway.workers.rq.DrainingWorker",  # a strict order is known of it, as of Sidekiq's command line
    ),
    "redash": Original(
        heading="Redash",
        slots=_REDASH,
        loads={
            "periodic": QueueLoad(service_s=1.0, every_s=12.0),
            "emails": QueueLoad(service_s=2.0, rate_per_s=0.02),
            "default": QueueLoad(service_s=3.0, rate_per_s=0.03),
            "scheduled_queries": QueueLoad(service_s=6.0, rate_per_s=0.1),
            "schemas": QueueLoad(service_s=10.0, every_s=90.0),
            "queries": QueueLoad(service_s=5.0, rate_per_s=0.13, burst_jobs=24),
        },
    ),
}
