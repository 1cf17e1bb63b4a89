from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.scaling.placement import arrangement
from headway.scaling.placement.arrangement import Arrangement
from headway.scaling.placement.packing import Bin, Counts, Packed, packed
from headway.scaling.placement.worker_placer import Placing
from scaling.claims import SIZES, claim, fleet
from scaling.floors import target_of

SEARCH = settings(max_examples=2 * settings.default.max_examples)
STEPS_MAX = 500_000


def bins(lefts: list[tuple[int, ...]], costs: list[tuple[int, ...] | None]) -> list[Bin]:
    return [Bin(left=left, costs=costs) for left in lefts]


@pytest.mark.parametrize(
    ("lefts", "costs", "counts", "fills"),
    [
        ([], [], (), ()),
        ([(4,)], [(1,)], (0,), ((0,),)),
        ([(4,), (4,)], [(1,), (4,)], (4, 1), ((0, 1), (4, 0))),  # spread evenly, the small ones would be in the way
        ([(4,), (4,)], [(1,), (4,)], (5, 1), None),
        ([(5,), (5,)], [(3,), (2,)], (2, 2), ((1, 1), (1, 1))),  # first as full as can be: 2 + 2 leave 3 + 3 for 5
        ([(9,)], [None], (1,), None),
        ([(9, 1)], [(1, 1)], (2,), None),  # the second resource is short
        ([(-3,), (4,)], [(4,)], (1,), ((0,), (1,))),  # what is held there is more than there is
        ([(0,)], [(0,)], (7,), ((7,),)),  # what takes nothing fits
    ],
)
def test_what_fits_is_found(
    lefts: list[tuple[int, ...]],
    costs: list[tuple[int, ...] | None],
    counts: Counts,
    fills: tuple[Counts, ...] | None,
) -> None:
    found = packed(bins(lefts, costs), counts, steps_max=STEPS_MAX)
    assert found.steps <= STEPS_MAX
    if fills is None:
        assert found.fills is None
    else:
        assert found.fills is not None
        assert sorted(found.fills) == sorted(fills)


def test_a_search_that_ends_early_says_that_it_does_not_know() -> None:
    hard = packed(bins([(10,)] * 6, [(6,), (5,), (4,), (3,)]), (3, 3, 3, 4), steps_max=3)
    assert hard.fills is None
    assert hard.steps > 3


def test_a_dead_end_is_met_once() -> None:
    """Six equal hosts are filled in many orders, to the same rest: 795 steps say that nothing fits, else 5,041."""
    found = packed(bins([(12,)] * 6, [(5,), (8,), (3,), (6,)]), (3, 1, 6, 5), steps_max=2_000)
    assert found.fills is None
    assert found.steps <= 2_000


def guaranteed(
    cores: Mapping[str, float],
    there: Sequence[tuple[str, str]],
    *,
    moves_max: int | None = None,
    failing: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Arrangement, Mapping[str, str]]:
    """``there``, host and size of each worker, on hosts of so many ``cores``; and the kind of each size."""
    hosts = [replace(each, failing=frozenset({failing.get(each.host_id, "")})) for each in fleet(cores, [], {})]
    placing = Placing([target_of(claim(size.name, size.name, 1)) for size in SIZES], hosts, [])
    kinds = {part.target.pool: part.kind for part in placing.parts}
    found = Arrangement(placing.bare_rooms(), moves_max=moves_max)
    for host_id, size in there:
        found.put(host_id, kinds[size], 1)
    return found, kinds


def test_whoever_found_no_place_is_not_searched_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hosts have four cores left together, and neither has four: to search a second time finds as little."""
    searches = []

    def counted(*args: Any, **kwargs: Any) -> Packed:
        searches.append(args)
        return packed(*args, **kwargs)

    monkeypatch.setattr(arrangement, "packed", counted)
    found, kinds = guaranteed({"a": 5, "b": 5}, [("a", "three"), ("b", "three")])
    assert not found.add(kinds["four"])
    first = len(searches)
    assert first
    assert not found.add(kinds["four"])
    assert len(searches) == first


def test_where_few_may_move_the_largest_makes_way() -> None:
    """One of two cores moves, where one of one core would not be enough."""
    found, kinds = guaranteed({"a": 4, "b": 6}, [("b", "two"), ("b", "one")], moves_max=1)
    assert found.add(kinds["five"])
    assert found.moves == 1
    assert found.by_host["b"][kinds["one"]] == 1


def test_who_is_where_its_template_fails_stays_there_while_others_move() -> None:
    """No other may come to that host; this one is counted there."""
    found, kinds = guaranteed({"a": 7, "b": 4}, [("a", "four"), ("b", "two")], failing={"a": "four"})
    assert found.add(kinds["four"])
    assert (found.by_host["a"][kinds["four"]], found.by_host["b"][kinds["four"]]) == (1, 1)
    assert found.by_host["a"][kinds["two"]] == 1


COST = st.none() | st.tuples(st.integers(0, 6), st.integers(0, 4))


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Bin], Counts]:
    """Hosts that differ in what they have and in what they can run."""
    kinds = draw(st.integers(1, 4))
    counts = draw(st.lists(st.integers(0, 4), min_size=kinds, max_size=kinds))
    costs = draw(st.lists(COST, min_size=kinds, max_size=kinds))
    lacking = st.sampled_from([None, *range(kinds)])
    found = [
        Bin(left=left, costs=[None if kind == missing else cost for kind, cost in enumerate(costs)])
        for left, missing in draw(
            st.lists(st.tuples(st.tuples(st.integers(-1, 10), st.integers(0, 8)), lacking), min_size=1, max_size=5)
        )
    ]
    return found, tuple(counts)


@SEARCH
@given(problem=problems())
def test_it_finds_a_way_if_any_of_all_ways_fits(problem: tuple[list[Bin], Counts]) -> None:
    hosts, counts = problem
    found = packed(hosts, counts, steps_max=STEPS_MAX)
    assert found.steps <= STEPS_MAX
    assert (found.fills is not None) == is_possible(hosts, counts)
    if found.fills is not None:
        assert tuple(map(sum, zip(*found.fills, strict=True))) == counts
        assert all(does_hold(each, fill) for each, fill in zip(hosts, found.fills, strict=True))


def is_possible(hosts: list[Bin], counts: Counts) -> bool:
    left = {counts}
    for each in hosts:
        left = {
            tuple(before - workers for before, workers in zip(owed, fill, strict=True))
            for owed in left
            for fill in product(*(range(workers + 1) for workers in owed))
            if does_hold(each, fill)
        }
    return any(not any(owed) for owed in left)


def does_hold(each: Bin, fill: Counts) -> bool:
    taken = [(cost, workers) for cost, workers in zip(each.costs, fill, strict=True) if workers]
    if any(cost is None for cost, _ in taken):
        return False
    used = [sum(cost[at] * workers for cost, workers in taken if cost is not None) for at in range(2)]
    # A host with less than nothing left still holds what takes nothing.
    return all(amount <= have for amount, have in zip(used, each.left, strict=True) if amount)
