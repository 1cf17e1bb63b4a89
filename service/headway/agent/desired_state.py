"""What the control plane assigned to this host, and what counts as newer."""

import logging
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from headway.scaling.model import Assignment
from headway.scaling.profile import NAME_LENGTH_MAX

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredState:
    """The assignment in force. Epoch and revision mean something only within their cluster."""

    cluster_id: str = ""
    epoch: int = 0
    revision: int = 0
    """0: no assignment was ever received."""
    assignments: tuple[Assignment, ...] | None = None
    """``None``: no assignment was ever received, so the agent starts and stops nothing."""
    queues: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Pool -> its queues, as connection/queue and in the order of the profile."""

    def are_outdated_by(self, *, epoch: int, revision: int) -> bool:
        """Whether an answer of this cluster is newer. An older one, of a leader that was replaced, changes nothing."""
        return (epoch, revision) > (self.epoch, self.revision)

    def are_confirmed_by(self, *, epoch: int, revision: int) -> bool:
        """Whether such an answer confirms this assignment. For a host without a decision an answer confirms nothing.
        Where a database was lost with its assignments, an answer is out of date.
        """
        return revision > 0 and (epoch, revision) == (self.epoch, self.revision)

    def moved_to(self, cluster_id: str) -> "DesiredState":
        """After a new enrolment: the assignment stays in force, and any assignment received there is newer."""
        return replace(self, cluster_id=cluster_id, epoch=0, revision=0)


def within(assignments: Iterable[Assignment], *, workers_max: int, templates: Container[str]) -> tuple[Assignment, ...]:
    """What of ``assignments`` this host does: no more workers than its owner allows, and no name that is none.

    Whoever speaks for the control plane can so do no more than run what the host has configured, and not without end.
    The first rows are served first; base workers before burst workers.
    """
    left, served = workers_max, []
    for row in assignments:
        if "\0" in row.pool or not 0 < len(row.pool) <= NAME_LENGTH_MAX:
            continue  # a name goes into the worker's environment
        base = min(row.base_workers, left)
        burst = min(row.burst_workers, left - base)
        if row.template in templates:  # of others nothing is started
            left -= base + burst
        served.append(replace(row, base_workers=base, burst_workers=burst))
    return tuple(served)


class Bound:
    """Logs on change whether the control plane asks for more workers than the host's owner allows."""

    def __init__(self) -> None:
        self._is_logged = False

    def log_change(self, assignments: Iterable[Assignment], *, workers_max: int) -> None:
        """Log a change."""
        asked = sum(row.base_workers + row.burst_workers for row in assignments)
        if (asked > workers_max) == self._is_logged:
            return
        self._is_logged = not self._is_logged
        if self._is_logged:
            log.warning(
                "asked for workers=%d: no more than [host] workers_max = %d are run here, raise it if they are wanted",
                asked,
                workers_max,
            )
        else:
            log.info("asked for workers=%d, which [host] workers_max allows", asked)
