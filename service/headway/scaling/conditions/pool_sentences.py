"""What is said of a pool of which a condition is true: sentences without their full stop, with names and figures."""

import math
from collections.abc import Iterator

from headway.scaling.conditions.host_table import ago, away, listed
from headway.scaling.conditions.job_troubles import DEATHS
from headway.scaling.conditions.pool_facts import PoolFacts
from headway.scaling.explanations.phrases import counted, duration
from headway.scaling.metrics.job_failures import failures_text, is_failing, together
from headway.scaling.profile import Profile

FIRST_JOB = "a queue that is right is seen with its first job"


def lost_jobs(pool: PoolFacts) -> Iterator[str]:
    """How many jobs are gone."""
    gone = f"{counted(pool.lost_jobs, 'waiting job')} left its queues without having been started"
    yield f"{gone}: the broker was flushed or lost its data, or the jobs were deleted"


def perhaps_lost_jobs(pool: PoolFacts) -> Iterator[str]:
    """How many jobs are gone, or have expired."""
    gone = f"{counted(pool.perhaps_lost_jobs, 'waiting job')} left its queues without a start that was reported"
    why = "they expired or were revoked, or somebody deleted them, or the broker was flushed or lost its data"
    yield f"{gone}: {why}"


def unheld(pool: PoolFacts) -> Iterator[str]:
    """How many jobs no worker has, and what becomes of them."""
    if pool.unheld is not None:
        jobs = pool.unheld.jobs
        whose = "no worker" if pool.unheld.is_of_any_worker else "no worker of this pool"
        held = f"{counted(jobs, 'job')} {'is' if jobs == 1 else 'are'} held by {whose}"
        yield f"{held}: {pool.unheld.redelivery.text}"


def late(pool: PoolFacts) -> Iterator[str]:
    """Which job has waited too long."""
    oldest = pool.oldest_wait
    if oldest is None or not oldest.is_late:
        return
    is_only = len(pool.profile.queues) == 1
    job = "the oldest job" if is_only else f"the oldest job of {oldest.queue}"
    waited, target = duration(round(oldest.wait_s, 1)), duration(oldest.objective.target_s)
    when = "" if pool.has_fresh_depths else f" {ago(pool.sample_age_s)}"
    yield f"{job} had waited {waited}{when}, longer than {'the' if is_only else 'its'} objective's {target}"


def crash_loop(pool: PoolFacts) -> Iterator[str]:
    """Which workers crash and where, and which job the last one had begun, where it reported that."""
    last = next((each for each in pool.cuts if each.job_id is not None and each.cause in DEATHS), None)
    job = "" if last is None else f"; the last one had begun job {last.job_id} of {last.job_class or 'unknown class'}"
    on = f" on {listed(pool.crashing_on)}" if pool.crashing_on else ""
    yield f"workers of template {pool.profile.template!r} crash{on}: see the agent's log{job}"


def no_host(pool: PoolFacts) -> Iterator[str]:
    """Why no host can run its workers."""
    if pool.no_host is not None:
        yield pool.no_host.format(template=pool.profile.template, away=away(pool.able_hosts))


def failing(pool: PoolFacts) -> Iterator[str]:
    """How many jobs fail."""
    limit = pool.profile.failure_limit
    total = together(pool.failures)
    worst = max(pool.failures, key=lambda each: (is_failing(each, limit), each.failed_jobs), default=total)
    shown = total if is_failing(total, limit) else worst
    yield failures_text(shown, limit)


def unseen(pool: PoolFacts) -> Iterator[str]:
    """Which queues it has, one of which was never reported."""
    yield f"no collector or producer has reported all its queues: {listed(pool.profile.queues)}"


def unlisted(pool: PoolFacts) -> Iterator[str]:
    """Which queues it has, none of which its collector has found."""
    if not pool.has_queues:
        yield f"no queue that was seen matches {listed(pool.profile.queues)}"
        return
    yield f"its collector has never found {listed(pool.profile.queues)} in the broker; {FIRST_JOB}"


def stale(pool: PoolFacts) -> Iterator[str]:
    """What is not known of late."""
    if pool.metrics.sampled_at_s is None:
        return
    if not pool.has_fresh_depths:
        yield f"its queues were last read {ago(pool.sample_age_s)}: see whether {_readers(pool.profile)}"
    if not pool.has_fresh_measures:
        since = "yet" if pool.measured_age_s is None else f"since {ago(pool.measured_age_s)}"
        yield f"pickup times and rates have not been measured {since}"


def error_budget_spent(pool: PoolFacts) -> Iterator[str]:
    """How many of today's jobs were late, and how many may be."""
    day = pool.day_attained
    if day is None:
        return
    late = f"{day.today.late_jobs} of {counted(day.today.jobs, 'job')} have started late since 00:00 UTC"
    allowed = counted(math.floor(day.allowed_jobs(pool.profile.objective.percentile)), "late job")
    yesterday = ", by yesterday's number of jobs" if day.before.jobs > day.today.jobs else ""
    yield f"{late}, and its objective allows {allowed} a day{yesterday}: the error budget of the day is spent"


def unstarted(pool: PoolFacts) -> Iterator[str]:
    """How many workers that were asked for do not run."""
    number, ended = pool.unstarted_workers, min(pool.counts.backing_off, pool.unstarted_workers)
    why = f"{ended} ended too early" if ended else "no host has started them yet"
    asked = f"{number} {'worker that was' if number == 1 else 'workers that were'} asked for a while ago"
    yield f"{asked} {'does' if number == 1 else 'do'} not run, and {why}: see the agent's log"


def at_ceiling(pool: PoolFacts) -> Iterator[str]:
    """What allows no more workers: the caps of its groups, or else its profile."""
    for group in pool.capped_by:
        unit = "slot" if group.is_in_slots else "worker"
        yield f"group {group.name} allows no more workers: {counted(group.cap, unit)} for all its pools"
    if not pool.capped_by:
        yield f"its workers_max={pool.profile.workers_max} allows no more workers"


def _readers(profile: Profile) -> str:
    """Who brings what is known of its queues."""
    connections = sorted({queue.partition("/")[0] for queue in profile.queues})
    return f"`headway collect` runs and reaches broker {listed([repr(each) for each in connections])}"
