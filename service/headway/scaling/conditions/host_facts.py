"""What the conditions of hosts are read off."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.scaling.model import Host

PLACES_REPORT_LATE_S = 25.0  # agents report every 15 s, give or take a fifth; nearly half of a lease is left then


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRow:
    """A host, when it last reported, and since when, by whom and why it gets nothing new."""

    host: Host
    agent_version: str
    reported_at_s: float | None
    cordoned_at_s: float | None = None
    cordoned_by: str | None = None
    cordon_reason: str | None = None
    cordoned_until_s: float | None = None
    forced_workers: Mapping[str, int] = field(default_factory=dict)
    """Pool -> workers that were ended by force at their drain deadline, since the host enrolled."""
    epoch_ahead: int | None = None
    """The epoch it reports that is later than the leader's, so that it takes no assignment; ``None``: it takes one."""
    refused: tuple[str, ...] = ()
    """A sentence for each label and template that it reports and that its join token does not allow."""
    hung_up_s: float | None = None
    """Since its connection ended, where no report has come since."""
    certificate_left_s: float | None = None
    """Until the certificate ends that it last showed, below 0 once it has; ``None``: it was asked for none."""
    error_texts: Mapping[int, str] = field(default_factory=dict)
    """What the system calls the errors of its problems, by their numbers."""

    @property
    def is_away(self) -> bool:
        """Whether it has not reported within its lease."""
        return not self.host.is_known

    @property
    def has_hung_up(self) -> bool:
        """Whether the connection of a host that has a lease has ended, and it has not reported since."""
        return self.host.is_known and self.hung_up_s is not None

    @property
    def is_overdue(self) -> bool:
        """Whether a host that has a lease, and its connection, should have reported by now."""
        return self.host.is_known and self.hung_up_s is None and (self.host.silent_s or 0.0) > PLACES_REPORT_LATE_S

    @property
    def expired_s(self) -> float | None:
        """Since the certificate of a host that does not report has expired, which may be why; ``None``: it has not."""
        left_s = self.certificate_left_s
        is_silent = self.is_away or self.has_hung_up or self.is_overdue
        return -left_s if is_silent and left_s is not None and left_s <= 0.0 else None
