"""What a control plane recorded of a pool, as a workload to rehearse with.

Five-second rows live two hours: arrivals are known by the bucket, and service times by how many jobs took how long.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from headway.cli.api_client import Api, path_of
from headway.cli.rehearse.trace_files import Workload
from headway.errors import Invalid
from headway.scaling.profile import Profile, profile_from_mapping
from headway.simulate.workloads.jobs import Jobs

RECORDED_MINUTES_MAX = 120  # what the control plane keeps in rows of 5 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A pool's jobs and the profile that it has now."""

    workload: Workload
    profile: Profile


def read_history(api: Api, pool: str, *, minutes: int, seed: int) -> Recorded:
    """The jobs of the last ``minutes`` of ``pool``.

    Raises:
        HeadwayError: the control plane does not answer, does not know the pool, or has seen no job of it end.
    """
    if not 1 <= minutes <= RECORDED_MINUTES_MAX:
        raise Invalid(f"--minutes={minutes} must lie in 1..{RECORDED_MINUTES_MAX}")
    values = api.get(path_of("profiles", pool))["profile"]
    profile = profile_from_mapping(pool, {key: value for key, value in values.items() if value is not None})
    history = api.get(path_of("pools", pool, "history"), minutes=minutes)
    return Recorded(workload=workload_of(history, seed=seed), profile=profile)


def workload_of(history: Mapping[str, Any], *, seed: int) -> Workload:
    """The jobs of ``history``: within a bucket they come by chance, and each takes as long as one that did.

    The same history and seed give the same jobs.
    """
    pool, bucket_s = str(history["pool"]), float(history["bucket_s"])
    chance = Random(f"{seed}/history")  # noqa: S311 - no secret
    begins_at_s = float(history["from_s"])
    came: list[tuple[float, bool]] = []
    for bucket in history["buckets"]:
        starts_s = max(0.0, bucket["at_s"] - begins_at_s)
        length_s = bucket.get("span_s", bucket_s)
        jobs, retries = bucket["arrived_jobs"], bucket.get("retried_jobs") or 0
        if jobs is None:
            raise Invalid(f"how many jobs of pool {pool!r} arrive is not known: nobody reports it of one of its queues")
        came += ((starts_s + chance.random() * length_s, number < retries) for number in range(jobs))
    came.sort()
    if not came:
        raise Invalid(f"no job of pool {pool!r} arrived in that time: nothing is to be rehearsed")
    seen = history["service_times"]
    if not seen:
        raise Invalid(f"no job of pool {pool!r} ended in that time: how long its jobs take is not known")
    service_s = chance.choices([each["service_s"] for each in seen], [each["jobs"] for each in seen], k=len(came))
    retries = [is_retry for _, is_retry in came]
    jobs = Jobs(at_s=[at_s for at_s, _ in came], service_s=service_s, retries=retries if any(retries) else ())
    return Workload(name=pool, jobs=jobs, begins_at_s=begins_at_s)
