"""How guaranteed workers make way for one another."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from headway.scaling.placement.arrangement import Arrangement
from headway.scaling.placement.worker_placer import Placing
from scaling.claims import SIZES, claim, fleet
from scaling.floors import host, target_of, template


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
    searches: list[tuple[Any, ...]] = []
    displaced = Arrangement._displaced

    def counted(*args: Any) -> bool:
        searches.append(args)
        return displaced(*args)

    monkeypatch.setattr(Arrangement, "_displaced", counted)
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


def test_nobody_makes_way_for_one_where_its_template_fails() -> None:
    found, kinds = guaranteed({"a": 4, "b": 2}, [("a", "one")], failing={"a": "four"})
    assert not found.add(kinds["four"])
    assert found.by_host["a"][kinds["one"]] == 1


def test_who_would_come_back_to_the_same_host_makes_no_way() -> None:
    """A worker that takes no memory frees none: with nobody else in the way, the search ends there."""
    light, heavy = template("light", 1.0), template("heavy", 1.0, 10)
    hosts = [host("a", 4, 10, templates=(light, heavy))]
    placing = Placing([target_of(claim(name, name, 1)) for name in ("light", "heavy")], hosts, [])
    found = Arrangement(placing.bare_rooms())
    found.put("a", "heavy", 1)
    found.put("a", "light", 2)
    assert not found.add("heavy")
    assert found.by_host["a"] == {"heavy": 1, "light": 2}
    assert found.moves == 0
