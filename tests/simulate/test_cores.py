"""Workers that start share the cores of their host."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.behaviour import Behaviour, Spread
from headway.scaling.model import Host, HostCapacity, Template
from headway.scaling.profile import Profile
from headway.simulate.cores import Cores, Start
from headway.simulate.engine import Rehearsal, simulate
from headway.simulate.jobs import Jobs
from headway.simulate.plan import PoolPlan
from headway.simulate.results import Result
from headway.simulate.single import Setting, rehearse
from simulate.stepping import always, by_time, jobs


def planned(
    starts: Sequence[tuple[float, float, float]],
    *,
    cores: float,
    starting_max: int | None = None,
    busy_cores: float = 0.0,
) -> list[tuple[float, float]]:
    """When each of ``starts`` (begins, CPU seconds, other seconds; in order) is spawned and ready."""
    machine = Cores(cores, starting_max=starting_max, busy_cores=lambda: busy_cores)
    found: dict[int, tuple[float, float]] = {}
    for number, (at_s, cpu_s, rest_s) in enumerate(starts):

        def on_plan(spawned_s: float, ready_s: float, number: int = number) -> None:
            found[number] = spawned_s, ready_s

        machine.begin(Start(worker=number, cpu_s=cpu_s, rest_s=rest_s, on_plan=on_plan), at_s)
        machine.plan(at_s)
    return [found[number] for number in range(len(starts))]


def test_a_start_alone_takes_its_time() -> None:
    assert planned([(3.0, 1.0, 0.5)], cores=2) == [(3.0, 4.5)]


def test_no_more_starts_than_cores_do_not_delay_each_other() -> None:
    assert planned([(0.0, 1.0, 0.5)] * 2, cores=2) == [(0.0, 1.5)] * 2


def test_more_starts_than_cores_share_them() -> None:
    """Four starts of 1 s on two cores: each gets half a core, and is computed after 2 s."""
    assert planned([(0.0, 1.0, 0.5)] * 4, cores=2) == [(0.0, 2.5)] * 4


def test_a_start_that_ends_leaves_its_part_to_the_others() -> None:
    """One core: until 2 s both have had 1 s, and the longer one has 2 s to go, alone."""
    assert planned([(0.0, 1.0, 0.0), (0.0, 3.0, 0.0)], cores=1) == [(0.0, 2.0), (0.0, 4.0)]


def test_a_later_start_delays_those_before_it() -> None:
    """One core: 1 s alone, then half each until the first, which needs 1 s more, is ready at 3 s."""
    assert planned([(0.0, 2.0, 0.0), (1.0, 2.0, 0.0)], cores=1) == [(0.0, 3.0), (1.0, 4.0)]


def test_jobs_at_work_take_their_part() -> None:
    """Two starts and two jobs want four cores of two."""
    assert planned([(0.0, 1.0, 0.0)] * 2, cores=2, busy_cores=2.0) == [(0.0, 2.0)] * 2


def test_so_many_start_at_once_and_the_others_wait_to_be_spawned() -> None:
    assert planned([(0.0, 1.0, 0.5)] * 3, cores=8, starting_max=1) == [(0.0, 1.5), (1.5, 3.0), (3.0, 4.5)]


times = st.floats(0.0, 20.0).map(lambda value: round(value, 2))


@given(
    st.lists(st.tuples(times, times, times), min_size=1, max_size=12).map(sorted),
    st.sampled_from([0.5, 1.0, 2.0, 64.0]),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([0.0, 1.5]),
)
def test_nobody_is_ready_before_its_time_and_cores_give_no_more_than_they_have(
    starts: list[tuple[float, float, float]], cores: float, starting_max: int | None, busy_cores: float
) -> None:
    found = planned(starts, cores=cores, starting_max=starting_max, busy_cores=busy_cores)
    for (at_s, cpu_s, rest_s), (spawned_s, ready_s) in zip(starts, found, strict=True):
        assert spawned_s >= at_s
        assert ready_s >= spawned_s + cpu_s + rest_s - 1e-6
        if cores == 64.0 and starting_max is None:
            assert ready_s == pytest.approx(at_s + cpu_s + rest_s)
    worked_s = max(ready_s for _, ready_s in found) - min(at_s for at_s, _, _ in starts)
    assert sum(cpu_s for _, cpu_s, _ in starts) <= cores * worked_s + 1e-6


@given(st.lists(st.tuples(times, times), min_size=1, max_size=8), st.integers(0, 7), times)
def test_one_that_starts_no_more_delays_nobody(starts: list[tuple[float, float]], left: int, at_s: float) -> None:
    """Whoever is abandoned, the others are ready no later than if it had gone on, and no sooner than without it."""
    left %= len(starts)

    def ready(*, is_abandoned: bool, is_there: bool = True) -> dict[int, float]:
        machine = Cores(1.0, starting_max=None, busy_cores=lambda: 0.0)
        found: dict[int, float] = {}
        for number, (cpu_s, rest_s) in enumerate(starts):
            if is_there or number != left:

                def on_plan(_: float, ready_s: float, number: int = number) -> None:
                    found[number] = ready_s

                machine.begin(Start(worker=number, cpu_s=cpu_s, rest_s=rest_s, on_plan=on_plan), 0.0)
        machine.plan(0.0)
        if is_abandoned:
            machine.abandon(left, at_s)
            machine.plan(at_s)
        return found

    without, abandoned, whole = (
        ready(is_abandoned=False, is_there=False),
        ready(is_abandoned=True),
        ready(is_abandoned=False),
    )
    for number in without:
        assert without[number] - 1e-6 <= abandoned[number] <= whole[number] + 1e-6


def run(plan: PoolPlan, controller: object, **rehearsal: object) -> Result:
    (result,) = simulate([plan], [controller], rehearsal=Rehearsal(**rehearsal))  # type: ignore[list-item,arg-type]
    return result


BEHAVIOUR = Behaviour(start_up=Spread(p50_s=1.5, p95_s=1.5), start_up_cpu_s=1.0)


def test_a_burst_of_starts_is_ready_later_than_one_start() -> None:
    """Four workers of 1 s on two cores are ready after 2.5 s; one alone after 1.5 s."""
    four = PoolPlan(jobs=jobs(*((0.0, 5.0),) * 4), behaviour=BEHAVIOUR)
    one = PoolPlan(jobs=jobs((0.0, 5.0)), behaviour=BEHAVIOUR)
    assert run(four, always(4), cores=2.0).pickup_p50_s == pytest.approx(2.5)
    assert run(four, always(4)).pickup_p50_s == pytest.approx(1.5)
    assert run(one, always(1), cores=2.0).pickup_p50_s == pytest.approx(1.5)


def test_a_worker_that_starts_is_put_off_by_one_that_starts_after_it() -> None:
    """One core, 1 s each and half a second more: alone until 0.5 s, then half the core until its second is over."""
    plan = PoolPlan(jobs=jobs((0.0, 9.0)), behaviour=BEHAVIOUR)
    script = by_time((0, 1), (0.5, 2))
    assert run(plan, script, cores=1.0, tick_s=0.5).pickup_max_s == pytest.approx(0.5 + 1.0 + 0.5)


def test_pools_share_the_cores_of_their_host_and_only_of_that() -> None:
    def waits(hosts: int) -> list[float | None]:
        room = HostCapacity(cpu_cores=2.0, memory_bytes=2)
        kind = Template(name="simulated", content_hash="1", cpu_cores=1.0, memory_bytes=1)
        plans = [PoolPlan(jobs=jobs((0.0, 5.0)), name=name, behaviour=BEHAVIOUR) for name in ("a", "b")]
        rehearsal = Rehearsal(
            cores=1.0,
            hosts=tuple(
                Host(host_id=str(number), name=str(number), capacity=room, templates=(kind,)) for number in range(hosts)
            ),
        )
        return [result.pickup_max_s for result in simulate(plans, [always(1), always(1)], rehearsal=rehearsal)]

    assert waits(1) == pytest.approx([2.5, 2.5])
    assert waits(2) == pytest.approx([1.5, 1.5])


def test_one_that_waits_to_be_spawned_costs_nothing_yet() -> None:
    """One at a time: spawned at 0 and 1.5 s; the third is told to leave at 1 s, before its turn."""
    plan = PoolPlan(jobs=jobs((0, 5), (0, 5)), behaviour=BEHAVIOUR)
    result = run(plan, by_time((0, 3), (1, 2)), cores=2.0, starting_max=1, tick_s=1.0)
    assert result.worker_hours * 3600 == pytest.approx(8.0 + 6.5)
    assert result.ended_s == pytest.approx(8.0)


def test_starts_take_turns_where_cores_are_plenty_but_few_may_start() -> None:
    plan = PoolPlan(jobs=jobs(*((0.0, 9.0),) * 3), behaviour=BEHAVIOUR)
    waits: list[float] = []
    simulate([plan], [always(3)], rehearsal=Rehearsal(starting_max=1), on_waits=lambda found: waits.extend(found[0]))
    assert waits == pytest.approx([1.5, 3.0, 4.5])


def test_a_rehearsal_starts_as_many_at_once_as_an_agent_would() -> None:
    """Nine on two cores: eight at once, each a quarter of a core for its second; the ninth when they are ready."""
    profile = Profile(pool="mail", queues=("redis/mail",), template="rq", workers_min=9, workers_max=9)
    work = Jobs(at_s=[0.0] * 9, service_s=[99.0] * 9)
    for setting, ready_s in (
        (Setting(behaviour=BEHAVIOUR, host_cores=2.0), 4.5 + 1.5),
        (Setting(behaviour=BEHAVIOUR, host_cores=2.0, starting_max=9), 5.0),
        (Setting(behaviour=BEHAVIOUR), 1.5),
    ):
        assert rehearse(work, profile, setting).pickup_max_s == pytest.approx(ready_s)
