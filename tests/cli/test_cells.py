"""How single values are written in a cell of a table."""

import pytest

from headway.cli.operator import describe
from headway.cli.terminal.cells import failed


@pytest.mark.parametrize(
    ("failed_jobs", "ended_jobs", "text"),
    [
        (0, 1030, "0 % of 1030"),
        (5, 1030, "<1 % of 1030"),
        (1, 100, "1 % of 100"),
        (29, 100, "29 % of 100"),  # a share of 0.29 times 100 is a little less as a float
        (1029, 1030, "99 % of 1030"),
        (1030, 1030, "100 % of 1030"),
    ],
)
def test_failures_are_none_only_where_no_job_failed(failed_jobs: int, ended_jobs: int, text: str) -> None:
    assert failed({"failed_jobs": failed_jobs, "ended_jobs": ended_jobs, "retried_jobs": 0}) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "unknown"), (0.0, "0.0 %"), (0.0004, "<0.1 %"), (0.001, "0.1 %"), (1.0, "100.0 %")]
)
def test_a_share_is_zero_only_where_there_is_none(value: float | None, text: str) -> None:
    assert describe._share(value) == text
