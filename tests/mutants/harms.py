"""Mistakes in what touches processes, hosts and leadership, each made in a copy of the tree: a lab must see them."""

from collections.abc import Sequence
from dataclasses import dataclass

SOAK, CARE = "soak", "host care"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One mistake, and what brings it to light."""

    what: str
    module: str
    """Below ``service/headway``."""
    within: str
    """A function of the module."""
    right: str
    """A pattern in it, as ``places.py`` says."""
    wrong: str
    kinds: Sequence[str] = ()
    """Of the faults that the soak draws; it draws from all where none is named."""
    proof: str = SOAK
    faults: int = 6
    """After so many the soak gives up."""


MISTAKES: Sequence[Mistake] = (
    Mistake(
        what="an agent that starts anew forgets its workers and starts a second set",
        module="agent/workers/manager.py",
        within="WorkerManager.adopt",
        right="for record in ledger.records:\n    ...",
        wrong="for record in ():\n    ...",
        kinds=("agent killed",),
    ),
    Mistake(
        what="a worker that shall leave is killed at once, busy or not",
        module="agent/workers/managed_worker.py",
        within="ManagedWorker.request_stop",
        right="self.process.ask_to_end(self.record.stop.stop_signal)",
        wrong="self.process.send_to_all(self.record.stop.force_signal)",
        kinds=("agent paused",),
    ),
    Mistake(
        what="a worker that leaves is given one second instead of its drain timeout",
        module="agent/workers/lifecycle.py",
        within="drain_ends_s",
        right="(life.since_s if life.state is WorkerState.DRAINING else now_s) + drain_timeout_s",
        wrong="(life.since_s if life.state is WorkerState.DRAINING else now_s) + 1.0",
        kinds=("agent paused",),
    ),
    Mistake(
        what="an agent takes silence for zero: cut off for three seconds it lets all workers go",
        module="agent/controlplane/isolation.py",
        within="Contact.limits_s",
        right="_least(isolation_limits_s(known.values()), self._promised)",
        wrong="dict.fromkeys(known, 3.0)",
        kinds=("host parted",),
    ),
    Mistake(
        what="a host file with mistakes counts as an empty one",
        module="agent/config/host_file_watcher.py",
        within="WatchedFile._take",
        right="self.has_mistakes = True\nreturn False",
        wrong="found = HostFile(templates={})",
        kinds=("host file broken",),
    ),
    Mistake(
        what="a full disk ends the agent",
        module="agent/workers/journal.py",
        within="WorkerJournal.write",
        right="OSError",
        wrong="ZeroDivisionError",
        kinds=("disk full",),
        faults=16,
    ),
    Mistake(
        what="writes of a replaced leader are not fenced",
        module="store/leadership.py",
        within="fence",
        right="row.first() is None",
        wrong="row.first() is None and epoch < 0",
        kinds=("leader hung",),
    ),
    Mistake(
        what="a leader that hangs is never replaced",
        module="control/scheduler/leader.py",
        within="Leadership._stand_by_and_lead",
        right="await session.end_silent_leader(lease_s=LEADER_LEASE_S)",
        wrong="False",
        kinds=("leader hung",),
    ),
    Mistake(
        what="a host is given up after four seconds of silence",
        module="store/hosts/host_lease.py",
        within="",
        right="HOST_LEASE_S = 45.0",
        wrong="HOST_LEASE_S = 4.0",
        kinds=("agent paused",),
    ),
    Mistake(
        what="after nobody led for long, every host counts as lost",
        module="store/leadership.py",
        within="LeaderSession.try_lead",
        right="'hosts.lease_ends_at + (now() - last.renewed_at),'",
        wrong="'hosts.lease_ends_at,'",
        kinds=("Postgres away for longer than the hosts' leases",),
    ),
    Mistake(
        what="a restored database does not decide anew about the hosts that are ahead of it",
        module="store/hosts/hosts.py",
        within="",
        right="hosts.c.epoch_seen > hosts.c.assignment_epoch",
        wrong="hosts.c.epoch_seen < 0",
        kinds=("Postgres restarted", "Postgres restored"),
    ),
    Mistake(
        what="what may run on a lost host counts as zero: an exclusive pool is replaced at once",
        module="scaling/allocation/unreachable_hosts.py",
        within="unknown_workers",
        right="if not silent:\n    return counts",
        wrong="return counts",
        kinds=("host parted for longer than its lease",),
    ),
    Mistake(
        what="the same, when a host loses its power",
        module="scaling/allocation/unreachable_hosts.py",
        within="unknown_workers",
        right="if not silent:\n    return counts",
        wrong="return counts",
        proof=CARE,
    ),
    Mistake(
        what="a restart lets a worker go before its replacement runs",
        module="scaling/reconcile.py",
        within="_of_one_place",
        right="min(len(place.outdated), max(0, place.count - place.running))",
        wrong="0",
        proof=CARE,
    ),
)
