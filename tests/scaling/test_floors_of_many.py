"""Guarantees of mixed sizes beyond what all ways are tried for: few move at once, and who has no place is named."""

from collections.abc import Iterator

import pytest
from hypothesis import given

from headway.scaling.allocation import grant_placement
from headway.scaling.allocation.refusals import MORE_MOVES
from headway.scaling.model import Assignment
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import placed_workers
from scaling.floors import Drawn, counts, drawn, followed

MOVES_MAX = 2
"""Of fifty as few as these installations come up against."""
EVALUATIONS_MAX = 60
MANY = drawn(hosts_max=14, claims_max=10, floors_max=60)


@pytest.fixture(autouse=True, scope="module")
def few_moves() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grant_placement, "GUARANTEE_MOVES_MAX", MOVES_MAX)
        yield


def moved(case: Drawn, rows: tuple[Assignment, ...]) -> int:
    """Workers on another host than before, of pools that want no more than they are guaranteed."""
    before, after = counts(case.current), counts(rows)
    had, has = placed_workers(case.current), placed_workers(rows)
    moves = 0
    for claim in case.claims:
        if claim.workers == claim.guaranteed_workers:
            came = sum(
                max(0, workers - before.get(where, 0)) for where, workers in after.items() if where[0] == claim.pool
            )
            moves += came - max(0, has.get(claim.pool, 0) - had.get(claim.pool, 0))
    return moves


@given(case=MANY)
def test_a_floor_has_its_place_or_a_reason_and_few_move_for_it(case: Drawn) -> None:
    allotment = case.allotted()
    got = placed_workers(allotment.rows)
    assert allotment.refusals.keys() == {pool for pool, floor in case.floors.items() if got.get(pool, 0) < floor}
    assert all(min(room.left) >= 0 for room in HostCapacities(case.hosts, held=allotment.rows).by_host.values())
    assert moved(case, allotment.rows) <= MOVES_MAX


@given(case=MANY)
def test_the_next_evaluation_goes_on_where_it_is_said_to_and_all_come_to_rest(case: Drawn) -> None:
    for _ in range(EVALUATIONS_MAX):
        allotment = case.allotted()
        if allotment.rows == case.current:
            break
        case = followed(case, allotment.rows)
    assert allotment.rows == case.current
    assert MORE_MOVES not in allotment.refusals.values()
