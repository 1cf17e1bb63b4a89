from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.allocation.fair_share import Claim, urgency, urgency_weight, waited
from headway.scaling.model import Assignment, Decision, Host, MemberPickup, Objective, QueueMetrics, Template
from scaling.claims import share
from support.hosts import any_host
from support.pools import profile, queue

ONE = Template(name="one", content_hash="1", cpu_cores=1.0, memory_bytes=0)
DOUBLE = Template(name="double", content_hash="1", cpu_cores=2.0, memory_bytes=0)
WIDE = Template(name="wide", content_hash="1", cpu_cores=0.1, memory_bytes=10)
FREE = Template(name="free", content_hash="1", cpu_cores=0.0, memory_bytes=0)
TEMPLATES = (ONE, DOUBLE, WIDE, FREE)


def host(name: str = "a", *, templates: Sequence[Template] = TEMPLATES, **values: Any) -> Host:
    return any_host(name, **{"memory_bytes": 100, "templates": templates, **values})


def claim(
    pool: str,
    workers: int,
    *,
    guaranteed: int = 0,
    priority: int = 100,
    weight: float = 1.0,
    urgency: float = 0.0,
    template: str = "one",
    **values: Any,
) -> Claim:
    return Claim(
        pool=pool,
        template=template,
        workers=workers,
        guaranteed_workers=guaranteed,
        priority=priority,
        weight=weight,
        urgency=urgency,
        **values,
    )


@pytest.mark.parametrize(
    ("capacity", "claims", "granted"),
    [
        (10, [claim("a", 3), claim("b", 4)], {"a": 3, "b": 4}),  # room for all
        (6, [claim("a", 9), claim("b", 9)], {"a": 3, "b": 3}),  # alike
        (6, [claim("a", 2), claim("b", 9)], {"a": 2, "b": 4}),  # what a does not want is b's
        (7, [claim("a", 9), claim("b", 9)], {"a": 4, "b": 3}),  # the odd one by name
        (7, [claim("a", 9), claim("b", 9, urgency=0.4)], {"a": 3, "b": 4}),  # the odd one to the more urgent
        (9, [claim("a", 9), claim("b", 9, weight=2.0)], {"a": 3, "b": 6}),  # by weight
        (9, [claim("a", 9), claim("b", 9, urgency=0.5)], {"a": 3, "b": 6}),  # half of the objective is used up
        (10, [claim("a", 9), claim("b", 9, urgency=1.0)], {"a": 2, "b": 8}),  # all of it is
        (10, [claim("a", 9), claim("b", 9, urgency=50.0)], {"a": 2, "b": 8}),  # no more for what cannot be saved
        (6, [claim("a", 9), claim("b", 4, priority=101)], {"a": 2, "b": 4}),  # the higher priority has all it wants
        (6, [claim("a", 9, guaranteed=3), claim("b", 9, priority=101)], {"a": 3, "b": 3}),  # but guarantees come first
        (6, [claim("a", 1, guaranteed=3), claim("b", 9, priority=101)], {"a": 1, "b": 5}),  # if they are wanted at all
        (5, [claim("a", 9, guaranteed=4), claim("b", 9, guaranteed=4, priority=101)], {"a": 1, "b": 4}),
        (6, [claim("a", 9, guaranteed=4), claim("b", 9, guaranteed=4, weight=2.0)], {"a": 2, "b": 4}),
        (6, [claim("a", 9, guaranteed=3), claim("b", 9)], {"a": 3, "b": 3}),  # a guarantee is part of the share
        (6, [claim("a", 9, guaranteed=5), claim("b", 9)], {"a": 5, "b": 1}),
        (8, [claim("a", 9), claim("b", 9, template="double")], {"a": 4, "b": 2}),  # four cores each
        (5, [claim("a", 9), claim("b", 9, template="wide")], {"a": 4, "b": 9}),  # they want different things
        (0, [claim("a", 9, guaranteed=2)], {"a": 0}),
        (0, [claim("a", 2, template="free")], {"a": 2}),
        (6, [claim("a", 9, template="unknown"), claim("b", 2)], {"a": 0, "b": 2}),
        (6, [], {}),
    ],
)
def test_scarce_room_is_shared(capacity: int, claims: list[Claim], granted: dict[str, int]) -> None:
    assert share(claims, [host(cpu_cores=capacity)]) == granted


def test_what_only_one_pool_can_use_does_not_count_against_it_in_the_end() -> None:
    """Choosy: b may run everywhere, a on one host only; both have what is possible of an equal share."""
    hosts = [host("h1", cpu_cores=4), host("h2", cpu_cores=4, templates=[DOUBLE])]
    assert share([claim("a", 9), claim("b", 9, template="double")], hosts) == {"a": 4, "b": 2}


def test_rows_of_pools_that_claim_nothing_keep_their_room() -> None:
    held = [Assignment(pool="held", host_id="a", template="one", base_workers=4)]
    assert share([claim("a", 9)], [host(cpu_cores=6)], held=held) == {"a": 2}


def test_hosts_that_are_not_known_have_no_room() -> None:
    assert share([claim("a", 9)], [host(cpu_cores=6, is_known=False)]) == {"a": 0}


@pytest.mark.parametrize("values", [{"workers": -1}, {"guaranteed": -1}, {"weight": 0.0}, {"weight": float("nan")}])
def test_a_claim_that_means_nothing_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(Invalid, match="claim of pool 'a'"):
        claim(**{"pool": "a", "workers": 1, **values})  # type: ignore[arg-type]


MAIL = profile(objective=Objective(target_s=20.0))
BOTH = profile(
    queues=("redis/urgent", "redis/bulk"),
    objective=Objective(target_s=5.0),
    member_objectives={"redis/bulk": Objective(target_s=900.0)},
)


def decision(*metrics: QueueMetrics, **values: Any) -> Decision:
    return Decision(pool="mail", at_s=0.0, target_workers=1, binding="", metrics=metrics, **values)


def test_urgency_is_the_worst_wait_over_the_objective() -> None:
    waiting = queue(oldest_age_s=5.0)
    assert urgency(decision(), MAIL) == 0.0
    assert urgency(decision(waiting), MAIL) == 0.25
    assert urgency(decision(waiting, predicted_pickup_s=30.0), MAIL) == 1.5
    assert urgency(decision(queue(pickup_objective_s=10.0), predicted_pickup_s=1.0), MAIL) == 0.5


@pytest.mark.parametrize(
    ("urgent_s", "bulk_s", "used"),
    [
        (0.0, 90.0, 0.1),  # 90 of 900: late by the pool's 5 s, in time by its own
        (4.0, 90.0, 0.8),  # 4 of 5: the longer wait of the other queue hides it not
        (1.0, 450.0, 0.5),
    ],
)
def test_each_queue_is_as_urgent_as_its_own_objective_says(urgent_s: float, bulk_s: float, used: float) -> None:
    """Bulk of 900 s that had waited 74 s had the weight of a lost pool against 5 s, and took others' workers."""

    def both(**values: float) -> tuple[QueueMetrics, ...]:
        name = next(iter(values))
        return queue(queue="redis/urgent", **{name: urgent_s}), queue(queue="redis/bulk", **{name: bulk_s})

    predicted = tuple(
        MemberPickup(queue=name, objective=BOTH.objective_of(name), predicted_pickup_s=wait_s)
        for name, wait_s in (("redis/urgent", urgent_s), ("redis/bulk", bulk_s))
    )
    old, ended = decision(*both(oldest_age_s=0.0)), decision(*both(pickup_objective_s=0.0))
    assert urgency(old, BOTH) == waited(old, BOTH) == used
    assert (urgency(ended, BOTH), waited(ended, BOTH)) == (used, 0.0)
    coming = decision(*both(arrival_rate_per_s=0.0), predicted_pickup_s=bulk_s, member_pickups=predicted)
    assert (urgency(coming, BOTH), waited(coming, BOTH)) == (used, 0.0)


def test_a_pool_of_one_queue_is_predicted_against_the_objective_of_that_queue() -> None:
    own = replace(MAIL, member_objectives={"redis/mail": Objective(target_s=60.0)})
    assert urgency(decision(queue(), predicted_pickup_s=30.0), own) == 0.5


@pytest.mark.parametrize(
    ("present", "waits", "granted"),
    [
        ({"a": 0, "b": 1}, {}, {"a": 0, "b": 1}),  # the one that goes without is the more urgent, and stays so
        ({"a": 1, "b": 0}, {}, {"a": 1, "b": 0}),
        ({"a": 0, "b": 1}, {"a": 0.49}, {"a": 0, "b": 1}),
        ({"a": 0, "b": 1}, {"a": 0.5}, {"a": 1, "b": 0}),  # half an objective
        ({"a": 0, "b": 1}, {"a": 0.99, "b": 0.5}, {"a": 0, "b": 1}),
        ({"a": 0, "b": 1}, {"a": 1.0, "b": 0.5}, {"a": 1, "b": 0}),  # twice as long as the holder's
        ({"a": 0, "b": 1}, {"a": 15.0, "b": 8.0}, {"a": 0, "b": 1}),
        ({"a": 0, "b": 1}, {"a": 16.0, "b": 8.0}, {"a": 1, "b": 0}),  # also where all is lost: nobody is left out
    ],
)
@pytest.mark.parametrize("guaranteed", [0, 1], ids=["wished for", "guaranteed"])
def test_among_equals_who_has_the_place_keeps_it_until_another_has_waited_for_twice_as_long(
    present: dict[str, int], waits: dict[str, float], granted: dict[str, int], guaranteed: int
) -> None:
    claims = [
        claim(
            pool,
            1,
            guaranteed=guaranteed,
            urgency=float(not there),  # whoever goes without is predicted to wait
            present_workers=there,
            waited=waits.get(pool, 0.0),
        )
        for pool, there in present.items()
    ]
    assert share(claims, [host(cpu_cores=1)]) == granted


def test_the_odd_worker_of_a_share_stays_where_it_is() -> None:
    claims = [claim("a", 9, urgency=0.4, present_workers=3), claim("b", 9, present_workers=4)]
    assert share(claims, [host(cpu_cores=7)]) == {"a": 3, "b": 4}


def test_what_its_oldest_job_has_waited_is_a_part_of_the_objective() -> None:
    assert waited(decision(queue(oldest_age_s=5.0), predicted_pickup_s=30.0), MAIL) == 0.25
    assert waited(decision(queue(oldest_age_s=None)), MAIL) == 0.0
    assert waited(decision(queue(oldest_age_s=5.0, sampled_at_s=None)), MAIL) == 0.0


@given(less=st.floats(0, 10), more=st.floats(0, 10))
def test_more_urgency_never_weighs_less(less: float, more: float) -> None:
    assert 1 <= urgency_weight(min(less, more)) <= urgency_weight(max(less, more)) <= 4


POOLS = st.sampled_from([f"pool-{letter}" for letter in "abcdefgh"])
CLAIMS = st.lists(
    st.builds(
        claim,
        pool=POOLS,
        workers=st.integers(0, 12),
        guaranteed=st.integers(0, 5),
        priority=st.integers(1, 3),
        weight=st.sampled_from([0.5, 1.0, 2.0, 3.0]),
        urgency=st.sampled_from([0.0, 0.3, 0.6, 2.0]),
    ),
    unique_by=lambda each: each.pool,
)
MIXED = st.lists(
    st.builds(
        claim,
        pool=POOLS,
        workers=st.integers(0, 12),
        guaranteed=st.integers(0, 5),
        priority=st.integers(1, 3),
        weight=st.sampled_from([0.5, 1.0, 2.0]),
        urgency=st.sampled_from([0.0, 0.6, 2.0]),
        template=st.sampled_from([template.name for template in TEMPLATES]),
    ),
    unique_by=lambda each: each.pool,
)
SIZES = st.lists(st.integers(0, 12), max_size=4)
MIXED_HOSTS = st.lists(
    st.builds(
        host,
        st.sampled_from("abcd"),
        cpu_cores=st.integers(0, 12),
        memory_bytes=st.integers(0, 60),
        templates=st.lists(st.sampled_from(TEMPLATES), unique_by=lambda each: each.name),
        is_known=st.sampled_from([True, True, False]),
    ),
    unique_by=lambda each: each.host_id,
)


def of(sizes: Sequence[int]) -> list[Host]:
    return [host(f"h{number}", cpu_cores=size) for number, size in enumerate(sizes)]


@given(claims=CLAIMS, sizes=SIZES)
def test_nobody_has_more_than_wanted_and_nothing_is_left_while_somebody_wants(
    claims: list[Claim], sizes: list[int]
) -> None:
    granted = share(claims, of(sizes))
    assert granted.keys() == {each.pool for each in claims}
    assert all(0 <= granted[each.pool] <= each.workers for each in claims)
    assert sum(granted.values()) == min(sum(sizes), sum(each.workers for each in claims))


@given(claims=CLAIMS, sizes=SIZES)
def test_guarantees_come_before_anybodys_further_wishes(claims: list[Claim], sizes: list[int]) -> None:
    granted = share(claims, of(sizes))
    guaranteed = {each.pool: min(each.guaranteed_workers, each.workers) for each in claims}
    if sum(guaranteed.values()) <= sum(sizes):
        assert all(granted[pool] >= guaranteed[pool] for pool in granted)
    else:
        assert all(granted[pool] <= guaranteed[pool] for pool in granted)
        for low in claims:
            for high in claims:
                if high.priority > low.priority and granted[low.pool]:
                    assert granted[high.pool] == guaranteed[high.pool]


@given(claims=CLAIMS, sizes=SIZES)
def test_a_priority_has_all_it_wants_before_a_lower_one_has_more_than_its_guarantee(
    claims: list[Claim], sizes: list[int]
) -> None:
    granted = share(claims, of(sizes))
    for low in claims:
        for high in claims:
            if high.priority > low.priority and granted[low.pool] > low.guaranteed_workers:
                assert granted[high.pool] == high.workers


@given(claims=CLAIMS, sizes=SIZES)
def test_within_a_priority_nobody_has_more_while_somebody_further_behind_wants(
    claims: list[Claim], sizes: list[int]
) -> None:
    """Weighted max-min: without its last worker, whoever has more than a guarantee is not ahead of who lacks one."""
    granted = share(claims, of(sizes))

    def weight(each: Claim) -> float:
        return each.weight * urgency_weight(each.urgency)

    for one in claims:
        for other in claims:
            lacks = granted[one.pool] < one.workers
            if one.priority == other.priority and lacks and granted[other.pool] > other.guaranteed_workers:
                before_last, level = (granted[other.pool] - 1) / weight(other), granted[one.pool] / weight(one)
                assert before_last <= level + 1e-9
                if abs(before_last - level) < 1e-9:
                    assert (-other.urgency, other.pool) < (-one.urgency, one.pool)


@given(claims=CLAIMS, sizes=SIZES, more=st.integers(1, 5))
def test_more_room_takes_nothing_from_anybody(claims: list[Claim], sizes: list[int], more: int) -> None:
    less, greater = share(claims, of(sizes)), share(claims, of([*sizes, more]))
    assert all(less[pool] <= greater[pool] for pool in less)


@given(claims=CLAIMS, sizes=SIZES, data=st.data())
def test_who_wants_less_takes_nothing_from_the_others(
    claims: list[Claim], sizes: list[int], data: st.DataObject
) -> None:
    if not claims:
        return
    modest = data.draw(st.sampled_from(claims))
    fewer = replace(modest, workers=data.draw(st.integers(0, modest.workers)))
    before = share(claims, of(sizes))
    after = share([fewer if each is modest else each for each in claims], of(sizes))
    assert all(after[pool] >= before[pool] for pool in before if pool != modest.pool)


@given(claims=MIXED, hosts=MIXED_HOSTS, data=st.data())
def test_the_order_of_claims_and_hosts_does_not_matter(
    claims: list[Claim], hosts: list[Host], data: st.DataObject
) -> None:
    shuffled = share(data.draw(st.permutations(claims)), data.draw(st.permutations(hosts)))
    assert shuffled == share(claims, hosts)


@given(claims=MIXED, hosts=MIXED_HOSTS)
def test_all_together_never_have_more_than_the_hosts_of_their_templates_hold(
    claims: list[Claim], hosts: list[Host]
) -> None:
    granted = share(claims, hosts)
    known = [each for each in hosts if each.is_known]
    costs = {template.name: template for template in TEMPLATES}
    for names in ([template.name] for template in TEMPLATES):  # each template alone, then all together
        able = [each for each in known if set(names) & {template.name for template in each.templates}]
        mine = [(costs[each.template], granted[each.pool]) for each in claims if each.template in names]
        assert (
            sum(cost.cpu_cores * count for cost, count in mine) <= sum(each.capacity.cpu_cores for each in able) + 1e-6
        )
        assert sum(cost.memory_bytes * count for cost, count in mine) <= sum(
            each.capacity.memory_bytes for each in able
        )
        if not able:
            assert not any(count for _, count in mine)
    everyone = [(costs[each.template], granted[each.pool]) for each in claims]
    assert sum(cost.cpu_cores * count for cost, count in everyone) <= sum(e.capacity.cpu_cores for e in known) + 1e-6
    assert sum(cost.memory_bytes * count for cost, count in everyone) <= sum(e.capacity.memory_bytes for e in known)


@given(claims=MIXED, lower=MIXED, hosts=MIXED_HOSTS)
def test_no_pool_has_less_because_of_pools_of_lower_priority_without_guarantees(
    claims: list[Claim], lower: list[Claim], hosts: list[Host]
) -> None:
    others = [replace(each, pool=f"low-{each.pool}", priority=0, guaranteed_workers=0) for each in lower]
    alone, beside = share(claims, hosts), share([*claims, *others], hosts)
    assert alone == {each.pool: beside[each.pool] for each in claims}
