"""Law 7. Placement neither loses nor invents a worker, moves as few as it can, and is the same for the same inputs.

From decisions to hosts: what was decided is what stands somewhere, or the decision says that it was cut.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.allocation.allocate import allocate
from headway.scaling.model import Host
from headway.scaling.placement.host_choice import HostCapacities
from headway.scaling.placement.pool_parts import placed_workers
from scaling.laws.drawn import LAW
from scaling.laws.fleets import HOSTS, TEMPLATE, pools


@LAW
@given(hosts=HOSTS, data=st.data())
def test_what_was_decided_stands_somewhere_and_nothing_else_does(hosts: list[Host], data: st.DataObject) -> None:
    """Where no known host can run it, the target is held and nothing stands: unknown is not zero."""
    before = data.draw(pools(hosts))
    outcomes, rows = allocate(before, hosts, [])
    placed = placed_workers(rows)
    for was, outcome in zip(before, outcomes, strict=True):
        is_placeable = outcome.view.capacity_workers is not None
        assert placed.get(outcome.decision.pool, 0) == (outcome.decision.target_workers if is_placeable else 0)
        assert is_placeable or outcome.decision == was.decision
    assert placed.keys() <= {outcome.decision.pool for outcome in outcomes}
    known = {host.host_id for host in hosts if host.is_known}
    assert {row.host_id for row in rows} <= known


@LAW
@given(hosts=HOSTS, data=st.data())
def test_who_was_cut_was_cut_for_want_of_room_and_says_so(hosts: list[Host], data: st.DataObject) -> None:
    before = data.draw(pools(hosts))
    after, rows = allocate(before, hosts, [])
    for was, now in zip(before, after, strict=True):
        # A floor that no host can hold gets a note beside the count that the capacity left.
        said_alike = replace(now.decision, notes=was.decision.notes, note_facts=was.decision.note_facts)
        assert said_alike == was.decision or (now.decision.target_workers < was.decision.target_workers)
        if now.decision.target_workers != was.decision.target_workers:
            assert now.decision.binding == now.decision.steps[-1].name == "share"
            assert now.decision.target_workers < was.decision.target_workers
            assert not HostCapacities(hosts, held=rows).capacity(TEMPLATE.name)


@LAW
@given(hosts=HOSTS, data=st.data())
def test_no_worker_moves_while_what_is_wanted_stays(hosts: list[Host], data: st.DataObject) -> None:
    outcomes, rows = allocate(data.draw(pools(hosts)), hosts, [])
    again, same = allocate(outcomes, hosts, rows)
    assert (again, same) == (outcomes, rows)


@LAW
@given(hosts=HOSTS, data=st.data())
def test_as_few_workers_move_as_the_new_targets_ask_for(hosts: list[Host], data: st.DataObject) -> None:
    """A pool never loses a worker on one host and gains one on another, where nobody had to make way."""
    _, rows = allocate(data.draw(pools(hosts)), hosts, [])
    before = data.draw(pools(hosts))
    after, moved = allocate(before, hosts, rows)
    if any(now.decision != was.decision for was, now in zip(before, after, strict=True)):
        return  # room was short, and places were taken over
    for outcome in after:
        pool = outcome.decision.pool
        was = {row.host_id: row.workers for row in rows if row.pool == pool}
        now = {row.host_id: row.workers for row in moved if row.pool == pool}
        changes = [now.get(host_id, 0) - was.get(host_id, 0) for host_id in was.keys() | now.keys()]
        assert all(change >= 0 for change in changes) or all(change <= 0 for change in changes)


@LAW
@given(hosts=HOSTS, data=st.data())
def test_the_same_is_placed_the_same_in_whatever_order_it_comes(hosts: list[Host], data: st.DataObject) -> None:
    outcomes = data.draw(pools(hosts))
    _, rows = allocate(outcomes, hosts, [])
    _, shuffled = allocate(data.draw(st.permutations(outcomes)), data.draw(st.permutations(hosts)), [])
    assert shuffled == rows
