"""Guarantees of workers of several sizes: all have their places within one host of the fewest, and few move for it.

Laws 6, 7 and 9 where room is short, against a plain search of all ways to place what is guaranteed.
"""

from hypothesis import given, settings

from headway.scaling.model import HostState
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import placed_workers
from scaling.claims import share
from scaling.floors import (
    Drawn,
    busy_workers,
    counts,
    do_floors_fit,
    drawn,
    filled,
    followed,
    with_one_more_host,
)

SEARCH = settings(max_examples=2 * settings.default.max_examples)
"""Two thousand examples and more where breaches are searched for."""


@SEARCH
@given(case=drawn())
def test_floors_of_mixed_sizes_are_placed_within_one_host_of_an_exact_search(case: Drawn) -> None:
    """Wherever all have a place, they are given it, or are with one host more of the largest size."""
    if do_floors_fit(case):
        assert not lacking(case) or not lacking(with_one_more_host(case))


@SEARCH
@given(case=filled())
def test_floors_that_fill_their_hosts_are_placed_within_one_host(case: Drawn) -> None:
    assert not lacking(case) or not lacking(with_one_more_host(case))


@SEARCH
@given(case=drawn())
def test_a_floor_that_has_no_place_is_refused_by_name(case: Drawn) -> None:
    assert case.allotted().refusals.keys() == lacking(case).keys()


def lacking(case: Drawn) -> dict[str, int]:
    """Pool -> guaranteed workers without a place."""
    got = placed_workers(case.allotted().rows)
    return {pool: floor - got.get(pool, 0) for pool, floor in case.floors.items() if got.get(pool, 0) < floor}


@SEARCH
@given(case=drawn())
def test_nothing_exceeds_capacity_and_a_cordoned_host_gets_nothing_new(case: Drawn) -> None:
    rows = case.allotted().rows
    before = counts(case.current)
    cordoned = {each.host_id for each in case.hosts if each.state is not HostState.SERVING}
    assert all(min(room.left) >= 0 for room in HostCapacities(case.hosts, held=rows).by_host.values())
    assert all(row.workers <= before.get((row.pool, row.host_id), 0) for row in rows if row.host_id in cordoned)


@SEARCH
@given(case=drawn())
def test_no_worker_is_lost_or_invented_and_nothing_is_left_that_is_wanted_and_fits(case: Drawn) -> None:
    allotment = case.allotted()
    got, left = placed_workers(allotment.rows), HostCapacities(case.hosts, held=allotment.rows)
    assert len(counts(allotment.rows)) == len(allotment.rows)
    for claim in case.claims:
        assert got.get(claim.pool, 0) == allotment.short.get(claim.pool, claim.workers) <= claim.workers
        if claim.pool in allotment.short:
            assert not left.capacity(left.kind(claim.template, claim.labels))


@SEARCH
@given(case=drawn())
def test_allotting_again_moves_nothing(case: Drawn) -> None:
    first = case.allotted()
    assert followed(case, first.rows).allotted() == first


@SEARCH
@given(case=drawn())
def test_who_moves_could_not_have_stayed(case: Drawn) -> None:
    rows = case.allotted().rows
    before, after, left = counts(case.current), counts(rows), HostCapacities(case.hosts, held=rows)
    for claim in case.claims:
        change = {
            room: after.get((claim.pool, room.host_id), 0) - before.get((claim.pool, room.host_id), 0)
            for room in left.by_host.values()
            if left.is_open(room)
        }
        if any(more > 0 for more in change.values()):
            kind = left.kind(claim.template, claim.labels)
            assert not any(more < 0 and room.fitting(kind) for room, more in change.items())


@SEARCH
@given(case=drawn())
def test_a_busy_worker_is_asked_to_leave_only_by_its_pools_share_or_where_a_floor_needs_the_place(case: Drawn) -> None:
    """By its share: its pool is granted fewer than it has. Nobody moves a busy worker for a wish."""
    before = placed_workers(case.current)
    if any(before.get(pool, 0) < floor for pool, floor in case.floors.items()):
        return
    after, granted = counts(case.allotted().rows), share(case.claims, case.hosts, current=case.current)
    for pool, workers in granted.items():
        gone = sum(
            max(0, busy - after.get(where, 0)) for where, busy in busy_workers(case.hosts).items() if where[0] == pool
        )
        assert gone <= max(0, before.get(pool, 0) - workers)
