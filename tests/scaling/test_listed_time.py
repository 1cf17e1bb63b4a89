"""Worker-hours by the workers that brokers list, and what is not known of them."""

import pytest

from headway.scaling.metrics.reports.listed_time import ListedSpan, ListedTime, listed_time


def span(from_s: float, until_s: float, workers: int) -> ListedSpan:
    return ListedSpan(from_s=from_s, until_s=until_s, workers=workers)


def took(worker_s: float, *, known_s: float, unknown_s: float) -> ListedTime:
    return ListedTime(worker_s=worker_s, known_s=known_s, unknown_s=unknown_s)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ((), took(0, known_s=0, unknown_s=100)),
        ((span(0, 40, 3), span(40, 100, 2)), took(240, known_s=100, unknown_s=0)),
        ((span(0, 40, 3), span(70, 100, 2)), took(180, known_s=70, unknown_s=30)),
        ((span(-50, 10, 4), span(90, 500, 1)), took(50, known_s=20, unknown_s=80)),
        ((span(0, 100, 0),), took(0, known_s=100, unknown_s=0)),
        ((span(-20, 0, 9), span(100, 120, 9)), took(0, known_s=0, unknown_s=100)),
        ((span(40, 100, 2), span(0, 40, 3)), took(240, known_s=100, unknown_s=0)),
    ],
    ids=["never listed", "whole", "a gap", "cut at both ends", "listed as none", "all outside", "in any order"],
)
def test_a_gap_is_not_known_and_never_none(spans: tuple[ListedSpan, ...], expected: ListedTime) -> None:
    assert listed_time(("a",), {"a": spans}, from_s=0, until_s=100) == expected


def test_of_several_queues_the_greatest_count_is_the_pools_where_all_are_known() -> None:
    spans = {"a": (span(0, 60, 2), span(60, 100, 5)), "b": (span(0, 30, 3), span(50, 100, 3))}
    found = listed_time(("a", "b"), spans, from_s=0, until_s=100)
    assert found == took(30 * 3 + 10 * 3 + 40 * 5, known_s=80, unknown_s=20)
    assert found.mean_workers == pytest.approx(4.0)
    assert listed_time(("a", "b", "never"), spans, from_s=0, until_s=100).known_s == 0


def test_a_stretch_of_no_length_holds_nothing() -> None:
    found = listed_time(("a",), {"a": (span(0, 100, 2),)}, from_s=50, until_s=50)
    assert found == took(0, known_s=0, unknown_s=0)
    assert found.mean_workers is None
