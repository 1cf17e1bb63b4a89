"""Of those who were granted something: who gets which place, who stays and who comes back."""

from dataclasses import replace

from headway.scaling.allocation.fair_share import shared
from headway.scaling.allocation.grants import allotted
from headway.scaling.allocation.refusals import TOO_MANY_MOVES
from headway.scaling.placement.pool_parts import PoolTarget
from scaling.claims import SIZES, allot, claim, fleet, row
from scaling.floors import counts, host, template

SMALL, ONE, LARGE = template("small", 0.25), template("t1", 1), template("large", 32)


def test_guarantees_that_are_in_place_stay_though_no_search_would_find_a_place_for_all() -> None:
    """Seven hosts are full to the last core with workers of three sizes: more ways than are tried.

    The search leaves one of seven cores without a place, and grants a core of what is left to another pool.
    """
    sizes = {size: template(f"t{size}", size) for size in (4, 5, 7)}
    full = [(4, 5), (4, 5, 5, 7), (5, 5), (4, 7), (4, 7), (7, 7), (4, 4, 4, 7)]
    hosts = [host(f"h{number}", sum(each), templates=[*sizes.values(), ONE]) for number, each in enumerate(full)]
    there = [
        row(f"of-{size}", f"h{number}", each.count(size), f"t{size}")
        for number, each in enumerate(full)
        for size in sorted(set(each))
    ]
    totals = {size: sum(each.count(size) for each in full) for size in sizes}
    claims = [claim(f"of-{size}", f"t{size}", workers, workers) for size, workers in totals.items()]
    claims.append(claim("more", "t1", 1))
    shares = shared(claims, hosts)
    assert (shares.is_guaranteed, shares.granted["more"], shares.guaranteed["of-7"]) == (False, 1, 4)  # of 5
    allotment = allot(claims, hosts, there)
    assert counts(allotment.rows) == counts(there)
    assert (allotment.short, allotment.refusals) == ({"more": 0}, {})


def test_of_two_floors_that_of_greater_priority_has_the_place_for_which_nobody_moves() -> None:
    """For the other place 128 small guaranteed workers would have to move, more than one evaluation moves."""
    hosts = [
        host("a", 64, templates=[SMALL, LARGE]),
        host("b", 64, templates=[SMALL]),
        host("c", 32, templates=[LARGE]),
    ]
    there = [row("small", "a", 256, "small")]
    claims = [
        claim("high", "large", 1, 1, priority=200),
        claim("low", "large", 1, 1),
        claim("small", "small", 256, 256),
    ]
    allotment = allot(claims, hosts, there)
    assert counts(allotment.rows) == {("small", "a"): 256, ("high", "c"): 1}
    assert allotment.refusals.keys() == {"low"}
    assert TOO_MANY_MOVES in allotment.refusals["low"]


def test_burst_workers_come_out_of_what_their_pool_was_granted() -> None:
    """Each of two is granted two: the first has no third and fourth, because they would be burst workers."""
    targets = [
        PoolTarget(pool="first", template="one", workers=4, burst_workers=2),
        PoolTarget(pool="second", template="one", workers=4),
    ]
    claims = [claim("first", "one", 4), claim("second", "one", 4)]
    (first, second) = allotted(targets, [host("a", 4, templates=SIZES)], [], claims=lambda: claims).rows
    assert (first.base_workers, first.burst_workers, second.workers) == (2, 0, 2)


def test_who_left_for_a_place_that_nobody_took_is_back() -> None:
    """Of four small ones three are wanted. The one that fails on b leaves; nobody else has to, for what never fits."""
    there = [row("small", "a", 1), row("small", "b", 1), row("small", "c", 2)]
    hosts = fleet({"a": 2, "b": 2, "c": 2}, there, {})
    hosts[1] = replace(hosts[1], failing=frozenset({"one"}))
    rows = allot([claim("large", "four", 1), claim("small", "one", 3)], hosts, there).rows
    assert counts(rows) == {("small", "a"): 1, ("small", "c"): 2}


def test_what_nobody_needs_the_place_of_stays_beyond_its_grant() -> None:
    """The large one was granted b, where a worker is busy. The new small one is put beside those that are there."""
    there = [row("before", "a", 1, "two"), row("before", "b", 1, "two")]
    hosts = fleet({"a": 2, "b": 3}, there, {("before", "b"): 1})
    claims = [claim("large", "three", 1, priority=200), claim("new", "one", 1), claim("before", "two", 2)]
    allotment = allot(claims, hosts, there)
    assert counts(allotment.rows) == {("before", "a"): 1, ("before", "b"): 1, ("new", "b"): 1}
    assert allotment.in_pieces == {"large": 1}


def test_what_is_left_in_pieces_goes_to_who_wants_more_than_the_grant() -> None:
    """The second large one was granted a place on b, where a small one is busy: the small pool gets what is left."""
    there = [row("small", "b", 1)]
    hosts = fleet({"a": 4, "b": 3}, there, {("small", "b"): 1})
    allotment = allot([claim("large", "three", 2, priority=200), claim("small", "one", 2)], hosts, there)
    assert counts(allotment.rows) == {("large", "a"): 1, ("small", "b"): 2}
    assert allotment.in_pieces == {"large": 1}


def test_a_grant_that_finds_its_place_at_the_second_pass_has_it() -> None:
    """The middle pool has a third worker at first, where the second large one fits once that has left again."""
    there = [row("large", "a", 1, "four")]
    hosts = fleet({"a": 6, "b": 6}, there, {})
    allotment = allot([claim("large", "four", 2), claim("middle", "two", 3, 2)], hosts, there)
    assert counts(allotment.rows) == {
        ("large", "a"): 1,
        ("large", "b"): 1,
        ("middle", "a"): 1,
        ("middle", "b"): 1,
    }
    assert allotment.short == {"middle": 2}


def test_one_place_that_was_freed_is_given_back_once() -> None:
    """The large ones have their shares, one on the host that idle small ones left in exchange for what was freed."""
    there = [row("small", "b", 3), row("small", "c", 1)]
    hosts = fleet({"a": 2, "b": 4, "c": 3}, there, {})
    claims = [claim("small", "one", 5), claim("x", "three", 1), claim("y", "three", 1)]
    allotment = allot(claims, hosts, there)
    assert counts(allotment.rows) == {("small", "a"): 2, ("small", "b"): 1, ("x", "c"): 1, ("y", "b"): 1}
    assert allotment.in_pieces == {}
