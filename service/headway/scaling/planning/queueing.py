"""How long jobs wait for a number of slots: the closed forms of queueing theory, under the names of the field.

``offered_load`` is in erlangs, rate × service time: the slots that arrivals keep busy on average. All forms speak of
the steady state: with no more slots than offered load there is none, and the wait has no end.
"""

import math

from headway.errors import Invalid
from headway.scaling.arithmetic import PERCENT, ROUNDING

GREAT_LOAD = 100_000.0  # beyond it the limit theorem is as good as the recursion, which takes a step a slot
QUEUEING_LIMIT_SHORT_BY = (
    1  # slots by which the limit theorem falls short at great loads, where no wait at all is allowed
)
QUEUEING_BETA_MAX = 38.0  # beyond it the chance of waiting is below the smallest number a float can hold


def erlang_b(slots: int, offered_load: float) -> float:
    """The chance that a job finds every one of ``slots`` taken, where it then goes away.

    Source: A. K. Erlang, "Solution of some Problems in the Theory of Probabilities of Significance in Automatic
    Telephone Exchanges" (1917). The recursion over slots stays in 0..1: no factorial, no overflow.
    """
    _check(slots=slots, offered_load=offered_load)
    blocked = 1.0
    for slot in range(1, slots + 1):
        blocked = offered_load * blocked / (slot + offered_load * blocked)
    return blocked


def erlang_c(slots: int, offered_load: float) -> float:
    """The chance that a job has to wait for one of ``slots``, where it then stays (M/M/c); 1 without a steady state.

    Source: Erlang (1917), out of Erlang B: R. B. Cooper, "Introduction to Queueing Theory" (1981), 3.4.
    """
    return _delayed(slots, offered_load, erlang_b(slots, offered_load))


def wait_exceeds_probability(slots: int, offered_load: float, service_time_s: float, target_s: float) -> float:
    """The chance that a job waits longer than ``target_s`` (M/M/c, first come first served).

    Source: L. Kleinrock, "Queueing Systems", volume 1 (1975), 3.5: P(W > t) = C · exp(−(slots − load) · t / service).
    """
    _check(service_time_s=service_time_s, target_s=target_s)
    return _exceeds(slots, offered_load, service_time_s, target_s, erlang_b(slots, offered_load))


def mean_wait_s(slots: int, offered_load: float, service_time_s: float) -> float:
    """How long a job waits on average (M/M/c), infinite without a steady state.

    Source: Kleinrock (1975), 3.5: C · service / (slots − load).
    """
    _check(service_time_s=service_time_s)
    delayed = erlang_c(slots, offered_load)
    if offered_load == 0:
        return 0.0 if slots else math.inf
    return delayed * service_time_s / (slots - offered_load) if slots > offered_load else math.inf


def slots_for_burst(jobs: float, service_time_s: float, target_s: float) -> int:
    """The least number of slots that start ``jobs`` which come at once within ``target_s``, with nobody in the way.

    A free slot starts one at once, and one each time it is done: what is not over by then starts nothing.
    """
    _check(service_time_s=service_time_s, target_s=target_s)
    each = 1 + math.floor(target_s / service_time_s + ROUNDING)
    return math.ceil(max(0.0, jobs) / each - ROUNDING)


def slots_for(offered_load: float, service_time_s: float, target_s: float, percentile: float) -> int:
    """The least number of slots with which ``percentile`` % of the jobs wait ``target_s`` at most (M/M/c).

    0 for no load: who never comes never waits. Above ``GREAT_LOAD`` the slots of square-root staffing, a few too many.

    Source: ``wait_exceeds_probability``, which falls with every slot; one pass of Erlang's recursion finds the first.
    """
    _check(offered_load=offered_load, service_time_s=service_time_s, target_s=target_s)
    if not 0 < percentile < PERCENT:
        raise Invalid(f"percentile={percentile} must lie between 0 and 100")
    if offered_load == 0:
        return 0
    slots, blocked, may_exceed = 0, 1.0, 1 - percentile / PERCENT
    if offered_load > GREAT_LOAD:
        return math.ceil(square_root_staffing(offered_load, beta_for(may_exceed))) + QUEUEING_LIMIT_SHORT_BY
    while _exceeds(slots, offered_load, service_time_s, target_s, blocked) > may_exceed:
        slots += 1
        blocked = offered_load * blocked / (slots + offered_load * blocked)
    return slots


def square_root_staffing(offered_load: float, beta: float) -> float:
    """Slots, fractional: the load and a margin that grows with its square root only.

    ``beta`` is the quality of service; ``beta_for`` gives the one for a chance of waiting.

    Source: S. Halfin, W. Whitt, "Heavy-Traffic Limits for Queues with Many Exponential Servers", Operations Research 29
    (1981).
    """
    _check(offered_load=offered_load, beta=beta)
    return offered_load + beta * math.sqrt(offered_load)


def delay_probability(beta: float) -> float:
    """The chance of waiting that square-root staffing with ``beta`` tends to as the load grows.

    Source: Halfin and Whitt (1981): 1 / (1 + β·Φ(β)/φ(β)).
    """
    _check(beta=beta)
    density = math.exp(-beta * beta / 2) / math.sqrt(2 * math.pi)
    below = (1 + math.erf(beta / math.sqrt(2))) / 2
    return density / (density + beta * below)


def beta_for(delay_probability_max: float) -> float:
    """The ``beta`` of square-root staffing that leaves a chance of waiting of ``delay_probability_max``.

    Source: Halfin and Whitt (1981), turned round by halving: the chance falls as beta rises.
    """
    if not 0 < delay_probability_max <= 1:
        raise Invalid(f"delay_probability_max={delay_probability_max} must lie above 0, up to 1")
    low, high = 0.0, QUEUEING_BETA_MAX
    while low < (middle := (low + high) / 2) < high:
        if delay_probability(middle) > delay_probability_max:
            low = middle
        else:
            high = middle
    return high


def allen_cunneen_wait_s(
    slots: int, offered_load: float, service_time_s: float, arrival_cv2: float, service_cv2: float
) -> float:
    """How long a job waits on average where neither arrivals nor service times are exponential (G/G/c, approximate).

    The squared coefficients of variation (variance / mean²) are 1 for exponential times, 0 for constant ones.

    Source: A. O. Allen, "Probability, Statistics, and Queueing Theory", 2nd edition (1990), 5.5, after Allen and
    Cunneen: the wait of M/M/c times half the sum of both.
    """
    _check(arrival_cv2=arrival_cv2, service_cv2=service_cv2)
    wait_s = mean_wait_s(slots, offered_load, service_time_s)
    return wait_s * ((arrival_cv2 + service_cv2) / 2) if math.isfinite(wait_s) else math.inf


def _delayed(slots: int, offered_load: float, blocked: float) -> float:
    if slots <= offered_load:
        return 1.0
    return slots * blocked / (slots - offered_load * (1 - blocked))


def _exceeds(slots: int, offered_load: float, service_time_s: float, target_s: float, blocked: float) -> float:
    if slots <= offered_load:
        return 1.0
    return _delayed(slots, offered_load, blocked) * math.exp(-(slots - offered_load) * (target_s / service_time_s))


def _check(**values: float) -> None:
    """Refuses what no queue has: a negative number, none at all, and a job that takes no time."""
    breaches = [
        f"{name}={value} must be finite and {'above 0' if name == 'service_time_s' else 'at least 0'}"
        for name, value in values.items()
        if not 0 <= value < math.inf or (name == "service_time_s" and value == 0)
    ]
    if breaches:
        raise Invalid(*breaches)
