"""How far to trust what is likely, by how many jobs an objective lets be late."""

import math

from headway.scaling.arithmetic import PERCENT
from headway.scaling.profile import Profile
from headway.scaling.reading.pool_times import PoolTimes

START_UP_SPREAD = 0.5  # of the start-up: at p99, a start that takes half as long again is still in time
SLOW_START_TRUST = 1.5  # times the confidence, at most 1: from p95 on the slow starts that were measured count whole
PLAIN_LATE_PERCENT = 1.0  # what p99 lets be late: every figure here was measured with it

RISK_LEAST = 1e-6  # less counts as this: caution is divided by it, and tolerance has a logarithm


def risk(profile: Profile) -> float:
    """The ``risk`` of the profile, at least ``RISK_LEAST``: no count of workers depends on less."""
    return max(RISK_LEAST, profile.risk)


def late_percent(profile: Profile) -> float:
    """The part of the jobs that may be late, in %, by the strictest objective: members share their workers."""
    if not profile.member_objectives:
        return PERCENT - profile.objective.percentile
    return PERCENT - max(each.percentile for each in (profile.objective, *profile.member_objectives.values()))


def leeway(profile: Profile) -> float:
    """How many times as many jobs may be late as p99 lets, times ``risk``: p90 has 10, p99.9 a tenth."""
    return risk(profile) * late_percent(profile) / PLAIN_LATE_PERCENT


def confidence(profile: Profile) -> float:
    """How far to trust what is likely: 1 at p99, a half more for each further nine, never below 0.

    It multiplies the standard deviations of completions and the start-up spread that are counted on. Tails thin out
    about as fast as a normal one's: 1.3 standard deviations hold 90 %, 2.3 hold 99 %, 3.1 hold 99.9 %.
    """
    return max(0.0, 1.0 - math.log10(late_percent(profile) / PLAIN_LATE_PERCENT) / 2)


def slow_start_s(profile: Profile, times: PoolTimes) -> float:
    """How much longer than the mean a start may take for its job to be in time all the same.

    Starts beside each other share cores. The mean follows the newest, so a lone quick start lowers it just before many
    start at once: 95 % of those measured must be in time as well. Those that take more than twice the mean are no rule:
    one cold start says nothing of the next ones.
    """
    trust = confidence(profile)
    start_up_s, p95_s = times.start_up_s, times.start_up_p95_s
    measured_s = 0.0 if p95_s is None else min(p95_s, 2 * start_up_s) - start_up_s
    return max(START_UP_SPREAD * trust * start_up_s, min(1.0, SLOW_START_TRUST * trust) * measured_s)
