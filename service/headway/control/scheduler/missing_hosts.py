"""What hosts are missing or spare, published when it changes."""

import logging
from collections.abc import Sequence

from headway.scaling.allocation.host_demand import SPARE_SCAN_EVERY_S, HostsWanted, hosts_wanted
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import Assignment
from headway.store.pools.evaluation_io import Gathered

log = logging.getLogger(__name__)


class MissingHosts:
    """Works out what hosts are wanted after each tick; spare hosts are searched for once a minute."""

    def __init__(self) -> None:
        self._scanned_at_s = float("-inf")

    def of(
        self, outcomes: Sequence[Outcome], rows: Sequence[Assignment], gathered: Gathered, *, now_s: float
    ) -> tuple[HostsWanted, ...]:
        """What is missing or spare once ``rows`` are in place."""
        is_due = abs(now_s - self._scanned_at_s) >= SPARE_SCAN_EVERY_S  # also when the clock was set back
        if is_due:
            self._scanned_at_s = now_s
        wanted = hosts_wanted(
            outcomes, rows, gathered.hosts, before=gathered.wanted, now_s=now_s, scan_for_spare=is_due
        )
        _log_changes(wanted, gathered.wanted)
        return wanted


def _log_changes(wanted: Sequence[HostsWanted], before: Sequence[HostsWanted]) -> None:
    known = {(each.sign, each.templates, each.hosts) for each in before}
    for each in wanted:
        if (each.sign, each.templates, each.hosts) not in known:
            log.info(
                "hosts %s=%s labels=%s templates=%s workers_without_place=%d",
                each.sign.value,
                "unknown" if each.hosts is None else each.hosts,
                dict(each.labels),
                ",".join(each.templates),
                each.workers,
            )
    if before and not wanted:
        log.info("hosts are as many as it takes")
