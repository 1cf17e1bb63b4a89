"""What pools of a rehearsal wanted and had no place for on its hosts: how many workers, for how long and why."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from headway.scaling.allocation.allocate import CUT_FOR_ROOM
from headway.scaling.decisions.group_uses import GROUP_SHARE
from headway.scaling.model import Decision, NoteFact
from headway.scaling.placement.host_choice import HostCapacities

SHARED = "room is short, and this is its share of it"
IN_PIECES = "room is left, but in pieces: no host has enough for one worker more"
FULL = "the hosts hold no more workers of its template"

Key = NoteFact | str
"""What makes two reasons the same one, whatever their figures are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why workers had no place, in the words of when most of them had none, and for how long."""

    text: str
    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """What one pool had no place for."""

    worker_hours: float
    workers_max: int
    for_s: float
    """How long at least one worker had none."""
    reasons: tuple[Reason, ...]
    """The one that held longest first."""


class UnplacedRecorder:
    """What is recorded of one pool, evaluation by evaluation."""

    def __init__(self) -> None:
        self._at_s = 0.0
        self._workers = 0
        self._key: Key = ""
        self._worker_s = 0.0
        self._workers_max = 0
        self._for_s: defaultdict[Key, float] = defaultdict(float)
        self._recorded: dict[Key, tuple[int, str]] = {}
        """Reason -> the most workers it concerned, and its words then."""

    def take(
        self,
        now_s: float,
        *,
        asked_workers: int,
        alone: Decision,
        allocated: Decision,
        is_in_pieces: Callable[[], bool],
    ) -> None:
        """From ``now_s`` on the pool has what ``allocated`` says; alone it would have had what ``alone`` does.

        ``asked_workers`` is what it wanted before the hosts had their say; ``is_in_pieces`` says whether what they have
        left would be enough for one worker more, were it in one place.
        """
        self.close(now_s)
        self._workers = max(0, asked_workers - allocated.target_workers)
        if not self._workers:
            return
        self._key, text = _reason(alone, allocated, is_in_pieces)
        self._workers_max = max(self._workers_max, self._workers)
        self._recorded[self._key] = max(self._recorded.get(self._key, (0, "")), (self._workers, text))

    def close(self, now_s: float) -> None:
        """What was taken last held until now."""
        if self._workers:
            passed_s = now_s - self._at_s
            self._worker_s += self._workers * passed_s
            self._for_s[self._key] += passed_s
        self._at_s = now_s

    @property
    def unplaced(self) -> Unplaced | None:
        """All of it; ``None`` where every worker had its place."""
        if not self._workers_max:
            return None
        longest_first = sorted(self._for_s.items(), key=lambda item: -item[1])
        return Unplaced(
            worker_hours=self._worker_s / 3600.0,
            workers_max=self._workers_max,
            for_s=sum(self._for_s.values()),
            reasons=tuple(Reason(text=self._recorded[key][1], for_s=for_s) for key, for_s in longest_first),
        )


def asked_workers(decision: Decision) -> int:
    """What a decision asked for before capacity was considered: what stood before the limit ``capacity``."""
    before = decision.target_workers
    for step in decision.steps:
        if step.name == "capacity":
            return max(before, decision.target_workers)
        before = step.workers
    return decision.target_workers


def within_caps(asked_workers: int, allocated: Decision) -> int:
    """``asked_workers`` less those beyond the caps of groups: no host could have placed them."""
    return min([asked_workers, *(step.workers for step in allocated.steps if step.name == GROUP_SHARE)])


def is_in_pieces(rooms: HostCapacities, kind: str) -> bool:
    """Whether the rooms together have enough left for one worker of ``kind``, and none of them has."""
    able = [room for room in rooms.by_host.values() if kind in room.costs and rooms.is_open(room)]
    if not able or any(room.fitting(kind) for room in able):
        return False
    left = [sum(max(0, room.left[at]) for room in able) for at in range(3)]
    return all(have >= amount for have, amount in zip(left, able[0].costs[kind], strict=True))


def _reason(alone: Decision, allocated: Decision, is_in_pieces: Callable[[], bool]) -> tuple[Key, str]:
    """The note that allocation left of it, else which limit it was: its key and its words."""
    notes = zip(allocated.note_facts, allocated.notes, strict=True)
    news = [(fact, text) for fact, text in notes if text not in alone.notes]
    if news and allocated.binding in CUT_FOR_ROOM:
        return news[0]
    text = FULL
    if allocated.binding == "share":
        text = IN_PIECES if is_in_pieces() else SHARED
    return text, text
