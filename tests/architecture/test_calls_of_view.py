"""What may read all of a pool: the calls by which ``decide`` hands on its view grow no more numerous."""

from pathlib import Path

from calls_of_view import Tree, call_sites

# Lower both whenever fewer are left.
MOST_CALLS, MOST_MODULES = 27, 6

DECIDE = """
from headway.scaling import reading
from headway.scaling.reading import Reading, size_of
from headway.scaling.view import PoolView

def decide(view: PoolView, memory: int) -> int:
    pool, other = view, memory
    found = Reading(view=pool)
    return size_of(found.view) + reading.depth(other) + sum(map(reading.age, [1]))

def unreached(view: PoolView) -> int:
    return size_of(view)
"""
READING = """
from headway.scaling.view import PoolView

class Reading:
    view: PoolView

def size_of(view: PoolView) -> int:
    return depth(view.queues) + _workers(view)

def depth(queues: int) -> int:
    return len(queues)

def age(number: int) -> int:
    return number

def _workers(view: PoolView) -> int:
    return 1
"""


def test_no_more_calls_hand_on_the_view_than_before() -> None:
    sites = call_sites(Tree())
    assert len(sites) <= MOST_CALLS
    assert len({each.module for each in sites}) <= MOST_MODULES


def test_a_view_is_followed_through_other_names_attributes_and_modules(tmp_path: Path) -> None:
    package = tmp_path / "headway" / "scaling"
    package.mkdir(parents=True)
    (package / "decide.py").write_text(DECIDE)
    (package / "reading.py").write_text(READING)
    found = [(each.module.rpartition(".")[2], each.caller, each.text) for each in call_sites(Tree(tmp_path))]
    assert found == [
        ("decide", "decide", "Reading(view=pool)"),
        ("decide", "decide", "size_of(found.view)"),
        ("reading", "size_of", "_workers(view)"),
    ]
