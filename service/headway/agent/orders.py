"""What the control plane told this host to run, and what counts as newer."""

from dataclasses import dataclass, replace

from headway.scaling.model import Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """The assignment in force. Epoch and revision mean something only within their cluster."""

    cluster_id: str = ""
    epoch: int = 0
    revision: int = 0
    """0: nothing was ever told."""
    assignments: tuple[Assignment, ...] | None = None
    """``None``: nothing was ever told, so nothing is started and nothing stopped."""

    def are_outdated_by(self, *, epoch: int, revision: int) -> bool:
        """Whether an answer of this cluster is newer. An older one, of a leader that was replaced, changes nothing."""
        return (epoch, revision) > (self.epoch, self.revision)

    def moved_to(self, cluster_id: str) -> "Orders":
        """After enrolling anew: what was told stays in force, and whatever is told there is newer."""
        return replace(self, cluster_id=cluster_id, epoch=0, revision=0)
