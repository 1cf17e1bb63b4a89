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
    right: str
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
        right="for record in ledger.records:",
        wrong="for record in ():",
        kinds=("agent killed",),
    ),
    Mistake(
        what="a worker that shall leave is killed at once, busy or not",
        module="agent/workers/managed_worker.py",
        right="self.process.ask_to_end(self.record.stop.stop_signal)",
        wrong="self.process.send_to_all(self.record.stop.force_signal)",
        kinds=("agent paused",),
    ),
    Mistake(
        what="a worker that leaves is given one second instead of its drain timeout",
        module="agent/workers/lifecycle.py",
        right="else now_s) + drain_timeout_s",
        wrong="else now_s) + 1.0",
        kinds=("agent paused",),
    ),
    Mistake(
        what="an agent takes silence for zero: cut off for three seconds it lets all workers go",
        module="agent/controlplane/isolation.py",
        right="return _least(isolation_limits_s(known.values()), self._promised)",
        wrong="return dict.fromkeys(known, 3.0)",
        kinds=("host parted",),
    ),
    Mistake(
        what="a host file with mistakes counts as an empty one",
        module="agent/config/host_file_watcher.py",
        right="            self.has_mistakes = True\n            return False\n",
        wrong="            found = HostFile(templates={})\n",
        kinds=("host file broken",),
    ),
    Mistake(
        what="a full disk ends the agent",
        module="agent/workers/journal.py",
        right="        except OSError as error:",
        wrong="        except ZeroDivisionError as error:",
        kinds=("disk full",),
        faults=16,
    ),
    Mistake(
        what="writes of a replaced leader are not fenced",
        module="store/leadership.py",
        right="    if row.first() is None:\n        raise Superseded(",
        wrong="    if row.first() is None and epoch < 0:\n        raise Superseded(",
        kinds=("leader hung",),
    ),
    Mistake(
        what="a leader that hangs is never replaced",
        module="control/scheduler/leader.py",
        right="if await session.end_silent_leader(lease_s=LEADER_LEASE_S):",
        wrong="if False:",
        kinds=("leader hung",),
    ),
    Mistake(
        what="a host is given up after four seconds of silence",
        module="store/hosts/host_lease.py",
        right="HOST_LEASE_S = 45.0",
        wrong="HOST_LEASE_S = 4.0",
        kinds=("agent paused",),
    ),
    Mistake(
        what="after nobody led for long, every host counts as lost",
        module="store/leadership.py",
        right="hosts.lease_ends_at + (now() - last.renewed_at), now()",
        wrong="hosts.lease_ends_at, now()",
        kinds=("Postgres away for longer than the hosts' leases",),
    ),
    Mistake(
        what="a restored database does not decide anew about the hosts that are ahead of it",
        module="store/hosts/hosts.py",
        right="hosts.c.epoch_seen > hosts.c.assignment_epoch,",
        wrong="hosts.c.epoch_seen < 0,",
        kinds=("Postgres restarted", "Postgres restored"),
    ),
    Mistake(
        what="what may run on a lost host counts as zero: an exclusive pool is replaced at once",
        module="scaling/allocation/unreachable_hosts.py",
        right="    if not silent:\n        return counts\n    reported:",
        wrong="    return counts\n    reported:",
        kinds=("host parted for longer than its lease",),
    ),
    Mistake(
        what="the same, when a host loses its power",
        module="scaling/allocation/unreachable_hosts.py",
        right="    if not silent:\n        return counts\n    reported:",
        wrong="    return counts\n    reported:",
        proof=CARE,
    ),
    Mistake(
        what="a restart lets a worker go before its replacement runs",
        module="scaling/reconcile.py",
        right="kept = min(len(place.outdated), max(0, place.count - place.running))",
        wrong="kept = 0",
        proof=CARE,
    ),
)
