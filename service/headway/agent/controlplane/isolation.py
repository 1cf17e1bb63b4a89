"""For how long this host has been partitioned from the control plane, and whose workers may not go on so.

Counted from when the last report was sent that was answered, by the host's clock since boot: the control plane holds
the host for known from the moment that it got it, which was not before that.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from headway.agent.config.templates import Template
from headway.agent.state.state_dir import StateFolder
from headway.local import procfs
from headway.scaling import model

FILE = "contact.json"
WRITE_EVERY_S = 5.0
NEVER_S = float("-inf")
ISOLATION_FIRST_CALL_S = 10.0  # an agent that has just begun is given the time to call before it counts as cut off
FORGETTABLE_S = 45.0  # a host that has reported since then cannot be forgotten by anybody

log = logging.getLogger(__name__)


class Contact:
    """When the control plane last received a report of this host. The next agent of the folder knows it, too."""

    def __init__(self, folder: StateFolder, *, clock: Callable[[], float] = procfs.since_boot_s) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._began_at_s = clock()
        kept = folder.read(FILE) or {}
        at_s = kept.get("at_s") if kept.get("boot_id") == procfs.boot_id() else None
        self._received_at_s = at_s if isinstance(at_s, float) else NEVER_S
        self._promised = _promised(kept.get("promised"))
        """Template -> for how long its workers run on while partitioned, by the reports that may have arrived."""
        self._reporting = self._promised
        self._written_at_s = NEVER_S
        self._answered_at_s = NEVER_S
        self.gap_s = self._began_at_s - self._received_at_s
        """Time without a report when this agent began; endless where nobody knows, as after a reboot."""

    def commit_to(self, promised: Mapping[str, float]) -> None:
        """Note the limits in a report that is about to be sent: it may arrive, and its answer not. From any thread."""
        with self._lock:
            self._reporting = dict(promised)
            both = _least(self._promised, self._reporting)
            if both == self._promised:
                return
            self._promised = both
        self._write()

    def received(self, *, sent_at_s: float) -> None:
        """Note that the last report was answered, which was sent then. From any thread."""
        with self._lock:
            self._received_at_s = max(self._received_at_s, sent_at_s)
            is_same, self._promised = self._promised == self._reporting, self._reporting
            if is_same and sent_at_s - self._written_at_s < WRITE_EVERY_S:
                return
            self._written_at_s = sent_at_s
        self._write()

    def limits_s(self, known: Mapping[str, Template]) -> dict[str, float]:
        """Template -> for how long its workers may go on while this host is partitioned; templates without a limit are
        left out.

        The lesser of the limit in ``host.toml`` now and the limit in the last report: the control plane replaces
        workers by the reported one.
        """
        with self._lock:
            return _least(isolation_limits_s(known.values()), self._promised)

    def _write(self) -> None:
        with self._lock:
            received = {} if self._received_at_s == NEVER_S else {"at_s": self._received_at_s}
            body = {"boot_id": procfs.boot_id(), **received, "promised": self._promised}
        # What could not be written makes the next agent count from its own beginning or earlier.
        with suppress(OSError):
            self._folder.write(FILE, body, is_durable=False)

    def answered(self, *, asked_at_s: float) -> None:
        """Note that the control plane has answered a poll for this host's assignment, sent then. From any thread."""
        with self._lock:
            self._answered_at_s = max(self._answered_at_s, asked_at_s)

    def times_s(self) -> tuple[float, float, float]:
        """When the control plane last received a report, when it last confirmed the assignment, and now."""
        with self._lock:
            return self._received_at_s, self._answered_at_s, self._clock()

    def is_perhaps_forgotten(self) -> bool:
        """Whether nobody had reported for that long when this agent began, and no answer has confirmed since."""
        with self._lock:
            return self.gap_s >= FORGETTABLE_S and self._answered_at_s < self._began_at_s

    def lost_for_s(self) -> float:
        """Seconds since the control plane last received a report of this host; 0 while an agent has only just begun.

        Where nobody knows since when, from this agent's beginning: after a reboot nothing runs that could be too much.
        """
        now_s = self._clock()
        with self._lock:
            since_s = self._began_at_s if self._received_at_s == NEVER_S else self._received_at_s
            return now_s - since_s if now_s - self._began_at_s >= ISOLATION_FIRST_CALL_S else 0.0


class Isolation:
    """The templates whose workers may not go on while this host is partitioned, logged on state change.

    An assignment from before does not allow to start one of them again: the control plane may replace it elsewhere
    until it receives a report of this host. So a template that was partitioned for too long stays doubtful until an
    answer confirms the assignment, to a poll sent after the control plane had received a report again. Earlier answers
    may be out of date.
    """

    def __init__(self) -> None:
        self._templates: frozenset[str] = frozenset()
        self._cut_off: frozenset[str] | None = None
        """Those that were partitioned for too long at the last evaluation; ``None`` before the first."""
        self._doubtful: dict[str, float] = {}
        """Template -> when it was last partitioned for too long, or first seen not to be any more."""
        self.wants_word = False
        """Whether this is the moment to ask what is to run: a poll that is held since before ends no doubt."""

    def doubtful(self, limits_s: Mapping[str, float], contact: Contact) -> frozenset[str]:
        """The names of templates that may start nothing until the control plane has confirmed the assignment."""
        received_at_s, answered_at_s, now_s = contact.times_s()
        before = _cut_off(limits_s, for_s=contact.gap_s) if self._cut_off is None else self._cut_off
        self._cut_off = _cut_off(limits_s, for_s=now_s - received_at_s)
        self._doubtful.update(dict.fromkeys(before | self._cut_off, now_s))
        self._doubtful = {name: at_s for name, at_s in self._doubtful.items() if answered_at_s < at_s}
        self.wants_word = bool(before - self._cut_off)
        return frozenset(self._doubtful)

    def templates(self, limits_s: Mapping[str, float], *, lost_for_s: float) -> frozenset[str]:
        """The names of those that are partitioned for longer than they may be."""
        now = _cut_off(limits_s, for_s=lost_for_s)
        for name in sorted(now - self._templates):
            log.warning("partitioned for %.0f s: draining the workers of template=%s", lost_for_s, name)
        for name in sorted(self._templates - now):
            log.info("no longer partitioned: template=%s may run again", name)
        self._templates = now
        return now


def isolation_limits_s(templates: Iterable[Template | model.Template]) -> dict[str, float]:
    """Template -> after how many seconds of partition its workers are drained, where it has such a limit."""
    limits = ((each.name, each.isolation_drain_after_s) for each in templates)
    return {name: after_s for name, after_s in limits if after_s is not None}


def unisolated(assignments: Iterable[model.Assignment], isolated: Collection[str]) -> tuple[model.Assignment, ...]:
    """What a partitioned host is to run of its assignments: nothing of the templates that may not go on."""
    return tuple(row for row in assignments if row.template not in isolated)


def _cut_off(limits_s: Mapping[str, float], *, for_s: float) -> frozenset[str]:
    return frozenset(name for name, limit_s in limits_s.items() if for_s >= limit_s)


def _least(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: min(each[name] for each in (one, other) if name in each) for name in {*one, *other}}


def _promised(kept: Any) -> dict[str, float]:
    """What was written; nothing where another version wrote otherwise."""
    is_known = isinstance(kept, dict) and all(isinstance(each, int | float) for each in kept.values())
    return dict(kept) if is_known else {}
