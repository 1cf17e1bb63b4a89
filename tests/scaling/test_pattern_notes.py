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
