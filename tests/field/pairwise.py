"""A pairwise selection: a few rows in which any two values of different factors meet at least once."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

Row = Mapping[str, Any]
Pair = frozenset[tuple[str, Any]]


def rows_of(factors: Mapping[str, Sequence[Any]], *, is_possible: Callable[[Row], bool] = lambda _: True) -> list[Row]:
    """Every possible combination of one value per factor, in the order of the values."""
    rows = (dict(zip(factors, values, strict=True)) for values in product(*factors.values()))
    return [row for row in rows if is_possible(row)]


def pairwise(rows: Sequence[Row]) -> list[Row]:
    """Rows that together have each pair of values that ``rows`` have.

    Greedy: the next row is the one with the most new pairs; among equals, the one whose values were used least; then
    the first. The same rows give the same selection.
    """
    pairs = [pairs_of(row) for row in rows]
    missing = frozenset[Pair]().union(*pairs)
    selection: list[Row] = []
    uses: Counter[tuple[str, Any]] = Counter()
    while missing:
        number = max(
            range(len(rows)),
            key=lambda number: (len(pairs[number] & missing), -sum(uses[value] for value in rows[number].items())),
        )
        selection.append(rows[number])
        uses.update(rows[number].items())
        missing -= pairs[number]
    return selection


def pairs_of(row: Row) -> frozenset[Pair]:
    """Each two values of a row, with their factors."""
    return frozenset(frozenset(pair) for pair in combinations(row.items(), 2))
