"""How many hosts more would be right."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.scaling.allocation.allocate import allocate
from headway.scaling.allocation.host_demand import HostsWanted, hosts_wanted
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.group import Group
from headway.scaling.model import Decision, Host, Memory, Mode, Step, Template
from headway.scaling.profile import Placement
from support.hosts import any_host
from support.pools import NOW_S, profile, queue, view

MAIL = Template(name="mail", content_hash="1", cpu_cores=1.0, memory_bytes=0)
VIDEO = Template(name="video", content_hash="1", cpu_cores=2.0, memory_bytes=0)
AUDIO = Template(name="audio", content_hash="1", cpu_cores=3.0, memory_bytes=0)


def host(name: str, cpu_cores: int = 4, *templates: Template, **values: Any) -> Host:
    return any_host(name, cpu_cores=cpu_cores, templates=templates or (MAIL, VIDEO), **values)


def outcome(
    pool: str, workers: int, *, template: str = "mail", labels: Mapping[str, str] | None = None, mode: Mode = Mode.ACT
) -> Outcome:
    """A pool that wants ``workers`` and has not been cut yet."""
    placement = Placement(labels=labels or {})
    policy = profile(pool=pool, queues=(f"redis/{pool}",), template=template, placement=placement, mode=mode)
    decision = Decision(
        pool=pool,
        at_s=NOW_S,
        target_workers=workers,
        binding="backlog_drain",
        mode=mode,
        steps=(Step(name="wanted", workers=workers),),
        metrics=(queue(queue=f"redis/{pool}"),),
    )
    return Outcome(view=view(profile=policy), before=Memory(), decision=decision, memory=Memory())


def wanted_hosts(hosts: Sequence[Host], *pools: Outcome, **values: Any) -> list[HostsWanted]:
    outcomes, rows = allocate(pools, hosts, [])
    return list(hosts_wanted(outcomes, rows, hosts, now_s=NOW_S, **values))


def test_what_has_no_place_becomes_hosts_of_the_typical_size() -> None:
    (wanted,) = wanted_hosts([host("a"), host("b"), host("c", 64, VIDEO)], outcome("mail", 17))
    assert (wanted.hosts, wanted.workers) == (3, 9)  # 17 - 8, four on each
    assert (wanted.templates, wanted.pools, wanted.since_s) == (("mail",), ("mail",), NOW_S)


def test_the_typical_host_is_the_median_of_those_that_could_hold_a_worker() -> None:
    """Of 4, 4 and 64 cores, four: three hosts more for 9 workers. Of an even number it is the smaller one."""
    (wanted,) = wanted_hosts([host("a"), host("b"), host("c", 64)], outcome("mail", 81))
    assert (wanted.hosts, wanted.workers) == (3, 9)  # 81 - 4 - 4 - 64
    (wanted,) = wanted_hosts([host("a"), host("c", 64)], outcome("mail", 77))
    assert (wanted.hosts, wanted.workers) == (3, 9)


def test_no_host_is_missing_for_workers_beyond_the_cap_of_a_group() -> None:
    def held(pool: str) -> Outcome:
        """It has the step that every decided pool has: alone, the hosts would hold all nine."""
        alone = outcome(pool, 9)
        steps = (*alone.decision.steps, Step(name="capacity", workers=9))
        return replace(alone, decision=replace(alone.decision, steps=steps))

    hosts, pools = [host("a")], [held("mail"), held("news")]
    group = Group(name="database", workers_max=6, pools=("mail", "news"))
    outcomes, rows = allocate(pools, hosts, [], groups=[group])
    (wanted,) = hosts_wanted(outcomes, rows, hosts, now_s=NOW_S)
    assert wanted.workers == 2  # of the six, four have a place


def test_missing_hosts_are_filled_with_the_largest_workers_first() -> None:
    """Two hosts of five cores hold one of three and one of two cores each."""
    lost = host("lost", 5, VIDEO, AUDIO, is_known=False)
    (wanted,) = wanted_hosts([lost], outcome("audio", 2, template="audio"), outcome("video", 2, template="video"))
    assert (wanted.hosts, wanted.workers) == (2, 4)


def test_pools_that_may_be_on_the_same_hosts_share_what_is_missing() -> None:
    (wanted,) = wanted_hosts([host("a")], outcome("mail", 6), outcome("news", 6), outcome("video", 3, template="video"))
    assert (wanted.hosts, wanted.workers) == (4, 12)  # 10 of 4 and 2 of 2 to a host
    assert (wanted.pools, wanted.templates) == (("mail", "news", "video"), ("mail", "video"))


def test_labels_make_a_sort_of_their_own() -> None:
    hosts = [host("a", labels={"disk": "ssd"}), host("b", labels={"disk": "hdd"})]
    (wanted,) = wanted_hosts(hosts, outcome("mail", 9, labels={"disk": "ssd"}))
    assert (wanted.labels, wanted.hosts, wanted.workers) == ({"disk": "ssd"}, 2, 5)


def test_of_what_no_host_could_ever_run_the_number_of_hosts_is_not_known() -> None:
    (wanted,) = wanted_hosts([host("a", 4, MAIL)], outcome("video", 3, template="video"))
    assert (wanted.hosts, wanted.workers) == (None, 3)


def test_a_cut_by_capacity_is_counted_from_what_was_wanted_before_it() -> None:
    cut = outcome("mail", 4)
    steps = (Step(name="wanted", workers=9), Step(name="workers_max", workers=7), Step(name="capacity", workers=4))
    cut = replace(cut, decision=replace(cut.decision, steps=steps, binding="capacity"))
    (wanted,) = wanted_hosts([host("a")], cut)
    assert (wanted.workers, wanted.hosts) == (3, 1)


def test_advice_wants_no_hosts() -> None:
    assert wanted_hosts([host("a"), host("b")], outcome("mail", 99, mode=Mode.RECOMMEND), outcome("news", 5)) == []


def test_while_hosts_are_silent_what_they_held_is_missing() -> None:
    (wanted,) = wanted_hosts([host("a"), host("lost", is_known=False)], outcome("mail", 8))
    assert (wanted.hosts, wanted.workers) == (1, 4)


def test_hosts_that_nobody_needs_are_not_reported() -> None:
    assert wanted_hosts([host("a"), host("b"), host("c", 8)], outcome("mail", 5)) == []


@pytest.mark.parametrize("workers", [9, 99])
def test_a_shortage_dates_from_when_it_began_whatever_its_size(workers: int) -> None:
    before = [HostsWanted(hosts=1, workers=1, templates=("mail",), since_s=NOW_S - 60.0)]
    (wanted,) = wanted_hosts([host("a"), host("b")], outcome("mail", workers), before=before)
    assert wanted.since_s == NOW_S - 60.0


def test_a_shortage_of_another_sort_dates_from_now() -> None:
    before = [HostsWanted(hosts=1, workers=1, templates=("video",), since_s=NOW_S - 60.0)]
    (wanted,) = wanted_hosts([host("a")], outcome("mail", 9), before=before)
    assert wanted.since_s == NOW_S


@example(sizes=[1], counts=[(2, "mail"), (1, "video")])  # small ones spread over both hosts
@given(
    sizes=st.lists(st.integers(0, 6), max_size=5),
    counts=st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["mail", "video"])), max_size=3),
)
def test_with_the_hosts_that_are_missing_all_have_a_place(sizes: list[int], counts: list[tuple[int, str]]) -> None:
    hosts = [host(f"h{number}", 2 * size) for number, size in enumerate(sizes)]
    pools = [outcome(f"p{number}", count, template=template) for number, (count, template) in enumerate(counts)]
    outcomes, rows = allocate(pools, hosts, [])
    for wanted in hosts_wanted(outcomes, rows, hosts, now_s=NOW_S):
        if wanted.hosts is None:
            continue
        typical = sorted(size for size in sizes if size)[(sum(size > 0 for size in sizes) - 1) // 2]
        then = [*hosts, *(host(f"new{number}", 2 * typical) for number in range(wanted.hosts))]
        for current in ([], rows):
            after, _ = allocate(pools, then, current)
            assert [each.decision.target_workers for each in after] == [each.decision.target_workers for each in pools]
