"""Pools whose jobs something holds back: what a controller asks for beside a limit on starts, and without one."""

from collections.abc import Callable, Sequence

from headway.scaling.model import Decision
from headway.simulate import Controller, Observation

TICK_S = 5.0
SERVICE_S = 0.5
CEILING = 60
ARRIVALS_PER_S = 3.0
ALLOWED_PER_S = 2.0

StartsPerS = Callable[[int], float]
"""Ready workers -> jobs that may start in a second."""


def decided(
    starts_per_s: StartsPerS, *, minutes: float, arrivals_per_s: float = ARRIVALS_PER_S, knows_idle: bool = True
) -> Sequence[Decision]:
    """Every decision on a queue whose workers are ready by the next tick."""
    controller = Controller(target_s=10.0, workers_max=CEILING, start_up_s=2.0, tick_s=TICK_S)
    found: list[Decision] = []
    workers = started = 0
    waiting_since_s: list[float] = []
    for number in range(round(minutes * 60.0 / TICK_S)):
        now_s = TICK_S * number
        arrived = round(arrivals_per_s * TICK_S)
        waiting_since_s += [now_s] * arrived
        started = min(len(waiting_since_s), int(starts_per_s(workers) * TICK_S))
        del waiting_since_s[:started]
        busy = min(workers, round(started / TICK_S * SERVICE_S))
        decision = controller.step(
            Observation(
                at_s=1_000_000.0 + now_s,
                waiting=len(waiting_since_s),
                oldest_age_s=now_s - waiting_since_s[0] if waiting_since_s else 0.0,
                arrived=arrived,
                started=started,
                finished=started,
                service_sum_s=SERVICE_S * started,
                workers=workers,
                busy=busy if knows_idle else workers,
                idle=workers - busy if knows_idle else 0,
                in_flight=busy if knows_idle else workers,
            )
        )
        found.append(decision)
        workers = decision.target_workers
    return found


def targets(decisions: Sequence[Decision]) -> list[int]:
    return [decision.target_workers for decision in decisions]


def is_bounded(decision: Decision) -> bool:
    return any(step.name == "plateau" for step in decision.steps)


def test_more_workers_are_asked_for_by_steps_where_they_start_no_more_jobs() -> None:
    """Two jobs a second start, whoever is there, and three come. Where nobody knows who is idle, all sixty run."""
    bounded = targets(decided(lambda workers: ALLOWED_PER_S * bool(workers), minutes=30))
    assert bounded[-1] <= CEILING * 2 / 3
    assert max(bounded[: round(4 * 60 / TICK_S)]) <= CEILING / 4
    assert bounded == sorted(bounded)  # no worker is asked to leave for it
    unknown = targets(decided(lambda workers: ALLOWED_PER_S * bool(workers), minutes=4, knows_idle=False))
    assert max(unknown) == CEILING


def test_a_limit_for_each_worker_does_not_stop_the_rise() -> None:
    """Ten a minute each: 18 workers start three jobs a second."""
    decisions = decided(lambda workers: workers / 6.0, minutes=10)
    assert targets(decisions)[-1] >= 18
    assert decisions[-1].metrics[0].start_rate_per_s == ARRIVALS_PER_S


def test_a_pool_whose_slots_are_busy_is_never_bounded() -> None:
    """Also while a backlog of minutes is worked off."""
    decisions = decided(lambda workers: workers / SERVICE_S, minutes=10, arrivals_per_s=60.0)
    assert max(targets(decisions)) >= 30
    assert not any(map(is_bounded, decisions))
