"""What a pattern of queue names stands for, and which pool owns what several of them match."""

from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import Invalid
from headway.scaling.model import Objective
from headway.scaling.profile import Profile
from headway.scaling.profile_keys.pattern_resolution import MATCHED_QUEUES_MAX, OwnedQueue, WrittenQueues, resolve
from headway.scaling.profile_keys.queue_patterns import (
    PATTERNS_MAX,
    conflicts,
    do_overlap,
    is_match,
    is_pattern,
    is_within,
    narrowness,
    refuse_unsound_patterns,
)

SEARCH = settings(max_examples=max(60, 2 * settings.default.max_examples))
"""2,000 examples under the profile ``searching``."""
SHORT = st.text(alphabet="ab*", min_size=1, max_size=4)
NAMES = ["".join(letters) for size in range(9) for letters in product("ab", repeat=size)]
"""Long enough for any two of ``SHORT`` that overlap to share one."""
QUEUES = st.sampled_from([f"{connection}/{name}" for connection in ("r", "s") for name in NAMES if 0 < len(name) < 4])
WRITTEN = st.builds("{}/{}".format, st.sampled_from(["r", "s"]), SHORT)
POOLS = st.dictionaries(
    st.sampled_from(["one", "two", "three"]), st.lists(WRITTEN, min_size=1, max_size=4, unique=True)
).map(lambda drawn: [WrittenQueues(pool=pool, queues=tuple(queues)) for pool, queues in drawn.items()])


@pytest.mark.parametrize(
    ("pattern", "matched", "others"),
    [
        ("shop/tenant-*", ["shop/tenant-1", "shop/tenant-", "shop/tenant-a/b"], ["shop/tenant", "shop2/tenant-1"]),
        ("shop/*", ["shop/a"], ["shops/a"]),
        ("shop/*-mail", ["shop/a-mail", "shop/-mail"], ["shop/a-mails"]),
        ("shop/a*b*c", ["shop/abc", "shop/a1b2b3c"], ["shop/acb"]),
        ("shop/a*a", ["shop/aa"], ["shop/a"]),  # one letter is not both ends
        ("shop/[ab]?", ["shop/[ab]?"], ["shop/a1"]),  # only the star is special
    ],
)
def test_a_star_stands_for_any_characters(pattern: str, matched: list[str], others: list[str]) -> None:
    assert all(is_match(pattern, name) for name in matched)
    assert not any(is_match(pattern, name) for name in others)


@SEARCH
@given(SHORT, st.sampled_from(NAMES))
def test_a_pattern_matches_as_in_a_shell(pattern: str, name: str) -> None:
    assert is_match(pattern, name) == fnmatchcase(name, pattern)


def test_a_long_name_is_compared_in_one_pass() -> None:
    """A pattern that would take a regular expression ages."""
    assert not is_match("a*" * 8 + "b", "a" * 200_000)


@SEARCH
@given(SHORT, SHORT)
def test_patterns_overlap_where_one_name_is_of_both(one: str, other: str) -> None:
    is_shared = any(is_match(one, name) and is_match(other, name) for name in NAMES)
    assert do_overlap(one, other) == is_shared == do_overlap(other, one)


@SEARCH
@given(SHORT, SHORT, st.sampled_from(NAMES))
def test_a_pattern_within_another_matches_nothing_else_and_is_narrower(inner: str, outer: str, name: str) -> None:
    if is_within(inner, outer):
        assert is_match(outer, name) or not is_match(inner, name)
        assert is_within(outer, inner) or narrowness(inner) < narrowness(outer)


def written(**queues: list[str]) -> list[WrittenQueues]:
    return [WrittenQueues(pool=pool, queues=tuple(names)) for pool, names in queues.items()]


def test_priority_goes_by_the_order_of_patterns_and_within_one_by_name() -> None:
    pools = written(mail=["r/urgent-*", "r/first", "r/tenant-*"])
    found = resolve(pools, ["r/tenant-b", "r/urgent-2", "r/tenant-a", "r/urgent-10", "r/other", "r/first"])
    assert found.queues_of("mail") == ("r/urgent-10", "r/urgent-2", "r/first", "r/tenant-a", "r/tenant-b")
    assert {each.queue: each.pattern for each in found.owned}["r/tenant-a"] == "r/tenant-*"
    assert {each.queue: each.pattern for each in found.owned}["r/first"] is None


def test_a_queue_that_a_pool_names_is_matched_by_no_pattern_of_another() -> None:
    found = resolve(written(all=["r/tenant-*"], vip=["r/tenant-vip"]), ["r/tenant-vip", "r/tenant-1"])
    assert (found.queues_of("all"), found.queues_of("vip")) == (("r/tenant-1",), ("r/tenant-vip",))


def test_a_named_queue_is_owned_before_anybody_has_seen_it() -> None:
    assert resolve(written(vip=["r/vip"]), []).owned == (OwnedQueue(queue="r/vip", pool="vip", rank=0),)


def test_the_narrower_pattern_owns_what_both_match() -> None:
    found = resolve(written(all=["r/*"], big=["r/big-*"]), ["r/big-1", "r/1"])
    assert (found.queues_of("all"), found.queues_of("big")) == (("r/1",), ("r/big-1",))


def test_within_a_pool_the_first_pattern_ranks_a_queue_though_it_is_the_wider_one() -> None:
    found = resolve(written(all=["r/*", "r/big-*"]), ["r/big-1"])
    assert found.owned == (OwnedQueue(queue="r/big-1", pool="all", rank=0, pattern="r/*"),)


def test_a_name_with_a_star_that_an_earlier_version_stored_stays_a_name() -> None:
    pool = WrittenQueues(pool="odd", queues=("r/*",), literal=frozenset({"r/*"}))
    assert not pool.has_patterns
    assert resolve([pool], ["r/a"]).queues_of("odd") == ("r/*",)


def test_what_is_beyond_the_most_of_a_pool_is_named_and_what_it_served_stays() -> None:
    pools = written(all=["r/*"])
    found = resolve(pools, ["r/a", "r/b", "r/c", "r/d"], before={"r/c": "all", "r/d": "all"}, queues_max=3)
    assert found.queues_of("all") == ("r/a", "r/c", "r/d")
    assert found.unserved == {"all": ("r/b",)}


def test_a_pool_takes_two_thousand_beside_those_that_it_names() -> None:
    found = resolve(written(all=["r/named", "r/*"]), [f"r/{number:04d}" for number in range(MATCHED_QUEUES_MAX + 2)])
    assert len(found.queues_of("all")) == MATCHED_QUEUES_MAX + 1
    assert found.unserved == {"all": ("r/2000", "r/2001")}


@SEARCH
@given(POOLS, st.lists(QUEUES, unique=True), st.randoms(use_true_random=False), st.integers(0, 3))
def test_no_order_of_pools_or_discoveries_changes_an_owner(pools, queues, random, queues_max) -> None:
    first = resolve(pools, queues, queues_max=queues_max)
    random.shuffle(pools)
    random.shuffle(queues)
    assert resolve(pools, queues, queues_max=queues_max) == first


@SEARCH
@given(POOLS, st.lists(QUEUES, unique=True), st.integers(0, 3))
def test_each_matched_queue_has_one_owner_or_is_named_as_unserved(pools, queues, queues_max) -> None:
    found = resolve(pools, queues, queues_max=queues_max)
    owners = {each.queue: each for each in found.owned}
    assert len(owners) == len(found.owned)
    left = {queue for names in found.unserved.values() for queue in names}
    assert not left & owners.keys()
    by_name = {each.pool: each for each in pools}
    named = {queue for each in pools for queue in each.queues if not is_pattern(queue)}
    for queue in queues:
        is_matched = any(is_match(each, queue) for pool in pools for each in pool.queues if is_pattern(each))
        assert (queue in owners or queue in left) == (is_matched or queue in named)
    for each in found.owned:
        entry = by_name[each.pool].queues[each.rank]
        assert entry == (each.pattern or each.queue)
        assert is_match(entry, each.queue)


@SEARCH
@given(POOLS, st.lists(QUEUES, unique=True), QUEUES, st.integers(0, 3))
def test_a_further_discovery_moves_no_queue(pools, queues, more, queues_max) -> None:
    queues = [queue for queue in queues if queue != more]
    found = resolve(pools, queues, queues_max=queues_max)
    before = {each.queue: each.pool for each in found.owned}
    after = resolve(pools, [*queues, more], before=before, queues_max=queues_max)
    assert before.items() <= {each.queue: each.pool for each in after.owned}.items()


@pytest.mark.parametrize(
    ("queues", "others", "sentence"),
    [
        (["*/mail"], {}, "queues: '*/mail' must name its connection, as in 'redis/tenant-*'"),
        (["r*/mail"], {}, "queues: 'r*/mail' must name its connection, as in 'redis/tenant-*'"),
        (["*"], {}, "queues: '*' must name its connection, as in 'redis/tenant-*'"),
        (["r/" + "a*" * 9], {}, "queues: 'r/a*a*a*a*a*a*a*a*a*' has more than 8 '*'"),
        ([f"r/{n}-*" for n in range(PATTERNS_MAX + 1)], {}, "queues has 21 patterns; at most 20 fit"),
        (["r/a"], {"template": "rq-*"}, "template: 'rq-*' is a pattern, which only queues may hold: name one"),
        (
            ["r/a-*"],
            {"member_objectives": {"r/a-*": Objective()}},
            "member_objectives: 'r/a-*' is a pattern, which only queues may hold: name one",
        ),
    ],
)
def test_a_pattern_that_means_nothing_is_refused(queues: list[str], others: dict[str, Any], sentence: str) -> None:
    profile = Profile(pool="mail", queues=tuple(queues), **{"template": "rq", **others})
    with pytest.raises(Invalid) as refused:
        refuse_unsound_patterns(profile)
    assert refused.value.breaches == (f"profile 'mail': {sentence}",)


def test_a_pool_is_named_without_a_star() -> None:
    with pytest.raises(Invalid, match="pool: 'mail-\\*' is a pattern, which only queues may hold"):
        refuse_unsound_patterns(Profile(pool="mail-*", queues=("r/a",), template="rq"))


def test_what_is_sound_is_taken() -> None:
    refuse_unsound_patterns(Profile(pool="mail", queues=("r/a", "r/tenant-*", "s/*"), template="rq"))


@pytest.mark.parametrize(
    ("mine", "theirs", "is_refused"),
    [
        ("r/tenant-*", "r/tenant-vip-*", False),  # an exception
        ("r/tenant-*", "r/*", False),
        ("r/tenant-*", "r/other-*", False),
        ("r/tenant-*", "r/tenant-vip", False),  # a name
        ("r/tenant-*", "r/tenant-*", True),
        ("r/tenant-*", "r/*-mail", True),
        ("r/a*b", "r/a*c*b", False),
    ],
)
def test_patterns_of_two_pools_that_cross_are_refused(mine: str, theirs: str, *, is_refused: bool) -> None:
    found = conflicts("mine", [mine], {"theirs": [theirs], "mine": [theirs]})
    assert bool(found) == is_refused
    if is_refused:
        assert mine in found[0]
        assert "'theirs'" in found[0]
