"""Where workers go when hosts differ: labels, spread, GPUs, pressure, cordons, and hosts on which a template fails."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.allocation.fair_share import Claim
from headway.scaling.model import Assignment, Host, HostProblem, HostProblemKind, HostState, Template
from headway.scaling.placement.host_capacity import HOST_MEMORY_PRESSURE_MAX
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import PoolTarget, placed_workers
from headway.scaling.profile import Placement, profile_from_mapping
from scaling.claims import share
from support.hosts import any_host
from support.placements import place

MAIL = Template(name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=0)


def host(name: str, cpu_cores: float = 4.0, *, template: Template = MAIL, **values: Any) -> Host:
    return any_host(name, cpu_cores=cpu_cores, templates=(template,), **values)


def target(workers: int, pool: str = "mail", **values: Any) -> PoolTarget:
    return PoolTarget(pool=pool, template="mail", workers=workers, **values)


def row(host_id: str, base_workers: int, pool: str = "mail") -> Assignment:
    return Assignment(pool=pool, host_id=host_id, template="mail", base_workers=base_workers)


def by_host(rows: Sequence[Assignment]) -> dict[str, int]:
    return {each.host_id: each.workers for each in rows}


# --- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "where"),
    [
        ({}, {"a", "b", "c"}),
        ({"disk": "ssd"}, {"a", "b"}),
        ({"disk": "ssd", "zone": "1"}, {"a"}),
        ({"disk": "tape"}, set()),
    ],
)
def test_workers_are_only_where_all_their_labels_are_said(labels: Mapping[str, str], where: set[str]) -> None:
    hosts = [
        host("a", labels={"disk": "ssd", "zone": "1"}),
        host("b", labels={"disk": "ssd", "zone": "2"}),
        host("c", labels={"disk": "hdd", "zone": "1"}),
    ]
    assert set(by_host(place([target(6, labels=labels)], hosts, []))) == where


def test_a_template_s_own_label_counts_more_than_its_host_s() -> None:
    special = replace(MAIL, labels={"disk": "ssd"})
    hosts = [host("a", labels={"disk": "hdd"}, template=special), host("b", labels={"disk": "hdd"})]
    assert by_host(place([target(2, labels={"disk": "ssd"})], hosts, [])) == {"a": 2}


def test_what_runs_where_its_labels_are_no_longer_said_moves() -> None:
    hosts = [host("a", labels={"disk": "hdd"}), host("b", labels={"disk": "ssd"})]
    assert by_host(place([target(2, labels={"disk": "ssd"})], hosts, [row("a", 2)])) == {"b": 2}


def test_pools_with_and_without_labels_share_the_same_room() -> None:
    hosts = [host("a", 4.0, labels={"disk": "ssd"})]
    both = [target(3, "mail", labels={"disk": "ssd"}), target(3, "news")]
    assert sum(placed_workers(place(both, hosts, [])).values()) == 4


def test_capacity_under_labels_is_not_known_where_no_known_host_says_them() -> None:
    rooms = HostCapacities([host("a", labels={"disk": "hdd"})])
    assert rooms.capacity(rooms.kind("mail", {"disk": "ssd"})) is None
    assert rooms.capacity(rooms.kind("mail", {"disk": "hdd"})) == 4


# --- spread ----------------------------------------------------------------------------------------------------------


def zones(rows: Sequence[Assignment], hosts: Sequence[Host]) -> dict[str, int]:
    found: dict[str, int] = {}
    labels = {each.host_id: each.labels["zone"] for each in hosts}
    for each in rows:
        found[labels[each.host_id]] = found.get(labels[each.host_id], 0) + each.workers
    return found


def test_spread_across_zones_gives_each_the_same_and_the_larger_host_of_a_zone_more() -> None:
    hosts = [
        host("a", 16.0, labels={"zone": "1"}),
        host("b", 4.0, labels={"zone": "1"}),
        host("c", 4.0, labels={"zone": "2"}),
    ]
    rows = place([target(6, spread="zone")], hosts, [])
    assert zones(rows, hosts) == {"1": 3, "2": 3}
    assert by_host(rows)["a"] >= by_host(rows)["b"]


def test_without_spread_workers_follow_capacity() -> None:
    hosts = [host("a", 16.0, labels={"zone": "1"}), host("c", 4.0, labels={"zone": "2"})]
    assert zones(place([target(5)], hosts, []), hosts) == {"1": 4, "2": 1}


def test_spread_is_a_wish_and_costs_nobody_a_place() -> None:
    hosts = [host("a", 16.0, labels={"zone": "1"}), host("b", 2.0, labels={"zone": "2"})]
    assert zones(place([target(10, spread="zone")], hosts, []), hosts) == {"1": 8, "2": 2}


def test_spread_across_hosts_counts_the_pool_s_own_workers_only() -> None:
    hosts = [host("a", 8.0), host("b", 8.0)]
    rows = place([target(4, "mail", spread="host"), target(5, "news")], hosts, [row("a", 5, "news")])
    assert by_host([each for each in rows if each.pool == "mail"]) == {"a": 2, "b": 2}


def test_what_runs_is_not_moved_to_even_out() -> None:
    hosts = [host("a", 8.0, labels={"zone": "1"}), host("b", 8.0, labels={"zone": "2"})]
    assert by_host(place([target(4, spread="zone")], hosts, [row("a", 4)])) == {"a": 4}


def test_one_too_many_leaves_the_zone_that_has_the_most() -> None:
    hosts = [
        host("a", 64.0, labels={"zone": "1"}),
        host("b", 64.0, labels={"zone": "1"}),
        host("c", 4.0, labels={"zone": "2"}),
    ]
    rows = place([target(4, spread="zone")], hosts, [row("a", 3), row("b", 2), row("c", 2)])
    assert zones(rows, hosts) == {"1": 2, "2": 2}


@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    workers=st.integers(0, 30),
    spread=st.sampled_from([None, "host", "zone"]),
)
def test_as_many_are_placed_with_spread_as_without(sizes: list[int], workers: int, spread: str | None) -> None:
    hosts = [host(f"h{number}", float(size), labels={"zone": str(number % 2)}) for number, size in enumerate(sizes)]
    rows = place([target(workers, spread=spread)], hosts, [])
    assert sum(each.workers for each in rows) == min(workers, sum(sizes))
    assert place([target(workers, spread=spread)], hosts, rows) == rows


# --- GPUs ------------------------------------------------------------------------------------------------------------


def test_a_worker_that_takes_gpus_has_a_place_only_where_they_are_left() -> None:
    with_gpus = replace(MAIL, gpus=2)
    hosts = [host("a", 64.0, gpus=5, template=with_gpus), host("b", 64.0, template=with_gpus)]
    assert by_host(place([target(4)], hosts, [])) == {"a": 2}


# --- hosts that get nothing new --------------------------------------------------------------------------------------

SHUT = pytest.mark.parametrize(
    "shut",
    [
        {"state": HostState.CORDONED},
        {"memory_pressure": HOST_MEMORY_PRESSURE_MAX},
        {"problems": (HostProblem(kind=HostProblemKind.STATE_FOLDER, error_number=28),)},
    ],
    ids=["cordoned", "pressed", "full disk"],
)


@SHUT
def test_a_host_that_is_shut_keeps_what_runs_and_gets_nothing_new(shut: dict[str, Any]) -> None:
    hosts = [host("a", 8.0, **shut), host("b", 8.0)]
    assert by_host(place([target(6)], hosts, [row("a", 2)])) == {"a": 2, "b": 4}
    assert by_host(place([target(12)], hosts, [row("a", 2)])) == {"a": 2, "b": 8}


def test_a_host_file_with_mistakes_shuts_no_host() -> None:
    """The one before is in force."""
    mistaken = (HostProblem(kind=HostProblemKind.HOST_FILE),)
    assert by_host(place([target(1)], [host("a", problems=mistaken)], [])) == {"a": 1}


def test_a_little_memory_pressure_shuts_no_host() -> None:
    assert by_host(place([target(1)], [host("a", memory_pressure=0.09)], [])) == {"a": 1}


@SHUT
def test_nobody_takes_over_a_place_on_a_host_that_is_shut(shut: dict[str, Any]) -> None:
    rows = place([target(1, "mail", priority=9), target(2, "news")], [host("a", 2.0, **shut)], [row("a", 2, "news")])
    assert placed_workers(rows) == {"news": 2}


@SHUT
def test_what_a_shut_host_keeps_counts_in_the_share_of_who_has_it(shut: dict[str, Any]) -> None:
    hosts = [host("a", 4.0, **shut), host("b", 4.0)]
    claims = [Claim(pool="mail", template="mail", workers=8), Claim(pool="news", template="mail", workers=8)]
    assert share(claims, hosts, current=[row("a", 3)]) == {"mail": 3 + 1, "news": 3}


# --- hosts on which a template fails ---------------------------------------------------------------------------------


def test_a_host_on_which_the_template_fails_is_the_last_resort() -> None:
    hosts = [host("a", 16.0, failing=frozenset({"mail"})), host("b", 2.0)]
    assert by_host(place([target(2)], hosts, [])) == {"b": 2}
    assert by_host(place([target(3)], hosts, [])) == {"a": 1, "b": 2}


def test_what_fails_moves_to_where_it_may_live_as_far_as_there_is_room() -> None:
    hosts = [host("a", 16.0, failing=frozenset({"mail"})), host("b", 2.0)]
    assert by_host(place([target(3)], hosts, [row("a", 3)])) == {"a": 1, "b": 2}


def test_what_fails_everywhere_stays_where_it_is() -> None:
    hosts = [host("a", failing=frozenset({"mail"})), host("b", failing=frozenset({"mail"}))]
    assert by_host(place([target(3)], hosts, [row("a", 3)])) == {"a": 3}


def test_another_template_does_not_mind() -> None:
    hosts = [host("a", 16.0, failing=frozenset({"video"})), host("b", 2.0)]
    assert by_host(place([target(9)], hosts, [])) == {"a": 8, "b": 1}


# --- the profile -----------------------------------------------------------------------------------------------------


def test_a_profile_says_where_its_workers_may_be() -> None:
    body = {"queues": ["r/q"], "template": "t", "placement": {"labels": {"disk": "ssd"}, "spread": "zone"}}
    assert profile_from_mapping("p", body).placement == Placement(labels={"disk": "ssd"}, spread="zone")


@pytest.mark.parametrize(
    ("placement", "what"),
    [
        ({"labels": {"disk": 1}}, "expected text"),
        ({"labels": {"": "x"}}, "placement.labels"),
        ({"spread": ""}, "placement.spread"),
        ({"zone": "a"}, "unknown key 'zone'"),
    ],
)
def test_nonsense_of_places_is_refused_by_name(placement: dict[str, Any], what: str) -> None:
    with pytest.raises(Invalid, match=what):
        profile_from_mapping("p", {"queues": ["r/q"], "template": "t", "placement": placement})
