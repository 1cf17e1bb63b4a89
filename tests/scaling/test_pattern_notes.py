"""What a profile with patterns says of queues that no worker serves."""

import pytest

from headway.scaling.planning.pattern_notes import pattern_notes
from headway.scaling.profile_keys.pattern_resolution import WrittenQueues

WRITTEN = WrittenQueues(pool="tenants", queues=("r/first", "r/tenant-*"))
FILLED = {"a": ["tenant-*", "first"]}


def notes(
    queues: list[str], *, unserved: list[str] | None = None, written: WrittenQueues = WRITTEN, **allowed: list[str]
) -> list[str]:
    return list(pattern_notes(written, queues, unserved=unserved or [], template="rq", allowed=allowed or FILLED))


def test_a_profile_whose_queues_are_all_served_says_nothing() -> None:
    assert notes(["r/first", "r/tenant-1"]) == []


def test_a_profile_without_patterns_says_nothing() -> None:
    assert notes(["r/mail"], written=WrittenQueues(pool="mail", queues=("r/mail",)), a=[]) == []


def test_a_name_with_a_star_of_an_earlier_version_is_said() -> None:
    written = WrittenQueues(pool="odd", queues=("r/*",), literal=frozenset({"r/*"}))
    assert notes(["r/*"], written=written, a=[]) == [
        "'r/*' is the name of one queue, as an earlier version stored it: apply the profile to make it a pattern"
    ]


@pytest.mark.parametrize(
    ("queues", "unserved", "sentences"),
    [
        ([], [], ["no queue that was seen matches 'r/*': until one does, no pool is made of it"]),
        (["r/a"], [], ["1 pool made of it, one for each queue that no pool names; at most 5 are"]),
        (
            ["r/a", "r/b"],
            ["r/c"],
            [
                "2 pools made of it, one for each queue that no pool names; at most 5 are",
                "no pool is made for 1 queue beyond, and no worker serves r/c: raise pools_max, or name them in a pool",
            ],
        ),
    ],
)
def test_a_profile_of_which_pools_are_made_says_how_many(
    queues: list[str], unserved: list[str], sentences: list[str]
) -> None:
    written = WrittenQueues(pool="sla_defaults", queues=("r/*",))
    allowed = {"a": ["*"]}
    found = pattern_notes(written, queues, unserved=unserved, template="rq", allowed=allowed, pools_max=5)
    assert list(found) == sentences


@pytest.mark.parametrize(
    ("queues", "more", "sentence"),
    [
        (
            [],
            {},
            "no queue that was seen matches 'r/tenant-*': until one does, the pool has no workers and no decision",
        ),
        (
            ["r/tenant-1"],
            {"unserved": ["r/tenant-2", "r/tenant-3", "r/tenant-4", "r/tenant-5"]},
            (
                "4 queues beyond the 2,000 that a pool takes, and no worker serves r/tenant-2, r/tenant-3, r/tenant-4 "
                "and 1 more: write a narrower pattern into another pool"
            ),
        ),
        (
            ["r/tenant-1"],
            {"old": [], "a": ["tenant-*"]},
            (
                "template 'rq' on old takes no names of queues: its workers serve those that their own command line "
                "names; write $(HEADWAY_QUEUES) and queues_allowed into its host.toml, with an agent of this version"
            ),
        ),
        (
            ["r/first", "r/tenant-1", "r/tenant-2"],
            {"a": ["tenant-1"], "b": ["tenant-2"]},
            "no host serves r/first: queues_allowed of template 'rq' does not match it",
        ),
    ],
)
def test_each_queue_that_no_worker_serves_is_said(queues: list[str], more: dict[str, list[str]], sentence: str) -> None:
    assert notes(queues, **more) == [sentence]
