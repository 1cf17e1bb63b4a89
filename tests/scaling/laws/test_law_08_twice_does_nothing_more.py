"""Law 8. Reconciling twice does nothing the second time.

That an older epoch or revision is refused is not arithmetic: see tests/agent/test_orders.py.
"""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.allocation.allocate import allocate
from headway.scaling.model import COUNTED, Host, Worker, WorkerState
from headway.scaling.reconcile import reconcile
from scaling.laws.drawn import LAW
from scaling.laws.fleets import HOSTS, WORKERS, begun, come_up, pools, rows_of


@LAW
@given(hosts=HOSTS, workers=WORKERS, data=st.data())
def test_what_has_begun_is_not_begun_again(hosts: list[Host], workers: list[Worker], data: st.DataObject) -> None:
    _, rows = allocate(data.draw(pools(hosts)), hosts, [])
    for host in hosts:
        mine = rows_of(host.host_id, rows)
        after = begun(workers, reconcile(workers, mine))
        assert reconcile(after, mine) == ()


@LAW
@given(hosts=HOSTS, workers=WORKERS, data=st.data())
def test_a_host_comes_to_rest_at_what_it_was_assigned(
    hosts: list[Host], workers: list[Worker], data: st.DataObject
) -> None:
    """When all that starts is up and all that drains has gone, the rows are what runs.

    What is not known to be a worker stays, and takes a place that nothing is started for.
    """
    _, rows = allocate(data.draw(pools(hosts)), hosts, [])
    for host in hosts[:1]:
        mine = rows_of(host.host_id, rows)
        there = come_up(workers, mine)
        assert reconcile(there, mine) == ()
        known = Counter(each.pool for each in there if each.state in COUNTED - {WorkerState.UNKNOWN})
        unknown = Counter(each.pool for each in there if each.state is WorkerState.UNKNOWN)
        wanted = Counter({row.pool: row.workers for row in mine})
        for pool in {*known, *wanted}:
            assert known[pool] <= wanted[pool] <= known[pool] + unknown[pool]
