"""Queues at this moment, as the API gives them: newest depths, rates and waits, and what has befallen their jobs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headway.control.http.schemas.responses import EventSourceOut, FailuresOut, QueueOut
from headway.control.ingest.reported_jobs import AGENTS, EMITTERS, connection_of
from headway.control.scheduler.bucket_cache import BucketCache
from headway.scaling.conditions.installation_facts import PipelineRow
from headway.scaling.measure import BUCKET_S
from headway.scaling.metrics.job_failures import Failures, failures_of
from headway.scaling.metrics.newest_sample import with_newest
from headway.scaling.model import FailureLimit, Objective, QueueSample
from headway.scaling.profile import Profile
from headway.scaling.reading.direct_samples import overlaid
from headway.store.events.event_sources import EventSource

SHOWN_AS = {EMITTERS: "emitters", AGENTS: "agents"}
"""The names of sources that are not one program: a collector's is that of its producer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporters:
    """Who reports and who polls."""

    sources: Mapping[str, Sequence[EventSource]]
    """By queue."""
    collectors: Mapping[str, Sequence[str]]
    """By connection, the one that counts first."""

    def sources_of(self, queue: str) -> list[EventSourceOut]:
        """Who reports the jobs of ``queue``."""
        return [
            EventSourceOut.taken_from(each, source=SHOWN_AS.get(each.source, each.source))
            for each in self.sources.get(queue, ())
        ]

    def report_starts_of(self, queue: str) -> bool:
        """Whether the starts of its jobs are reported. A collector that reports jobs at all reports each start."""
        return bool(self._sources_of_starts(queue))

    def report_revoked_jobs_of(self, queue: str) -> bool:
        """Whether jobs that end without a start are reported: whoever reports its starts is an agent."""
        return all(each.source == AGENTS for each in self._sources_of_starts(queue))

    def _sources_of_starts(self, queue: str) -> list[EventSource]:
        return [each for each in self.sources.get(queue, ()) if each.source or each.starts_age_s is not None]

    def collectors_of(self, queue: str) -> list[str]:
        """Who polls the connection of ``queue``."""
        return list(self.collectors.get(connection_of(queue), ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What has befallen jobs of one queue."""

    failures: Failures
    lost_jobs: int
    """That waited, and left the queue of late without having been started."""
    may_be_revoked: bool
    """Whether these may have expired, or been revoked: nobody reports which jobs do."""


def queues_now(
    queues: Mapping[str, str | None],
    samples: Mapping[str, QueueSample],
    profiles: Iterable[Profile],
    recent: BucketCache,
    *,
    measured_age_s: float | None,
    now_s: float,
    reporters: Reporters,
    patterns: Mapping[str, str],
) -> tuple[list[QueueOut], dict[str, Trouble]]:
    """Every queue with its newest depths, its failures, and rates and waits over the window of its pool's objective.

    Rates and waits are of ``measured_age_s`` ago, which is where the pipeline has come to.
    """
    found = list(profiles)
    objectives = {queue: profile.objective_of(queue) for profile in found for queue in profile.queues}
    limits = {queue: profile.failure_limit for profile in found for queue in profile.queues}
    until_s = now_s - (measured_age_s or 0.0)
    given, troubles = [], {}
    for queue, pool in queues.items():
        objective, limit = objectives.get(queue, Objective()), limits.get(queue, FailureLimit())
        sample = samples.get(queue)
        metrics = overlaid(with_newest(recent.metrics(queue, now_s=until_s, objective=objective), sample), sample)
        failures = failures_of(recent.rows(queue), until_s=until_s, window_s=limit.window_s)
        # Where nobody reports starts, nobody knows whether what left was started.
        lost_jobs = 0
        if reporters.report_starts_of(queue):
            message_ttl_s = None if sample is None else sample.message_ttl_s
            lost_jobs = recent.lost_jobs(queue, now_s=until_s, message_ttl_s=message_ttl_s)
        troubles[queue] = Trouble(
            failures=failures, lost_jobs=lost_jobs, may_be_revoked=not reporters.report_revoked_jobs_of(queue)
        )
        given.append(
            QueueOut(
                queue=queue,
                pool=pool,
                pattern=patterns.get(queue),
                objective=objectives.get(queue),
                sample_age_s=None if metrics.sampled_at_s is None else max(0.0, now_s - metrics.sampled_at_s),
                poll_interval_s=None if sample is None else sample.poll_interval_s,
                measured_age_s=measured_age_s,
                metrics=metrics,
                is_wait_known=metrics.is_wait_known,
                suspension=None if sample is None else sample.suspension,
                useful_workers=None if sample is None else sample.useful_workers,
                failures=FailuresOut.of([failures], limit, metrics),
                event_sources=reporters.sources_of(queue),
                collectors=reporters.collectors_of(queue),
            )
        )
    return given, troubles


def measured_age_s(recent: BucketCache, pipelines: Iterable[PipelineRow], *, now_s: float) -> float | None:
    """How old what the pipeline has measured is; ``None`` where it has measured nothing.

    A pipeline that keeps up is at the present also while nothing happens that it could measure.
    """
    if recent.measured_until_s is None:
        return None
    lags_s = [row.lag_s for row in pipelines if row.trouble is None]
    if lags_s:
        return min(max(0.0, now_s - recent.measured_until_s), *lags_s)
    # Of the bucket that it had come to, one that stands still may have seen no more than the beginning.
    return max(0.0, now_s - recent.measured_until_s + BUCKET_S)
