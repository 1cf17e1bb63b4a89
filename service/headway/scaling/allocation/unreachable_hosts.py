"""What runs beyond what rows say: on unreachable hosts, and what leaves.

Unknown is not zero. A host that is partitioned keeps what it was assigned, so its rows stay as they are, and what it
may run counts against every bound, until it is back, is forgotten, or has surely drained by itself.
"""

from collections import Counter
from collections.abc import Iterable

from headway.scaling.model import COUNTED, Assignment, Host, Template, WorkerState

# From the last report that arrived to the moment at which the host notices that it is cut off: two reports, the longest
# poll, and the time that ending a process takes.
ISOLATION_MARGIN_S = 120.0


def is_surely_gone(host: Host, template: str) -> bool:
    """Whether the workers of ``template`` on a silent host have ended by now, by what the host does when it is cut off.

    It drains them after the template's ``isolation_drain_after_s``, and ends what has not finished by the timeout.
    """
    if host.is_known or host.silent_s is None:
        return False
    return any(each.name == template and host.silent_s > _gone_after_s(each) for each in host.templates)


def _gone_after_s(template: Template) -> float:
    if template.isolation_drain_after_s is None or template.drain_timeout_s is None:
        return float("inf")
    return template.isolation_drain_after_s + template.drain_timeout_s + ISOLATION_MARGIN_S


def unknown_workers(hosts: Iterable[Host], rows: Iterable[Assignment]) -> Counter[str]:
    """Pool -> workers that may run on hosts that went silent.

    The greater of what was there and what the host was assigned: it may have started them since its last report.
    """
    silent = {host.host_id: host for host in hosts if not host.is_known}
    counts: Counter[str] = Counter()
    if not silent:
        return counts
    reported: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row.host_id in silent and not is_surely_gone(silent[row.host_id], row.template):
            reported[row.pool, row.host_id] += row.workers
    seen: Counter[tuple[str, str]] = Counter()
    for host in silent.values():
        for worker in host.workers:
            if worker.state is WorkerState.GONE:
                continue
            # Its agent drains no process of which it has no record.
            if worker.state is not WorkerState.UNKNOWN and is_surely_gone(host, worker.template):
                continue
            if worker.state in COUNTED:
                seen[worker.pool, host.host_id] += 1
            else:
                counts[worker.pool] += 1  # it drained, and the host's assignment does not count it
    for pool, host_id in reported.keys() | seen.keys():
        counts[pool] += max(reported[pool, host_id], seen[pool, host_id])
    return counts


def leaving_workers(hosts: Iterable[Host], rows: Iterable[Assignment]) -> Counter[str]:
    """Pool -> workers of known hosts that run beyond their assignment: they have been asked to stop."""
    reported: Counter[tuple[str, str]] = Counter()
    for row in rows:
        reported[row.pool, row.host_id] += row.workers
    counts: Counter[str] = Counter()
    for host in hosts:
        if not host.is_known:
            continue
        seen = Counter(worker.pool for worker in host.workers if worker.state in COUNTED)
        for pool, workers in seen.items():
            counts[pool] += max(0, workers - reported[pool, host.host_id])
        counts.update(worker.pool for worker in host.workers if worker.state is WorkerState.DRAINING)
    return counts


def kept_rows(hosts: Iterable[Host], rows: Iterable[Assignment]) -> tuple[Assignment, ...]:
    """The rows that silent hosts may still act on. Taken away, the host would let go of what runs when it is back."""
    silent = {host.host_id: host for host in hosts if not host.is_known}
    if not silent:
        return ()
    return tuple(row for row in rows if row.host_id in silent and not is_surely_gone(silent[row.host_id], row.template))
