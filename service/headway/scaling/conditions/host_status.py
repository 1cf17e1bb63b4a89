"""What is so with a host, in a word and a sentence, for the page, the command line and the API alike."""

from dataclasses import dataclass
from enum import StrEnum

from headway.scaling.conditions.host_facts import HostRow
from headway.scaling.conditions.host_table import problems_of
from headway.scaling.model import HostState


class HostStatusName(StrEnum):
    """What may be so with a host, the worst first."""

    UNREACHABLE = "unreachable"
    CONNECTION_LOST = "connection_lost"
    CANNOT_WRITE = "cannot_write"
    DRAINING = "draining"
    DRAINED = "drained"
    CORDONED = "cordoned"
    FAILING = "failing"
    REPORTING = "reporting"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus:
    """The worst that is so with a host."""

    name: HostStatusName
    meaning: str
    """A sentence."""

    @property
    def word(self) -> str:
        """The name for people."""
        return self.name.replace("_", " ")


def status_of(row: HostRow) -> HostStatus:
    """The worst of all that is so with the host of ``row``."""
    host, name = row.host, HostStatusName
    if row.is_away:
        meaning = "Its agent does not report: what it runs is not known, and may still run."
        return HostStatus(name=name.UNREACHABLE, meaning=meaning)
    if row.has_hung_up:
        meaning = "Its agent has ended, hangs, or is partitioned: what it runs may have changed since its last report."
        return HostStatus(name=name.CONNECTION_LOST, meaning=meaning)
    if not host.can_write:
        return HostStatus(name=name.CANNOT_WRITE, meaning=f"It gets nothing new: {'; '.join(problems_of(row))}.")
    if host.state is HostState.DRAINING and host.workers:
        return HostStatus(name=name.DRAINING, meaning="Its workers leave as what replaces them runs elsewhere.")
    if host.state is HostState.DRAINING:
        return HostStatus(name=name.DRAINED, meaning="Nothing runs here any more, and nothing new comes.")
    if host.state is HostState.CORDONED:
        return HostStatus(name=name.CORDONED, meaning="It keeps what runs and gets nothing new.")
    if host.failing:
        return HostStatus(name=name.FAILING, meaning=f"Workers of {', '.join(sorted(host.failing))} crash here.")
    return HostStatus(name=name.REPORTING, meaning="Its agent reports.")
