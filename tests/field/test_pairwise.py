"""The selection is small, repeats, and leaves no pair of values out."""

from itertools import combinations

import pytest

from field.pairwise import pairs_of, pairwise, rows_of

FACTORS = {"broker": ["redis", "rabbit"], "pool": ["prefork", "threads", "solo"], "acks": ["early", "late"]}


def test_each_two_values_of_different_factors_meet() -> None:
    selection = pairwise(rows_of(FACTORS))
    met = {pair for row in selection for pair in pairs_of(row)}
    for one, other in combinations(FACTORS, 2):
        for first in FACTORS[one]:
            for second in FACTORS[other]:
                assert frozenset({(one, first), (other, second)}) in met


def test_it_is_far_smaller_than_all_rows_and_the_same_each_time() -> None:
    factors = {name: range(5) for name in "abcdef"}
    rows = rows_of(factors)
    selection = pairwise(rows)
    assert len(rows) == 15_625
    assert len(selection) <= 50  # 25 at least, for five times five pairs of two factors
    assert pairwise(rows) == selection


def test_what_is_impossible_is_in_no_row() -> None:
    rows = rows_of(FACTORS, is_possible=lambda row: row["pool"] != "solo" or row["broker"] == "redis")
    assert [row for row in pairwise(rows) if row["pool"] == "solo" and row["broker"] == "rabbit"] == []
    assert len(rows) == 10  # 12 without the two of solo on rabbit


@pytest.mark.parametrize("name", FACTORS)
def test_values_are_used_about_as_often(name: str) -> None:
    selection = pairwise(rows_of(FACTORS))
    uses = [sum(row[name] == value for row in selection) for value in FACTORS[name]]
    assert max(uses) - min(uses) <= 1
