from typing import Any

import pytest

from headway.errors import Invalid
from headway.scaling.group import (
    Group,
    conflicts_of,
    group_from_mapping,
    group_to_mapping,
    memberships,
    smallest,
    used_units,
)
from headway.scaling.model import Objective, Template, Worker, WorkerState
from headway.scaling.profile import Override
from headway.scaling.profile_keys.schedule import Schedule
from support.hosts import any_host
from support.pools import profile

DATABASE = Group(name="database", workers_max=10, pools=("mail", "news"))


def test_a_group_is_read_and_written_again_in_the_order_of_its_pools() -> None:
    values = {"workers_max": 10, "pools": ["news", "mail"]}
    assert group_from_mapping("database", values) == DATABASE
    assert group_to_mapping(DATABASE) == {"workers_max": 10, "pools": ["mail", "news"]}
    in_slots = group_from_mapping("threads", {"slots_max": 8, "pools": ["mail"]})
    assert group_from_mapping("threads", group_to_mapping(in_slots)) == in_slots


@pytest.mark.parametrize(
    ("values", "breaches"),
    [
        ({"pools": ["mail"]}, ["needs workers_max or slots_max: without a cap it would limit nothing"]),
        (
            {"pools": ["mail"], "workers_max": 1, "slots_max": 1},
            ["workers_max and slots_max are both given: a cap is in workers or in slots"],
        ),
        ({"workers_max": 1}, ["pools must name at least one pool"]),
        (
            {"workers_max": 1, "pools": ["b", "a", "b", "a"]},
            ["pools names pool 'a' twice", "pools names pool 'b' twice"],
        ),
        (  # every mistake at once, and none that only follows from another
            {"workers_max": 0, "pools": "mail", "worker_max": 3},
            [
                "workers_max=0 must lie in 1..10000",
                "pools='mail': expected a list of text",
                "unknown key 'worker_max'; did you mean 'workers_max'?",
            ],
        ),
    ],
)
def test_every_mistake_of_a_group_is_named(values: dict[str, Any], breaches: list[str]) -> None:
    with pytest.raises(Invalid) as refused:
        group_from_mapping("database", values)
    assert [each.removeprefix("group 'database'").removeprefix(": ") for each in refused.value.breaches] == breaches


def test_a_group_has_a_name_that_a_path_can_hold() -> None:
    with pytest.raises(Invalid, match="its name must be"):
        Group(name="a/b", workers_max=1, pools=("mail",))


def test_what_profiles_guarantee_beyond_a_cap_is_named() -> None:
    objective = Objective(target_s=10.0)
    profiles = {
        "mail": profile(
            workers_min=11,
            override=Override(workers=12, until_s=1.0, reason="a sale"),
            schedules=(
                Schedule(starts="08:00", ends="18:00", workers_max=90),
                Schedule(starts="18:00", ends="20:00", workers_min=13),
            ),
            objective=objective,
        ),
        "pinned": profile(pool="pinned", pinned=14),
    }
    group = Group(name="database", workers_max=10, pools=("mail", "pinned", "gone"))
    assert conflicts_of(group, profiles) == (
        "group 'database': pool 'gone' has no profile",
        "group 'database': pool 'mail': workers_min=11 exceeds workers_max=10",
        "group 'database': pool 'mail': override=12 exceeds workers_max=10",
        "group 'database': pool 'mail': schedules[1].workers_min=13 exceeds workers_max=10",
        "group 'database': pool 'pinned': pinned=14 exceeds workers_max=10",
    )


def test_guarantees_that_exceed_a_cap_together_are_named() -> None:
    profiles = {"mail": profile(workers_min=6), "news": profile(pool="news", pinned=5)}
    (sentence,) = conflicts_of(DATABASE, profiles)
    assert sentence == (
        "group 'database': its pools are guaranteed 11 workers together (mail 6, news 5), which exceeds workers_max=10"
    )
    assert conflicts_of(DATABASE, {**profiles, "news": profile(pool="news", pinned=4)}) == ()


def test_a_cap_in_slots_is_taken_whole_workers_at_a_time() -> None:
    group = Group(name="threads", slots_max=10, pools=("mail",))
    assert [group.ceiling_workers(slots) for slots in (1, 4, 10, 11)] == [10, 2, 1, 0]
    assert DATABASE.ceiling_workers(4) == 10


def test_a_pool_may_be_in_several_groups() -> None:
    licences = Group(name="a licence", slots_max=3, pools=("mail",))
    assert memberships([DATABASE, licences]) == {"mail": (licences, DATABASE), "news": (DATABASE,)}


def test_a_floor_that_is_the_cap_is_no_conflict() -> None:
    alone = Group(name="database", workers_max=10, pools=("mail",))
    assert conflicts_of(alone, {"mail": profile(workers_min=10)}) == ()


def test_of_several_groups_the_smallest_cap_counts() -> None:
    threads = Group(name="threads", slots_max=12, pools=("mail",))
    assert smallest([DATABASE, threads], 1) is DATABASE
    assert smallest([DATABASE, threads], 4) is threads


def test_a_group_without_some_of_its_pools_is_none_without_all() -> None:
    assert DATABASE.among({"mail"}) == Group(name="database", workers_max=10, pools=("mail",))
    assert DATABASE.without({"mail", "news"}) is None


def test_every_worker_that_is_not_gone_is_used_and_those_of_unreachable_hosts_too() -> None:
    def worker(pool: str, state: WorkerState) -> Worker:
        return Worker(worker_id="w", pool=pool, template="rq", pid=1, state=state, started_at_s=0.0)

    templates = (Template(name="rq", content_hash="1", slots=4),)
    near = any_host("a", *(worker("mail", state) for state in WorkerState), templates=templates)
    far = any_host("b", worker("news", WorkerState.RUNNING), templates=templates, is_known=False)
    other = any_host("c", worker("video", WorkerState.RUNNING))
    there = len(WorkerState) - 1 + 1
    assert used_units(DATABASE, [near, far, other]) == there
    threads = Group(name="threads", slots_max=12, pools=("mail", "news"))
    assert used_units(threads, [near, far, other]) == 4 * there
