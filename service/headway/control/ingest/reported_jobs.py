"""Which reports of job events are new where several sources report the jobs of one connection. Pure.

Of each job and kind of event, the nth report of one source and the nth of another are one: it counts as often as the
source reported it that did so most often. See docs/decisions/0026.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from headway.connections import AGENT, COLLECTOR
from headway.scaling.model import EventKind, JobEvent

SOURCES_MAX = 8  # of a connection at a time; further ones share the last place, and count as one
KEY_BYTES = 8
EMITTERS = ""
"""The source of all programs that are neither collectors nor agents: of each job, one of them reports each event."""
AGENTS = AGENT
"""The source of all agents: of each attempt of a job, the agent whose worker runs it reports the events."""

_PLACES = {
    EventKind.ENQUEUED: b"e",
    EventKind.STARTED: b"s",
    EventKind.FINISHED: b"d",
    EventKind.FAILED: b"d",  # who sees a job end may not know how
    EventKind.RETRIED: b"r",
    EventKind.REVOKED: b"x",
}
_COUNT_BITS = 16
_COUNT_MAX = (1 << _COUNT_BITS) - 1


def source_of(producer: str) -> str:
    """Who reports what comes from ``producer``: a collector by itself, all agents together, all others together."""
    if producer.startswith(COLLECTOR):
        return producer
    return AGENTS if producer.startswith(AGENT) else EMITTERS


def connection_of(queue: str) -> str:
    """The connection that a queue's name begins with."""
    return queue.partition("/")[0]


def key_of(event: JobEvent) -> bytes:
    """What the reports of one event by several sources have in common: its queue, its job and its kind."""
    named = f"{event.queue}\0{event.job_id}".encode()
    return blake2b(named, digest_size=KEY_BYTES, person=_PLACES[event.kind]).digest()


@dataclass(slots=True)
class _Reported:
    at_s: float
    place: int
    keys: bytes


class ReportedJobs:
    """What each source has reported of the jobs of one connection, as long as there are several."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._reported: deque[_Reported] = deque()
        self._counts: dict[bytes, int] = {}
        """By key, how often each source has reported it, in 16 bits each."""
        self.reports = 0
        """How many are remembered."""

    @property
    def oldest_at_s(self) -> float | None:
        """When the oldest came that is remembered."""
        return self._reported[0].at_s if self._reported else None

    def take(self, source: str, keys: Iterable[bytes], *, at_s: float) -> list[bool]:
        """Whether each of ``keys``, reported by ``source`` in this order, is new. From here on it is not."""
        place = self._place(source)
        found, counted = [], []
        for key in keys:
            counts = self._counts.get(key, 0)
            own = counts >> (_COUNT_BITS * place) & _COUNT_MAX
            if own == _COUNT_MAX:
                found.append(False)
                continue
            found.append(own >= _most(counts))
            self._counts[key] = counts + (1 << (_COUNT_BITS * place))
            counted.append(key)
        self._reported.append(_Reported(at_s, place, b"".join(counted)))
        self.reports += len(counted)
        return found

    def forget_before(self, at_s: float) -> None:
        """Forget what was reported before."""
        while self._reported and self._reported[0].at_s < at_s:
            self.forget_oldest()

    def forget_oldest(self) -> None:
        """Forget what was reported first."""
        oldest = self._reported.popleft()
        keys = split(oldest.keys)
        self.reports -= len(keys)
        for key in keys:
            left = self._counts[key] - (1 << (_COUNT_BITS * oldest.place))
            if left:
                self._counts[key] = left
            else:
                del self._counts[key]
        if all(each.place != oldest.place for each in self._reported):
            self._places = {source: place for source, place in self._places.items() if place != oldest.place}

    def _place(self, source: str) -> int:
        if source not in self._places:
            free = set(range(SOURCES_MAX)) - set(self._places.values())
            self._places[source] = min(free, default=SOURCES_MAX - 1)
        return self._places[source]


def split(keys: bytes) -> list[bytes]:
    """Each of ``keys``, which stand one behind another."""
    return [keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)]


def _most(counts: int) -> int:
    most = 0
    while counts:
        most = max(most, counts & _COUNT_MAX)
        counts >>= _COUNT_BITS
    return most
