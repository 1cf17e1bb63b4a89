"""Who gets how much of a cap, and what decisions say of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.allocation.allocate import allocate
from headway.scaling.allocation.fair_share import Claim
from headway.scaling.allocation.group_share import CapRooms, shared_caps
from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.explain import explained
from headway.scaling.group import Group, memberships
from headway.scaling.model import Assignment, Host, HostState, Memory, Mode, NoteKind, Template
from support.hosts import any_host
from support.pools import NOW_S, profile, queue, view

ONE = Template(name="one", content_hash="1", cpu_cores=0.0, memory_bytes=0)
FOUR = Template(name="four", content_hash="1", cpu_cores=0.0, memory_bytes=0, slots=4)
ROOMY = any_host("h", cpu_cores=64.0, memory_bytes=1 << 40, templates=(ONE, FOUR))


def group(cap: int, *pools: str, name: str = "database", **values: Any) -> Group:
    return Group(name=name, workers_max=cap, pools=pools, **values)


def threads(cap: int, *pools: str) -> Group:
    return Group(name="threads", slots_max=cap, pools=pools)


def claim(pool: str, workers: int, *, guaranteed: int = 0, **values: Any) -> Claim:
    return Claim(pool=pool, template="one", workers=workers, guaranteed_workers=guaranteed, **values)


@pytest.mark.parametrize(
    ("cap", "claims", "granted"),
    [
        (10, [claim("a", 3), claim("b", 4)], {"a": 3, "b": 4}),  # room for all
        (6, [claim("a", 9), claim("b", 9)], {"a": 3, "b": 3}),  # alike
        (6, [claim("a", 2), claim("b", 9)], {"a": 2, "b": 4}),  # what a does not want is b's
        (9, [claim("a", 9), claim("b", 9, weight=2.0)], {"a": 3, "b": 6}),  # by weight
        (9, [claim("a", 9), claim("b", 9, urgency=0.5)], {"a": 3, "b": 6}),  # half of the objective is used up
        (6, [claim("a", 9), claim("b", 4, priority=101)], {"a": 2, "b": 4}),  # the higher priority has all it wants
        (6, [claim("a", 9, guaranteed=3), claim("b", 9, priority=101)], {"a": 3, "b": 3}),  # but guarantees come first
        (6, [claim("a", 1, guaranteed=3), claim("b", 9, priority=101)], {"a": 1, "b": 5}),  # if they are wanted at all
        (5, [claim("a", 9, guaranteed=4), claim("b", 9, guaranteed=4, priority=101)], {"a": 1, "b": 4}),
        (1, [claim("a", 1), claim("b", 1, present_workers=1)], {"a": 0, "b": 1}),  # who has a place keeps it
    ],
)
def test_a_cap_is_shared_as_hosts_are(cap: int, claims: Sequence[Claim], granted: Mapping[str, int]) -> None:
    shares = shared_caps(claims, CapRooms([group(cap, "a", "b")], {}))
    assert shares.granted == granted
    assert shares.full == {each.pool: {"database"} for each in claims if shares.granted[each.pool] < each.workers}


def test_a_pool_in_two_groups_keeps_to_both_and_the_others_use_what_it_leaves() -> None:
    groups = [group(6, "a", "b"), group(2, "b", "c", name="licences")]
    shares = shared_caps([claim("a", 9), claim("b", 9), claim("c", 9)], CapRooms(groups, {}))
    assert shares.granted == {"a": 5, "b": 1, "c": 1}
    assert shares.full == {"a": {"database"}, "b": {"database", "licences"}, "c": {"licences"}}


def test_a_cap_in_slots_counts_each_worker_with_its_slots() -> None:
    rooms = CapRooms([threads(10, "a", "b")], {"b": 4})
    assert shared_caps([claim("a", 9), claim("b", 9)], rooms).granted == {"a": 6, "b": 1}


CLAIMS = st.lists(
    st.builds(
        claim,
        st.sampled_from("abcd"),
        st.integers(0, 9),
        guaranteed=st.integers(0, 5),
        priority=st.integers(1, 2),
        weight=st.sampled_from([0.5, 1.0, 2.0]),
        present_workers=st.integers(0, 9),
    ),
    unique_by=lambda each: each.pool,
)
GROUPS = st.lists(
    st.builds(
        lambda name, cap, pools, in_slots: Group(
            name=name, pools=tuple(pools), **{"slots_max" if in_slots else "workers_max": cap}
        ),
        st.sampled_from(["g", "h", "i"]),
        st.integers(1, 20),
        st.lists(st.sampled_from("abcd"), min_size=1, unique=True),
        st.booleans(),
    ),
    unique_by=lambda each: each.name,
)
SLOTS = st.fixed_dictionaries({pool: st.integers(1, 5) for pool in "abcd"})


@given(claims=CLAIMS, groups=GROUPS, slots=SLOTS)
def test_no_cap_is_exceeded_and_none_has_room_for_what_is_refused(
    claims: list[Claim], groups: list[Group], slots: Mapping[str, int]
) -> None:
    shares = shared_caps(claims, CapRooms(groups, slots))
    taken = {
        each.name: sum(each.units(slots[pool]) * shares.granted.get(pool, 0) for pool in each.pools) for each in groups
    }
    assert all(taken[each.name] <= each.cap for each in groups)
    for each in claims:
        if each.pool in shares.granted and shares.granted[each.pool] < each.workers:
            mine = [one for one in groups if each.pool in one.pools]
            assert any(taken[one.name] + one.units(slots[each.pool]) > one.cap for one in mine)
            assert shares.full[each.pool]


@given(claims=CLAIMS, groups=GROUPS, slots=SLOTS)
def test_no_order_of_pools_or_groups_changes_a_share(
    claims: list[Claim], groups: list[Group], slots: Mapping[str, int]
) -> None:
    first = shared_caps(claims, CapRooms(groups, slots))
    assert shared_caps(claims[::-1], CapRooms(groups[::-1], slots)) == first


def decided(pool: str, workers: int, groups: Sequence[Group], **values: Any) -> Outcome:
    """A pool that wants so many workers by its floor."""
    given = {"template": "one", "workers_min": workers, **values}
    rate_per_s = given.pop("arrival_rate_per_s", 0.0)
    about = {key: given.pop(key) for key in tuple(given) if key.endswith("_workers") and key != "fallback_workers"}
    seen = view(
        queue(queue=f"redis/{pool}", arrival_rate_per_s=rate_per_s),
        profile=profile(pool=pool, queues=(f"redis/{pool}",), **given),
        groups=memberships(groups).get(pool, ()),
        **about,
    )
    decision, memory = decide(seen, Memory(), now_s=NOW_S)
    return Outcome(view=seen, before=Memory(), decision=decision, memory=memory)


def targets(
    outcomes: Sequence[Outcome], groups: Sequence[Group], *, hosts: Sequence[Host] = (ROOMY,), **given: Any
) -> dict[str, int]:
    left, _ = allocate(outcomes, hosts, given.pop("current", ()), groups=groups, **given)
    return {each.decision.pool: each.decision.target_workers for each in left}


def row(pool: str, workers: int, host: str = "h", template: str = "one") -> Assignment:
    return Assignment(pool=pool, host_id=host, template=template, base_workers=workers)


def test_a_pool_alone_in_its_group_never_wants_more_than_the_cap() -> None:
    groups = [group(4, "mail")]
    decision = decided("mail", 9, groups).decision
    assert (decision.target_workers, decision.binding) == (4, "group")
    assert "Group database allows 4 workers for its pools together, so 9 become 4." in explained(decision)
    assert decision.groups[0].is_binding


def test_a_share_of_a_cap_has_a_step_a_sentence_and_what_the_others_take() -> None:
    groups = [group(6, "mail", "news")]
    left, rows = allocate(
        [decided("mail", 5, groups), decided("news", 2, groups, priority=200)], [ROOMY], (), groups=groups
    )
    mail, news = (each.decision for each in left)
    assert (mail.target_workers, mail.binding) == (4, "group_share")
    assert (
        "Group database allows 6 workers, and its other pools take 2 workers: the pool's share is 4 of the 5 that it "
        "asks for." in explained(mail)
    )
    assert (news.target_workers, news.groups[0].taken_by_others, news.groups[0].is_binding) == (2, 4, False)
    assert {each.pool: each.workers for each in rows} == {"mail": 4, "news": 2}


def test_without_groups_nothing_of_a_decision_changes() -> None:
    outcomes = [decided("mail", 5, ()), decided("news", 2, ())]
    assert allocate(outcomes, [ROOMY], (), groups=()) == allocate(outcomes, [ROOMY], ())
    alone = [group(9, "video")]
    assert allocate(outcomes, [ROOMY], (), groups=alone) == allocate(outcomes, [ROOMY], ())


def test_a_pool_beyond_its_group_is_not_touched_by_it() -> None:
    groups = [group(2, "mail", "news")]
    outcomes = [decided("mail", 5, groups), decided("news", 5, groups), decided("video", 5, groups)]
    assert targets(outcomes, groups) == {"mail": 1, "news": 1, "video": 5}


def test_slots_count_as_the_host_has_them_where_hosts_differ() -> None:
    groups = [threads(8, "mail", "news")]
    more = any_host("i", cpu_cores=8.0, memory_bytes=1 << 40, templates=(replace(ONE, slots=4),))
    outcomes = [decided("mail", 8, groups), decided("news", 8, groups)]
    assert targets(outcomes, groups, hosts=[ROOMY, more]) == {"mail": 1, "news": 1}


def test_starts_wait_until_what_leaves_another_pool_of_the_group_is_gone() -> None:
    groups = [group(4, "mail", "news")]
    outcomes = [decided("mail", 1, groups, assigned_workers=4, running_workers=4), decided("news", 3, groups)]
    left, rows = allocate(outcomes, [ROOMY], [row("mail", 4)], groups=groups)
    assert {each.pool: each.workers for each in rows} == {"mail": 1}
    assert left[1].decision.target_workers == 3
    assert left[1].decision.note_of(NoteKind.LATER_START) is not None


def test_what_may_run_on_an_unreachable_host_counts_and_costs_no_busy_worker() -> None:
    groups = [group(4, "mail", "news")]
    gone = any_host("gone", is_known=False, silent_s=60.0, templates=(ONE,))
    mail = decided("mail", 3, groups, assigned_workers=3, running_workers=3, busy_workers=3)
    news = decided("news", 3, groups, unknown_workers=3)
    current = [row("mail", 3), row("news", 3, "gone")]
    left, rows = allocate([mail, news], [ROOMY, gone], current, groups=groups)
    there = {each.pool: each.workers for each in rows if each.host_id == "h"}
    assert there.get("mail", 0) + there.get("news", 0) <= 3
    assert sum(each.decision.target_workers for each in left) == 3  # of four, three may run there: the busy ones stay
    assert "news" not in there


def test_what_others_scale_in_the_group_counts_too() -> None:
    groups = [group(4, "mail", "news")]
    advised = decided("news", 2, groups, mode=Mode.RECOMMEND, running_workers=3)
    assert targets([decided("mail", 4, groups), advised], groups) == {"mail": 1, "news": 2}


def test_a_pool_that_could_not_be_decided_keeps_what_it_has_of_the_cap() -> None:
    groups = [group(4, "mail", "news")]
    outcome = decided("mail", 4, groups)
    assert targets([outcome], groups, current=[row("news", 3)], held=[row("news", 3)]) == {"mail": 1}


def test_no_order_of_pools_or_groups_changes_an_allocation() -> None:
    groups = [group(5, "mail", "news"), group(4, "news", "video", name="licences")]
    outcomes = [decided(pool, 4, groups) for pool in ("mail", "news", "video")]
    expected, rows = allocate(outcomes, [ROOMY], (), groups=groups)
    by_pool = {each.decision.pool: each for each in expected}
    for order in permutations(outcomes):
        left, same = allocate(order, [ROOMY], (), groups=groups[::-1])
        assert {each.decision.pool: each for each in left} == by_pool
        assert sorted(same, key=lambda each: each.pool) == sorted(rows, key=lambda each: each.pool)


def test_a_lowered_cap_takes_no_more_than_it_must_and_starts_nothing() -> None:
    groups = [group(3, "mail", "news")]
    outcomes = [
        decided("mail", 3, groups, assigned_workers=3, running_workers=3, busy_workers=3),
        decided("news", 2, groups, assigned_workers=2, running_workers=2, busy_workers=2),
    ]
    current = [row("mail", 3), row("news", 2)]
    left, rows = allocate(outcomes, [ROOMY], current, groups=groups)
    assert sum(each.decision.target_workers for each in left) == 3
    assert all(each.workers <= {"mail": 3, "news": 2}[each.pool] for each in rows)


def test_workers_on_unreachable_hosts_count_against_the_cap_of_a_pool_alone() -> None:
    decision = decided("mail", 9, [group(6, "mail")], unknown_workers=2).decision
    assert decision.target_workers == 4
    sentence = (
        "Group database allows 6 workers for its pools together, so 9 become 4 because 2 workers may still run on "
        "unreachable hosts."
    )
    assert sentence in explained(decision)


def test_nothing_starts_in_a_group_while_a_host_may_run_what_is_not_known() -> None:
    groups = [group(4, "mail")]
    outcome = decided("mail", 3, groups)
    restored = replace(ROOMY, is_confirmed=False)
    _, rows = allocate([outcome], [restored], (), groups=groups)
    assert rows == ()
    _, rows = allocate([outcome], [ROOMY], (), groups=groups)
    assert [each.workers for each in rows] == [3]


def test_a_cap_that_cannot_keep_up_is_named_before_a_job_is_late() -> None:
    seen = view(
        queue(arrival_rate_per_s=10.0, service_time_s=1.0),
        groups=(group(4, "mail"),),
        running_workers=4,
        idle_workers=0,
    )
    decision, _ = decide(seen, Memory(), now_s=NOW_S)
    said = "workers_max=4 of group 'database' cannot keep up: what arrives keeps 10.0 workers of this pool busy"
    assert said in decision.notes


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        (
            (3.0, 3.0),
            "workers_max=5 of group 'database' cannot keep up: what arrives in its pools keeps 6.0 workers busy",
        ),
        ((2.0, 3.0), None),  # both fit
        ((6.0, 1.0), None),  # the first is too much alone, and says so itself
    ],
)
def test_a_cap_that_is_too_small_for_all_its_pools_together_is_named(
    rates: tuple[float, float], said: str | None
) -> None:
    groups = [group(5, "mail", "news")]
    outcomes = [
        decided(pool, 1, groups, arrival_rate_per_s=rate) for pool, rate in zip(("mail", "news"), rates, strict=True)
    ]
    left, _ = allocate(outcomes, [ROOMY], (), groups=groups)
    for each in left:
        together = [note for note in each.decision.notes if "in its pools" in note]
        assert together == ([] if said is None else [said])


def test_what_may_run_on_an_unreachable_host_counts_once() -> None:
    groups = [group(4, "mail")]
    gone = any_host("gone", is_known=False, silent_s=60.0, templates=(ONE,))
    outcome = decided("mail", 2, groups, unknown_workers=2)
    _, rows = allocate([outcome], [ROOMY, gone], [row("mail", 2, "gone")], groups=groups)
    assert {each.host_id: each.workers for each in rows} == {"h": 2, "gone": 2}


@pytest.mark.parametrize(("cap", "left"), [(2, {"a": 1}), (3, {"a": 2, "h": 1}), (4, {"a": 2, "h": 2})])
def test_a_draining_host_empties_as_far_as_the_cap_has_room_for_both(cap: int, left: Mapping[str, int]) -> None:
    groups = [group(cap, "mail", "news")]
    draining = any_host("a", cpu_cores=8.0, templates=(ONE,), state=HostState.DRAINING)
    outcome = decided("mail", 2, groups, running_workers=2)
    _, rows = allocate([outcome], [draining, ROOMY], [row("mail", 2, "a")], groups=groups)
    assert {each.host_id: each.workers for each in rows} == left


def test_a_draining_host_empties_one_by_one_where_the_other_pools_fill_the_cap() -> None:
    groups = [group(4, "mail", "news")]
    draining = any_host("a", cpu_cores=8.0, templates=(ONE,), state=HostState.DRAINING)
    outcomes = [
        decided("mail", 2, groups, running_workers=2),
        decided("news", 2, groups, running_workers=2, assigned_workers=2),
    ]
    current = [row("mail", 2, "a"), row("news", 2)]
    _, rows = allocate(outcomes, [draining, ROOMY], current, groups=groups)
    assert {(each.pool, each.host_id): each.workers for each in rows} == {("mail", "a"): 1, ("news", "h"): 2}
