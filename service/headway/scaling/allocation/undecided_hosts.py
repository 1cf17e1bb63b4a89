"""Hosts that run what nobody has decided about: they were forgotten, or their rows were lost with a database."""

from collections import Counter
from collections.abc import Iterator, Sequence

from headway.scaling.model import COUNTED, Assignment, Host


def found_rows(hosts: Sequence[Host]) -> Iterator[Assignment]:
    """What undecided hosts run, as if it had been assigned: deciding starts from there.

    Such a host was forgotten, or its row was lost with the database that was restored. What it runs is no reason to
    start the same again elsewhere, nor to end it before it has been evaluated.
    """
    for host in hosts:
        if not host.is_known or not host.is_undecided:
            continue
        base: Counter[tuple[str, str]] = Counter()
        burst: Counter[tuple[str, str]] = Counter()
        for worker in host.workers:
            if worker.state in COUNTED and worker.pool and worker.template:
                (burst if worker.is_burst else base)[worker.pool, worker.template] += 1
        by_pool = dict(sorted(base.keys() | burst.keys()))  # of two templates of a pool the one later in the alphabet
        for pool, template in by_pool.items():
            yield Assignment(
                pool=pool,
                host_id=host.host_id,
                template=template,
                base_workers=base[pool, template],
                burst_workers=burst[pool, template],
            )
