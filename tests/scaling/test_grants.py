"""How what was shared out is placed among what is there: who makes way, who moves, and who is refused why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from headway.scaling.allocation.fair_share import Claim
from headway.scaling.allocation.grants import allotted
from headway.scaling.model import Assignment, Host, HostProblem, HostProblemKind, HostState, Template
from headway.scaling.placement.guarantee_moves import GUARANTEE_MOVES_MAX
from headway.scaling.placement.pool_parts import PoolTarget, placed_workers
from scaling.claims import SIZES, allot, claim, fleet, row
from scaling.floors import counts, host, target_of, template, worker

FULL = [row("small", "a", 4), row("small", "b", 4)]


def test_a_floor_clears_the_host_on_which_the_fewest_work() -> None:
    there = [*FULL, row("small", "c", 4)]
    hosts = fleet({"a": 4, "b": 4, "c": 4}, there, {("small", "a"): 4, ("small", "b"): 4, ("small", "c"): 2})
    rows = allot([claim("small", "one", 12), claim("large", "four", 1, 1)], hosts, there).rows
    assert counts(rows) == {("large", "c"): 1, ("small", "a"): 4, ("small", "b"): 4}


def test_on_one_host_a_floor_takes_the_place_of_who_is_idle_whatever_its_name() -> None:
    there = [row("aa", "a", 1), row("zz", "a", 1)]
    hosts = fleet({"a": 3, "b": 1}, there, {("aa", "a"): 1})
    rows = allot([claim("aa", "one", 1), claim("zz", "one", 1), claim("new", "two", 1, 1)], hosts, there).rows
    assert counts(rows) == {("aa", "a"): 1, ("new", "a"): 1, ("zz", "b"): 1}


def test_a_floor_leaves_idle_workers_where_they_are_not_in_its_way() -> None:
    """Of two small workers one is enough, the one without a job."""
    rows = [row("small", "a", 2), row("middle", "b", 2, "two")]
    hosts = fleet({"a": 3, "b": 4}, rows, {("small", "a"): 1, ("middle", "b"): 2})
    after = allot([claim("small", "one", 2), claim("middle", "two", 2, 2), claim("new", "two", 1, 1)], hosts, rows).rows
    assert counts(after) == {("small", "a"): 1, ("new", "a"): 1, ("middle", "b"): 2}


def test_a_wish_gets_a_place_that_idle_workers_give_whose_pool_must_give_some_anyway() -> None:
    hosts = fleet({"a": 4, "b": 4}, FULL, {})
    rows = allot([claim("small", "one", 8), claim("large", "four", 1)], hosts, FULL).rows
    assert counts(rows) == {("large", "a"): 1, ("small", "b"): 4}


def test_for_a_wish_no_busy_worker_moves() -> None:
    hosts = fleet({"a": 4, "b": 4}, FULL, {("small", "a"): 4, ("small", "b"): 4})
    allotment = allot([claim("small", "one", 8), claim("large", "four", 1)], hosts, FULL)
    assert allotment.rows == tuple(FULL)
    assert (allotment.short, allotment.in_pieces, allotment.refusals) == ({"large": 0}, {"large": 1}, {})


@pytest.mark.parametrize(
    ("busy", "where"),
    [
        (0, {("high", "a"): 1, ("low", "b"): 4}),
        (1, {("high", "b"): 1, ("low", "a"): 4}),  # the other host has idle ones only
        (2, {("low", "a"): 2, ("low", "b"): 2}),
    ],
)
def test_a_greater_priority_moves_idle_workers_only(busy: int, where: Mapping[tuple[str, str], int]) -> None:
    there = [row("low", "a", 2), row("low", "b", 2)]
    at_work = {("low", "a"): min(busy, 1), ("low", "b"): busy // 2}
    claims = [claim("low", "one", 4), claim("high", "four", 1, priority=200)]
    assert counts(allot(claims, fleet({"a": 4, "b": 4}, there, at_work), there).rows) == where


def test_guaranteed_workers_move_where_another_guarantee_has_no_other_place() -> None:
    there = [row("first", "b", 1, "four")]
    hosts = fleet({"a": 4, "b": 5}, there, {("first", "b"): 1})
    rows = allot([claim("first", "four", 1, 1), claim("second", "five", 1, 1)], hosts, there).rows
    assert counts(rows) == {("first", "a"): 1, ("second", "b"): 1}


def test_a_grant_takes_no_place_of_a_surplus_that_nobody_needs() -> None:
    """The guaranteed one of four cores needs the place of a surplus on its host, and of nobody else."""
    there = [row("first", "a", 1), row("first", "b", 3), row("other", "a", 2)]
    there += [row("middle", "a", 1, "three"), row("middle", "c", 1, "three")]
    claims = [claim("first", "one", 3, 1), claim("middle", "three", 1, 1), claim("other", "one", 2, 1)]
    hosts = fleet({"a": 6, "b": 3, "c": 3}, there, {})
    rows = allot([*claims, claim("large", "four", 1, 1)], hosts, there).rows
    assert counts(rows) == {("first", "b"): 3, ("large", "a"): 1, ("middle", "c"): 1, ("other", "a"): 2}


def test_a_guaranteed_worker_keeps_its_place_where_another_of_its_size_needs_one() -> None:
    """One of the first moves to the other, and its host is the new one's: not that of who has a place."""
    there = [row("first", "a", 1), row("first", "b", 1), row("middle", "c", 1, "three")]
    hosts = fleet({"a": 3, "b": 3, "c": 3}, there, {("first", "a"): 1, ("first", "b"): 1})
    claims = [claim("first", "one", 2, 2), claim("middle", "three", 1, 1), claim("new", "three", 1, 1)]
    rows = allot(claims, hosts, there).rows
    assert counts(rows) == {("first", "b"): 2, ("middle", "c"): 1, ("new", "a"): 1}


def test_a_guaranteed_worker_that_moves_is_an_idle_one_whether_base_or_burst() -> None:
    """Of a base and a burst worker on one host the burst one has no job."""
    there = [Assignment(pool="pair", host_id="b", template="one", base_workers=1, burst_workers=1)]
    at_work = [
        replace(worker(there[0], is_busy=not is_burst), worker_id=str(is_burst), is_burst=is_burst)
        for is_burst in (False, True)
    ]
    hosts = [host("a", 1, templates=SIZES), replace(host("b", 6, templates=SIZES), workers=tuple(at_work))]
    claims = [claim("pair", "one", 2, 2), claim("large", "five", 1, 1)]
    targets = [replace(target_of(claims[0]), burst_workers=1), target_of(claims[1])]
    rows = {(row.pool, row.host_id): row for row in allotted(targets, hosts, there, claims=lambda: claims).rows}
    assert rows["large", "b"].base_workers == 1
    assert (rows["pair", "b"].base_workers, rows["pair", "b"].burst_workers) == (1, 0)
    assert (rows["pair", "a"].base_workers, rows["pair", "a"].burst_workers) == (0, 1)


def test_a_guarantee_gets_a_place_that_no_few_hosts_have_among_themselves() -> None:
    """Each of three takes the place of the next, on hosts that are full; others have room, but not for them."""
    sizes = {size: template(f"t{size}", size) for size in (2, 3, 4, 5)}
    runs = {"a": (5, 4), "b": (4, 3), "c": (3, 2), "d": (2,)}
    hosts = [host(name, max(each), templates=[sizes[size] for size in each]) for name, each in runs.items()]
    hosts += [host(f"e{number}", 9, templates=SIZES) for number in range(6)]
    there = [row(f"of-{size}", name, 1, f"t{size}") for size, name in ((4, "a"), (3, "b"), (2, "c"))]
    claims = [claim(f"of-{size}", f"t{size}", 1, 1) for size in sizes]
    rows = allot(claims, hosts, there).rows
    assert counts(rows) == {("of-5", "a"): 1, ("of-4", "b"): 1, ("of-3", "c"): 1, ("of-2", "d"): 1}


def test_no_more_guaranteed_workers_move_at_once_than_are_bounded_and_the_next_evaluation_goes_on() -> None:
    number = GUARANTEE_MOVES_MAX + 10
    there = [row("first", f"b{index:02}", 1, "four") for index in range(number)]
    hosts = fleet({f"{name}{index:02}": size for name, size in (("a", 4), ("b", 5)) for index in range(number)}, [], {})
    claims = [claim("first", "four", number, number), claim("second", "five", number, number)]
    rows: Sequence[Assignment] = there
    placed = []
    for _ in range(3):
        allotment = allot(claims, hosts, rows)
        placed.append(placed_workers(allotment.rows)["second"])
        rows = allotment.rows
        if placed[-1] < number:
            assert allotment.refusals == {
                "second": "there is a place, but it takes more moves than one evaluation makes: the next goes on"
            }
    assert placed == [GUARANTEE_MOVES_MAX, number, number]
    assert placed_workers(rows)["first"] == number


SMALL, LARGE, MIDDLE = (template(name, cores) for name, cores in [("small", 0.25), ("large", 32), ("middle", 8)])


def full_of_small(beside: Template) -> tuple[list[Host], list[Assignment]]:
    """Two hosts of 64 cores: the first is full of small guaranteed workers, and it alone can run ``beside``."""
    there = [row("small", "a", 256, "small")]
    return [host("a", 64, templates=[SMALL, beside]), host("b", 64, templates=[SMALL])], there


def test_floors_that_take_too_many_moves_together_get_their_places_one_after_the_other() -> None:
    """Each of two takes the place of 32 small ones."""
    hosts, rows = full_of_small(MIDDLE)
    claims = [claim("small", "small", 256, 256), claim("middle", "middle", 2, 2)]
    first = allot(claims, hosts, rows)
    assert counts(first.rows) == {("small", "a"): 224, ("small", "b"): 32, ("middle", "a"): 1}
    assert first.refusals == {
        "middle": "there is a place, but it takes more moves than one evaluation makes: the next goes on"
    }
    then = allot(claims, hosts, first.rows)
    assert counts(then.rows) == {("small", "a"): 192, ("small", "b"): 64, ("middle", "a"): 2}
    assert then.refusals == {}


def test_a_floor_whose_place_takes_too_many_moves_at_once_says_so_and_what_would_help() -> None:
    """128 small ones would have to move for one large one: no evaluation would go on."""
    hosts, rows = full_of_small(LARGE)
    allotment = allot([claim("small", "small", 256, 256), claim("large", "large", 1, 1)], hosts, rows)
    assert allotment.rows == tuple(rows)
    assert allotment.refusals == {
        "large": "there is a place only if more guaranteed workers move at once than one evaluation moves; "
        "add a host of 32 cores, or lower what small is guaranteed"
    }


def test_a_surplus_leaves_open_hosts_where_a_floor_needs_the_room() -> None:
    """Nobody else could have the place on the cordoned host."""
    there = [row("small", "a", 2), row("small", "b", 2)]
    hosts = fleet({"a": 2, "b": 2}, there, {("small", "b"): 2})
    hosts[0] = replace(hosts[0], state=HostState.CORDONED)
    claims = [claim("small", "one", 2, 2), claim("other", "two", 1, 1)]
    assert counts(allot(claims, hosts, there).rows) == {("small", "a"): 2, ("other", "b"): 1}


def test_a_host_that_has_less_than_it_runs_lets_idle_workers_go_first() -> None:
    there = [row("idle", "a", 2), row("works", "a", 2)]
    hosts = fleet({"a": 3, "b": 4}, there, {("works", "a"): 2})
    rows = allot([claim("idle", "one", 2), claim("works", "one", 2)], hosts, there).rows
    assert counts(rows) == {("idle", "a"): 1, ("idle", "b"): 1, ("works", "a"): 2}


def test_what_there_is_no_room_for_is_asked_of_claims_and_only_then() -> None:
    targets = [PoolTarget(pool="small", template="one", workers=4)]
    allotment = allotted(targets, [host("a", 4, templates=SIZES)], [], claims=nobody_short)
    assert placed_workers(allotment.rows) == {"small": 4}


def nobody_short() -> Sequence[Claim]:
    pytest.fail("nobody is short")


SSD = {"disk": "ssd"}


@pytest.mark.parametrize(
    ("cores", "targets"),
    [
        ((2, 2), [("a", "one", 2), ("b", "two", 1)]),  # spread, the small ones leave one core on each
        ((10, 10), [("a", "five", 2), ("b", "two", 5)]),  # spread, the large ones leave five cores on each: 2 + 2
    ],
)
def test_where_there_is_room_for_all_no_size_is_in_the_way_of_another(
    cores: Sequence[int], targets: Sequence[tuple[str, str, int]]
) -> None:
    wanted = [PoolTarget(pool=pool, template=size, workers=workers) for pool, size, workers in targets]
    hosts = [host(f"h{number}", size, templates=SIZES) for number, size in enumerate(cores)]
    assert allotted(wanted, hosts, [], claims=nobody_short).short == {}


def test_who_may_be_anywhere_leaves_the_few_hosts_of_another_to_it() -> None:
    wanted = [
        PoolTarget(pool="any", template="one", workers=4),
        PoolTarget(pool="ssd", template="one", workers=4, labels=SSD),
    ]
    hosts = [replace(host("a", 4, templates=SIZES), labels=SSD), host("b", 4, templates=SIZES)]
    assert counts(allotted(wanted, hosts, [], claims=nobody_short).rows) == {("any", "b"): 4, ("ssd", "a"): 4}


def test_what_fits_without_a_move_moves_nobody() -> None:
    """Two small ones and a large one come; the busy one that is there stays, and so does the idle one."""
    there = [row("there", "a", 1), row("there", "b", 1)]
    hosts = fleet({"a": 3, "b": 3}, there, {("there", "a"): 1})
    targets = [
        target_of(claim("small", "one", 2)),
        target_of(claim("there", "one", 2)),
        target_of(claim("z", "two", 1)),
    ]
    after = counts(allotted(targets, hosts, there, claims=nobody_short).rows)
    assert (after["there", "a"], after["there", "b"]) == (1, 1)
    assert sum(after.values()) == 5


def test_where_room_is_short_small_workers_leave_the_large_ones_their_share() -> None:
    """Both have room for what they are granted, though not for what a third wants."""
    hosts = [host(name, 2, templates=SIZES) for name in "ab"]
    allotment = allot([claim("a", "one", 2), claim("b", "two", 1), claim("c", "five", 1)], hosts, [])
    assert (allotment.short, allotment.in_pieces) == ({"c": 0}, {})


def test_a_host_that_is_large_enough_but_for_what_is_guaranteed_there_is_not_called_too_small() -> None:
    there = [row("small", "a", 2)]
    claims = [claim("large", "four", 1, 1, priority=1), claim("small", "one", 2, 2)]
    assert allot(claims, fleet({"a": 4}, there, {}), there).refusals == {
        "large": "beside what is guaranteed no host has 4 cores left at once (most: 2 cores on host a); "
        "add a host of 4 cores, or lower what small is guaranteed"
    }


GPU = template("gpu", 1.0, 3 * 2**30, gpus=2)
DISK_FULL = (HostProblem(kind=HostProblemKind.STATE_FOLDER, error_number=28),)


@pytest.mark.parametrize(
    ("hosts", "reason"),
    [
        (
            [host("a", 1, 4 * 2**30, templates=[GPU])],
            "one takes 2 GPUs, and no host is that large (largest: 0 GPUs on host a); add a host of 2 GPUs",
        ),
        (
            [host("a", 0.5, 2**29, gpus=4, templates=[GPU])],
            (
                "one takes 1 core and 3 GiB of memory, and no host is that large "
                "(largest: 0.5 cores and 512 MiB of memory on host a); add a host of 1 core and 3 GiB of memory"
            ),
        ),
        (
            [host("a", 9, 2**40, gpus=3, templates=[GPU]), host("b", 9, 2**40, gpus=2, templates=[GPU])],
            (
                "beside what is guaranteed no host has 2 GPUs left at once (most: 1 GPU on host a); "
                "add a host of 2 GPUs, or lower what other is guaranteed"
            ),
        ),
        (
            [host("a", 9, 2**40, gpus=4, templates=[GPU], state=HostState.DRAINING), host("b", 1, templates=[])],
            (
                "every host with template 'gpu' is cordoned, draining or short of memory (a); "
                "uncordon one or add a host of 1 core and 3 GiB of memory and 2 GPUs"
            ),
        ),
        (
            [replace(host("a", 9, 2**40, gpus=4, templates=[GPU]), problems=DISK_FULL)],
            (
                "every host with template 'gpu' cannot write to its state or log folder (a); "
                "make room on one or add a host of 1 core and 3 GiB of memory and 2 GPUs"
            ),
        ),
        (
            [
                replace(host("a", 9, 2**40, gpus=4, templates=[GPU]), problems=DISK_FULL),
                host("b", 9, 2**40, gpus=4, templates=[GPU], state=HostState.CORDONED),
            ],
            (
                "every host with template 'gpu' is cordoned, draining or short of memory, or cannot write to its state "
                "or log folder (a, b); uncordon or mend one or add a host of 1 core and 3 GiB of memory and 2 GPUs"
            ),
        ),
    ],
)
def test_a_refusal_names_what_is_short_and_what_would_help(hosts: Sequence[Host], reason: str) -> None:
    claims = [claim("other", "gpu", 2, 2, priority=200), claim("mine", "gpu", 1, 1)]
    assert allot(claims, hosts, []).refusals["mine"] == reason
