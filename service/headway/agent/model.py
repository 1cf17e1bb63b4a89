"""Values that several folders of the agent share."""

from dataclasses import dataclass

from headway.scaling.model import ActivitySource, Hint, Inability, RunningJob


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedHint(Hint):
    """What the broker reported of one process; its ages are those on receipt, at ``received_at_s``."""

    received_at_s: float

    @property
    def known_at_s(self) -> float:
        """When this was so."""
        return self.received_at_s - self.age_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Whether a worker is busy, ``None`` where that is not known, and since when, where that is."""

    is_busy: bool | None
    busy_since_s: float | None = None
    source: ActivitySource | None = None
    """Who says so; ``None``: nobody does."""
    known_at_s: float | None = None
    """When that was so, in seconds of the host's clock since boot."""
    running_jobs: int | None = None
    """Jobs that it has begun and not ended; ``None``: not known."""
    running: tuple[RunningJob, ...] = ()
    """Those of them that its reporter named."""
    memory_bytes: int | None = None
    """What it and its children took when that was last measured."""
    inability: Inability | None = None
    """Why it takes no jobs; ``None``: it can, as far as is known."""
    ended_jobs: int | None = None
    """Since it began, by its own count or its broker's."""
    moves_due_jobs: bool = False
    """Whether it moves jobs that are due into their queue, for all workers: it holds the lock of RQ's scheduler."""


NOT_KNOWN = Activity(is_busy=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """This agent, and how the control plane calls its host: empty until it is enrolled."""

    agent_id: str
    cluster_id: str = ""
    host_id: str = ""
    credential: str = ""
    """What this host shows with each call; empty: it has none of its own."""
    former_credential: str = ""
    """The one before: after its database was restored, a control plane may know no newer one."""
