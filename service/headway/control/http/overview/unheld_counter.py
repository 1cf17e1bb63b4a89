"""Jobs of each pool that no worker has, from one overview to the next."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headway.control.http.overview.pool_places import Places
from headway.control.http.schemas.responses import QueueOut
from headway.scaling.conditions.pool_facts import WorkerCounts
from headway.scaling.metrics.newest_sample import listed_workers
from headway.scaling.metrics.unheld_jobs import UnheldJobs, UnheldWatch, are_all_idle, held_jobs
from headway.scaling.model import Mode, QueueSample
from headway.scaling.profile import Profile

STARTED_AGO_S = 90.0  # by the record of who reports starts, which is renewed every 30 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Unheld:
    """The jobs of one pool that no worker has."""

    jobs: int | None
    """``None``: not known."""
    known: UnheldJobs | None
    """The same, and what becomes of them; ``None`` if there is none, or it is not known."""


class UnheldCounter:
    """Counts them at each overview."""

    def __init__(self) -> None:
        self._watch = UnheldWatch()

    def of(
        self,
        profile: Profile,
        samples: Mapping[str, QueueSample],
        queues: Mapping[str, QueueOut],
        places: Places,
        counts: WorkerCounts,
        *,
        helpers: Collection[str] = (),
        now_s: float,
    ) -> Unheld:
        """Those of the pool of ``profile`` at ``now_s``, of whose queues workers of ``helpers`` take jobs as well.

        A task with a rate limit starts at times while its worker, which is idle, holds the next ones: no job may have
        started in the last minute. Workers that others start, or that the broker lists beside those that agents report,
        may have any job.
        """
        held = held_jobs([samples.get(queue) for queue in profile.queues], now_s=now_s)
        takers = (profile.pool, *helpers)
        listed = listed_workers(profile.queues, samples, now_s=now_s)
        are_workers_idle = (
            held is not None
            and held.jobs > 0
            and profile.mode is not Mode.RECOMMEND
            and all(queue in queues and _has_no_recent_start(queues[queue]) for queue in profile.queues)
            and (listed or 0) <= counts.running
            and are_all_idle(takers, [row.host for pool in takers for row in places.of_pool(pool)])
        )
        jobs = self._watch.see(profile.pool, held, are_workers_idle=are_workers_idle, now_s=now_s)
        if not jobs or held is None or held.redelivery is None:
            return Unheld(jobs=jobs, known=None)
        known = UnheldJobs(jobs=jobs, redelivery=held.redelivery, is_of_any_worker=listed is not None)
        return Unheld(jobs=jobs, known=known)


def _has_no_recent_start(queue: QueueOut) -> bool:
    """Whether starts of its jobs are reported, and none was in the last minute.

    Of a queue with only depths in its newest rows no rate is known: an age is missing while workers may hold jobs that
    have not begun.
    """
    if queue.metrics.start_rate_per_s is not None:
        return not queue.metrics.start_rate_per_s
    ages_s = [each.starts_age_s for each in queue.event_sources if each.starts_age_s is not None]
    return bool(ages_s) and min(ages_s) > STARTED_AGO_S
