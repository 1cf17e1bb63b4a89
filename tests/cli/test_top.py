"""`headway top`: what is unknown of a pool is not counted as none."""

from typing import Any

import pytest

from headway.cli.operator.top import total, waiting_jobs
from headway.cli.terminal.cells import in_flight, longest_wait, waiting


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


def pool(*, is_wait_known: bool = True, **metrics: Any) -> dict[str, Any]:
    plain = {"waiting_jobs": 0, "reserved_jobs": None, "oldest_age_s": 0.0, "in_flight_jobs": 0}
    return {"metrics": {**plain, "in_flight_min_jobs": None, **metrics}, "is_wait_known": is_wait_known}


HELD = pool(is_wait_known=False, oldest_age_s=None, in_flight_jobs=None, in_flight_min_jobs=2)
RESERVED = pool(reserved_jobs=2, oldest_age_s=90.0, in_flight_jobs=6)


@pytest.mark.parametrize(
    ("pools", "text"),
    [
        ([pool()], "no jobs waiting"),
        ([pool(waiting_jobs=1), RESERVED], "3 jobs waiting"),
        ([pool(), HELD], "no jobs waiting to be taken, reserved jobs unknown"),
    ],
)
def test_jobs_that_workers_hold_and_have_not_begun_wait(pools: list[dict[str, Any]], text: str) -> None:
    assert waiting_jobs(pools) == text


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        (pool(), ("0", "0 s", "0")),
        (RESERVED, ("0 +2 reserved", "90 s", "6")),
        (HELD, ("0 +unknown reserved", "unknown", "at least 2")),
        (
            pool(is_wait_known=False, waiting_jobs=1, oldest_age_s=3.0, in_flight_jobs=None, in_flight_min_jobs=2),
            ("1 +unknown reserved", "at least 3 s", "at least 2"),
        ),
    ],
)
def test_a_row_says_what_is_unknown_of_held_jobs(row: dict[str, Any], cells: tuple[str, ...]) -> None:
    assert (waiting(row), longest_wait(row), in_flight(row["metrics"])) == cells
