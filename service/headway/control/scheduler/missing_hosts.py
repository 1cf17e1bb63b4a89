"""What hosts are missing, in the log when it changes."""

import logging
from collections.abc import Sequence

from headway.scaling.allocation.host_demand import HostsWanted

log = logging.getLogger(__name__)


def log_changes(wanted: Sequence[HostsWanted], before: Sequence[HostsWanted]) -> None:
    """Log what is missing now and was not before, or in another number."""
    known = {(each.templates, each.hosts) for each in before}
    for each in wanted:
        if (each.templates, each.hosts) not in known:
            log.info(
                "hosts missing=%s labels=%s templates=%s workers_without_place=%d",
                "unknown" if each.hosts is None else each.hosts,
                dict(each.labels),
                ",".join(each.templates),
                each.workers,
            )
    if before and not wanted:
        log.info("hosts are as many as it takes")
