"""`headway top`: what is unknown of a pool is not counted as none."""

import pytest

from headway.cli.operator.top import total


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], "no jobs"),
        ([2, 3], "5 jobs"),
        ([2, None], "2 jobs or more"),
        ([0, None], "no jobs or more"),
        ([None], "jobs unknown"),
    ],
)
def test_a_pool_whose_number_is_unknown_is_not_counted_as_none(numbers: list[int | None], text: str) -> None:
    assert total(numbers, "job") == text
