"""Workers that start share the cores of their host."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.metrics.behaviour import Behaviour, Spread
from headway.scaling.model import Host, HostCapacity, Template
from headway.scaling.profile import Profile
from headway.simulate.engine.cores import Cores, Work
from headway.simulate.engine.results import Result
from headway.simulate.engine.simulation import Rehearsal, simulate
from headway.simulate.engine.simulation_plan import PoolPlan
from headway.simulate.observation import Observation
from headway.simulate.studies.single_pool import Setting, controller_of, plan_of, rehearse
from headway.simulate.workloads.jobs import Jobs
from simulate.stepping import always, by_time, jobs


def planned(
    starts: Sequence[tuple[float, float, float]],
    *,
    cores: float,
    starting_max: int | None = None,
    busy_cores: float = 0.0,
    ends: Collection[int] = (),
) -> list[tuple[float, float]]:
    """When each of ``starts`` (begins, CPU seconds, other seconds; in order) begins and is done; some are ``ends``."""
    machine = Cores(cores, starting_max=starting_max, busy_cores=lambda: busy_cores)
    found: dict[int, tuple[float, float]] = {}
    for number, (at_s, cpu_s, rest_s) in enumerate(starts):

        def on_plan(spawned_s: float, ready_s: float, number: int = number) -> None:
            found[number] = spawned_s, ready_s

        work = Work(worker=number, cpu_s=cpu_s, rest_s=rest_s, on_plan=on_plan, is_end=number in ends)
        machine.begin(work, at_s)
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


def ended(ends: Sequence[tuple[float, float]], *, cores: float, starts: int = 0) -> list[float]:
    """When each of ``ends`` (CPU seconds, other seconds), all asked for at 0, is over, beside so many starts of 1 s."""
    machine = Cores(cores, starting_max=1, busy_cores=lambda: 0.0)
    found: dict[object, float] = {}
    for number in range(starts):
        machine.begin(Work(worker=f"start {number}", cpu_s=1.0, rest_s=0.0, on_plan=lambda *_: None), 0.0)
    for number, (cpu_s, rest_s) in enumerate(ends):

        def on_plan(_: float, done_s: float, number: int = number) -> None:
            found[number] = done_s

        machine.begin(Work(worker=number, cpu_s=cpu_s, rest_s=rest_s, on_plan=on_plan, is_end=True), 0.0)
    machine.plan(0.0)
    return [found[number] for number in range(len(ends))]


def test_an_end_waits_first_and_then_needs_a_core() -> None:
    """Asked at once on one core: one sees it after 1 s, the other after 2 s, when the first is done."""
    assert ended([(1.0, 1.0), (1.0, 2.0)], cores=1) == [2.0, 3.0]
    assert ended([(1.0, 1.0), (1.0, 1.0)], cores=1) == [3.0, 3.0]
    assert ended([(1.0, 1.0), (1.0, 1.0)], cores=2) == [2.0, 2.0]


def test_ends_and_starts_delay_each_other_and_any_number_ends_at_once() -> None:
    """Two starts, one after the other, have half a core each while the end computes."""
    assert ended([(1.0, 0.0)], cores=1, starts=2) == [2.0]
    assert ended([(1.0, 0.0)] * 3, cores=4, starts=2) == [1.0] * 3


times = st.floats(0.0, 20.0).map(lambda value: round(value, 2))


@given(
    st.lists(st.tuples(times, times, times), min_size=1, max_size=12).map(sorted),
    st.sampled_from([0.5, 1.0, 2.0, 64.0]),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([0.0, 1.5]),
    st.sets(st.integers(0, 11)),
)
def test_nobody_is_done_before_its_time_and_cores_give_no_more_than_they_have(
    starts: list[tuple[float, float, float]],
    cores: float,
    starting_max: int | None,
    busy_cores: float,
    ends: set[int],
) -> None:
    found = planned(starts, cores=cores, starting_max=starting_max, busy_cores=busy_cores, ends=ends)
    for number, ((at_s, cpu_s, rest_s), (spawned_s, ready_s)) in enumerate(zip(starts, found, strict=True)):
        assert spawned_s == at_s or (spawned_s > at_s and number not in ends)
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

                machine.begin(Work(worker=number, cpu_s=cpu_s, rest_s=rest_s, on_plan=on_plan), 0.0)
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


ENDING = Behaviour(
    start_up=Spread(p50_s=3.0, p95_s=4.0),
    start_up_cpu_s=0.0,
    start_up_alone=Spread(p50_s=0.0, p95_s=0.0),
    exit=Spread(p50_s=9.0, p95_s=9.0),
    exit_cpu_s=1.0,
    exit_alone=Spread(p50_s=1.5, p95_s=1.5),
)


@pytest.mark.parametrize(
    ("workers", "cores", "paid_s"),
    [
        (1, 2.0, 10 + 1.5),
        (4, 2.0, 4 * (10 + 0.5 + 2.0)),  # each has half a core for its second
        (4, None, 4 * (10 + 9.0)),  # as it was measured, nobody delays another
    ],
)
def test_workers_that_are_asked_at_once_to_leave_share_cores_and_are_paid_meanwhile(
    workers: int, cores: float | None, paid_s: float
) -> None:
    profile = Profile(pool="mail", queues=("redis/mail",), template="rq")
    setting = Setting(behaviour=ENDING, host_cores=cores)
    plan = replace(plan_of(jobs(*((0.0, 1.0),) * workers, (40.0, 1.0)), profile, setting), is_live=False)
    if cores is None:
        plan = replace(plan, behaviour=replace(plan.behaviour, start_up=ENDING.start_up_alone))
    result = run(plan, by_time((0, workers), (10, 0), (40, 1)), cores=cores)
    assert result.worker_hours * 3600 == pytest.approx(paid_s + 1.0)


def test_who_has_learned_how_long_starts_take_decides_by_that_and_not_by_what_they_take_alone() -> None:
    """Live, only what starts took is known."""
    profile = Profile(pool="mail", queues=("redis/mail",), template="rq")
    controller = controller_of(profile, Setting(behaviour=ENDING, host_cores=2.0))
    controller.step(Observation(at_s=0.0, waiting=1, oldest_age_s=1.0, arrived=1))
    assert controller.outcome is not None
    assert controller.outcome.view.start_up_p95_s == 4.0
    assert controller.outcome.view.exit_s == 9.0


def test_an_end_that_its_deadline_cuts_short_leaves_its_part_to_the_others() -> None:
    """One core: two that end share it; the drain deadline of both passes, and a start after that has it alone."""
    plan = PoolPlan(
        jobs=jobs((0.0, 1.0), (0.0, 1.0), (20.0, 1.0)),
        behaviour=Behaviour(
            start_up=Spread(p50_s=1.0, p95_s=1.0),
            start_up_cpu_s=1.0,
            exit=Spread(p50_s=30.0, p95_s=30.0),
            exit_cpu_s=30.0,
        ),
        drain_deadline_s=8.0,
    )
    result = run(plan, by_time((0, 2), (10, 0), (20, 1)), cores=1.0)
    assert result.worker_hours * 3600 == pytest.approx(2 * (10 + 8) + 2)
    assert result.pickup_max_s == pytest.approx(2.0)  # of the first two, which start together


def test_a_worker_that_starts_is_put_off_by_one_that_starts_after_it() -> None:
    """One core, 1 s each and half a second more: alone until 0.5 s, then half the core until its second is over."""
    plan = PoolPlan(jobs=jobs((0.0, 9.0)), behaviour=BEHAVIOUR)
    script = by_time((0, 1), (0.5, 2))
    assert run(plan, script, cores=1.0, tick_s=0.5).pickup_max_s == pytest.approx(0.5 + 1.0 + 0.5)


def test_what_other_programs_want_of_cores_they_have_in_even_parts() -> None:
    """One start and three others on two cores: half a core for its second. Four and four: a quarter each."""
    for workers, busy_cores, waited_s in ((1, 0.0, 1.5), (1, 3.0, 2.5), (4, 0.0, 2.5), (4, 4.0, 4.5)):
        plan = PoolPlan(jobs=jobs(*((0.0, 5.0),) * workers), behaviour=BEHAVIOUR)
        result = run(plan, always(workers), cores=2.0, busy_cores=busy_cores)
        assert result.pickup_p50_s == pytest.approx(waited_s)
    profile = Profile(pool="mail", queues=("redis/mail",), template="rq", workers_min=1, workers_max=1)
    setting = Setting(behaviour=BEHAVIOUR, host_cores=2.0, busy_cores=3.0)
    assert rehearse(jobs((0.0, 5.0)), profile, setting).pickup_max_s == pytest.approx(2.5)
    with pytest.raises(Invalid, match="busy_cores=-1 must not be negative"):
        Setting(busy_cores=-1.0)


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
    """One at a time: spawned at 0 and 1.5 s; the third is asked to leave at 1 s, before its turn."""
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
