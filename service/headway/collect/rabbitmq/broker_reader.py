"""The queues of one virtual host, counted: by the management API, and by passive declares where these know better.

The management API asks classic queues themselves, and knows quorum queues as of 5 s ago: how many of their messages are
ready now, a passive declare counts. Without the API, passive declares of the queues whose names are known remain. What
consumers hold is unknown then, which is not zero.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, takewhile
from typing import Any

from headway.collect.rabbitmq.broker_address import address_of
from headway.collect.rabbitmq.dead_letters import queues_aside
from headway.collect.rabbitmq.management_api import CLASSIC, ListedQueue, ManagementApi
from headway.collect.rabbitmq.passive_declare import DeclaredQueue, PassiveDeclares
from headway.collect.rabbitmq.queue_policies import QueuePolicies
from headway.connections import Connection
from headway.errors import Unavailable
from headway.scaling.metrics.newest_sample import LISTED_GAP_S

API_HANGS_S = 0.5
API_AGAIN_S = 4.0  # an API that hangs holds up one poll in this time
DECLARED_MAX = 50  # passive declares a poll, 5 ms of our processor; of more queues, those asked longest ago
DECLARED_HOLDS_S = 6.0  # then what the API says is newer
CONSUMERS_EVERY_S = 4.0  # of queues that the API counts itself: it does not count their consumers without statistics
CONSUMERS_MAX = 20  # passive declares a poll for consumers alone: twice a second, 1,000 queues in 25 s
CONSUMERS_HOLD_S = LISTED_GAP_S
STREAM = "stream"  # read by offset; nothing of it is ever ready or held
GONE_FOR_S = 86_400.0  # a deleted queue counts as empty for a day: its jobs are known to be none
QUEUES_MAX = 10_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCount:
    """What is known of a queue. ``None``: not known."""

    ready_jobs: int
    unacked_jobs: int | None
    is_classic: bool = False
    is_there: bool = True
    """Whether it was not deleted."""
    consumers: int | None = None
    keeps_order: bool = False
    has_single_consumer: bool = False
    """Both as of ``ListedQueue``."""
    is_current: bool = True
    """Whether ``ready_jobs`` was counted by this very poll."""
    message_ttl_s: float | None = None
    """How long a message waits until the broker drops or moves it; ``None``: for any time, or not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """The answer to a passive declare; ``None``: the queue is not there."""

    queue: DeclaredQueue | None
    at_s: float


class BrokerReader:
    """Reads the queues that ``is_read`` accepts. One thread uses it."""

    def __init__(
        self, connection: Connection, is_read: Callable[[ListedQueue], bool], cursor: Mapping[str, Any] | None
    ) -> None:
        """Begin with what ``cursor`` gave; without one, with the queues that the connection names.

        Raises:
            Misconfigured: the URL cannot be one, or the password's file cannot be read.
        """
        address_of(connection)
        self._connection = connection
        self._is_read = is_read
        self.api = ManagementApi(connection)
        self._declares = PassiveDeclares(connection)
        self._known = {
            str(queue): None if gone_s is None else float(gone_s)
            for queue, gone_s in _kept(cursor, "queues").items()
            if connection.reads(str(queue))
        }
        self._known |= dict.fromkeys(connection.named_queues)
        single_consumer = (cursor or {}).get("single_consumer")
        self._single_consumer = frozenset(map(str, single_consumer if isinstance(single_consumer, list) else ()))
        """Queues of which one consumer gets all messages: declared so, they stay so while the API is away."""
        self._declared: dict[str, _Declared] = {}
        """The one asked longest ago first."""
        self._counts: dict[str, tuple[ListedQueue, int | None, QueueCount]] = {}
        """Of classic queues, what was last made of what: most of a thousand are as they were."""
        self._api_again_s = float("-inf")
        self._api_problem = ""
        self._policies = QueuePolicies(self.api)
        self._ttls_s = {str(queue): float(ttl_s) for queue, ttl_s in _kept(cursor, "message_ttls_s").items()}
        """For how long messages wait at most in queues that bound it, by arguments or by a policy. While the API is
        away, the last ones hold."""
        self.has_listed = False
        """Whether the last reading began with a list of all queues."""
        self._problems: dict[str, str] = {}
        """What is logged once, when it begins: source or queue -> why."""

    @property
    def known(self) -> dict[str, float | None]:
        """The queues that were ever read and are not forgotten -> since when one is gone, ``None``: it is there."""
        return dict(self._known)

    def cursor(self) -> dict[str, Any]:
        """What a new reader goes on from, as JSON can carry it."""
        return {
            "queues": dict(self._known),
            "single_consumer": sorted(self._single_consumer),
            "message_ttls_s": dict(self._ttls_s),
        }

    def listed(self) -> tuple[list[ListedQueue], dict[str, DeclaredQueue | None]]:
        """Every queue that is read, and where AMQP answers, how many consumers each has; without a memory.

        Raises:
            Unavailable: neither answers, or only AMQP, and no name of a queue is known.
        """
        try:
            queues = [each for each in self.api.queues() if self._is_read(each)]
        except Unavailable as error:
            names = self._names_known(error)
            declared = self._declares.read(names)
            self._note("management API", str(error))
            return [_unlisted(name, each) for name, each in declared.items() if each is not None], declared
        try:
            return queues, self._declares.read([each.name for each in queues])
        except Unavailable as error:
            self._note("AMQP", str(error))
            return queues, {}

    def aside(self, listed: Sequence[ListedQueue], consumers: Mapping[str, DeclaredQueue | None]) -> frozenset[str]:
        """Those of ``listed`` that have dead letters of others; none where the bindings cannot be read."""
        try:
            bindings = self.api.bindings()
        except Unavailable:
            return frozenset()
        consumed = {name for name, each in consumers.items() if each is not None and each.consumers}
        return queues_aside(listed, bindings, consumed)

    def read(self, at_s: float) -> dict[str, QueueCount]:
        """Each queue as it is now. One that cannot be known is missing; a deleted one is empty.

        Raises:
            Unavailable: nothing can be known.
        """
        listed = self._listed()
        self.has_listed = listed is not None
        if listed is None:
            return self._declared_alone(at_s)
        self._note_states(listed.values())
        self._known |= dict.fromkeys(listed)
        self._single_consumer = frozenset(
            [name for name in self._single_consumer if name in self._known and name not in listed]
            + [name for name, each in listed.items() if each.has_single_consumer]
        )
        missing = [name for name, gone_s in self._known.items() if gone_s is None and name not in listed]
        self._policies.read(listed.values(), at_s)
        self._note_ttls(listed)
        # A passive declare is a use of the queue: one that is asked for often would never expire.
        lasting = {name: each for name, each in listed.items() if not self._policies.let_expire(each)}
        lagging = [name for name, each in lasting.items() if each.kind != CLASSIC]
        self._declare(missing, lagging, self._uncounted(lasting, at_s), at_s)
        counts = {name: count for name, each in listed.items() if (count := self._count(each, at_s)) is not None}
        self._counts = {name: each for name, each in self._counts.items() if name in counts}
        return counts | self._missing(missing, at_s) | self._gone(at_s)

    def close(self) -> None:
        """Let the broker go."""
        self.api.close()
        self._declares.close()

    # --- the management API -------------------------------------------------------------------------------------------

    def _listed(self) -> dict[str, ListedQueue] | None:
        """The queues by name; ``None``: the API does not answer, or has not a moment ago."""
        now_s = time.monotonic()
        if now_s < self._api_again_s:
            return None
        try:
            listed = [each for each in self.api.queues() if self._is_read(each)]
        except Unavailable as error:
            self._api_problem = str(error)
            if time.monotonic() - now_s > API_HANGS_S:
                self._api_again_s = time.monotonic() + API_AGAIN_S
            return None
        self._note("management API", None)
        return {each.name: each for each in listed[:QUEUES_MAX]}

    def _note_ttls(self, listed: Mapping[str, ListedQueue]) -> None:
        kept = {name: ttl_s for name, ttl_s in self._ttls_s.items() if name in self._known and name not in listed}
        found = ((name, self._policies.message_ttl_s(each)) for name, each in listed.items())
        self._ttls_s = kept | {name: ttl_s for name, ttl_s in found if ttl_s is not None}

    def _missing(self, names: Iterable[str], at_s: float) -> dict[str, QueueCount]:
        """What passive declares say of queues that the API left out: its list may be a moment old, or not whole yet.

        One that is not there counts as gone from now on. Of a quorum queue whose leader is away, the API says nothing,
        and a passive declare that it is empty: then nothing is known.
        """
        counts: dict[str, QueueCount] = {}
        for name in names:
            found = self._fresh(name, at_s)
            if found is None or found.at_s != at_s:
                continue
            if found.queue is None:
                self._known[name] = at_s
            elif found.queue.ready_jobs:
                counts[name] = self._counted(name, found, at_s)
        return counts

    def _gone(self, at_s: float) -> dict[str, QueueCount]:
        """The queues that were deleted, which are empty; those of long ago are forgotten."""
        named = self._connection.named_queues
        for name, gone_s in list(self._known.items()):
            if gone_s is not None and at_s - gone_s > GONE_FOR_S and name not in named:
                del self._known[name]
        gone = (name for name, gone_s in self._known.items() if gone_s is not None)
        return {name: QueueCount(ready_jobs=0, unacked_jobs=0, is_there=False) for name in gone}

    # --- passive declares ---------------------------------------------------------------------------------------------

    def _uncounted(self, listed: Mapping[str, ListedQueue], at_s: float) -> list[str]:
        """Queues whose consumers are asked for now: those never asked, then those asked longest ago."""
        known = self._declared
        never = (name for name in listed if name not in known)
        due = takewhile(lambda name: not 0 <= at_s - known[name].at_s < CONSUMERS_EVERY_S, known)
        return list(islice(chain(never, (name for name in due if name in listed)), CONSUMERS_MAX))

    def _declare(self, first: Sequence[str], lagging: Sequence[str], uncounted: Sequence[str], at_s: float) -> None:
        """Ask for ``first``, then for those of ``lagging`` that were asked longest ago, and for ``uncounted``.

        However many lag, those that are not counted have their part. Without an answer, what the API says remains.
        """
        longest_ago = sorted(lagging, key=self._asked_s)[: DECLARED_MAX - len(uncounted)]
        asked = list(dict.fromkeys([*first, *longest_ago, *uncounted]))[:DECLARED_MAX]
        if not asked:
            return
        try:
            answers = self._declares.read(asked)
        except Unavailable as error:
            self._note("AMQP", str(error))
            return
        self._note("AMQP", None)
        self._take(answers, at_s)

    def _declared_alone(self, at_s: float) -> dict[str, QueueCount]:
        names = self._names_known(Unavailable(self._api_problem))
        asked = sorted(names, key=lambda name: self._asked_s(name))[: max(DECLARED_MAX, len(names) // 10)]
        answers = self._declares.read(asked)
        self._note("management API", self._api_problem)
        self._take(answers, at_s)
        fresh = {name: each for name in names if (each := self._fresh(name, at_s)) is not None}
        return {name: self._counted(name, each, at_s) for name, each in fresh.items()}

    def _counted(self, name: str, declared: _Declared, at_s: float) -> QueueCount:
        """A queue as a passive declare alone shows it; one that is not there is empty."""
        queue = declared.queue
        return QueueCount(
            ready_jobs=0 if queue is None else queue.ready_jobs,
            unacked_jobs=0 if queue is None else None,
            is_there=queue is not None,
            consumers=None if queue is None else queue.consumers,
            is_current=declared.at_s == at_s,
            has_single_consumer=name in self._single_consumer,
            message_ttl_s=self._ttls_s.get(name),
        )

    def _names_known(self, error: Unavailable) -> list[str]:
        names = [name for name, gone_s in self._known.items() if gone_s is None]
        if not names:
            self._declares.read(())  # raises what is wrong with the login or the virtual host
            raise Unavailable(
                f"{error}, and no queue is known without it: enable the plugin rabbitmq_management, set "
                "management_url (`headway init`: --management-url), or name queues without patterns"
            )
        return names

    def _take(self, answers: Mapping[str, DeclaredQueue | None], at_s: float) -> None:
        for name, each in answers.items():
            self._declared.pop(name, None)
            self._declared[name] = _Declared(queue=each, at_s=at_s)
        if len(self._declared) > QUEUES_MAX:
            self._declared = {name: each for name, each in self._declared.items() if name in self._known}

    def _asked_s(self, name: str) -> float:
        return self._declared[name].at_s if name in self._declared else float("-inf")

    def _fresh(self, name: str, at_s: float) -> _Declared | None:
        found = self._declared.get(name)
        return found if found is not None and 0 <= at_s - found.at_s < DECLARED_HOLDS_S else None

    # --- what it means ------------------------------------------------------------------------------------------------

    def _count(self, listed: ListedQueue, at_s: float) -> QueueCount | None:
        is_classic, consumers = listed.kind == CLASSIC, self._consumers(listed.name, at_s)
        ttl_s, known = self._ttls_s.get(listed.name), self._counts.get(listed.name)
        if is_classic and known and known[:2] == (listed, consumers) and known[2].message_ttl_s == ttl_s:
            return known[2]
        declared = None if is_classic else self._fresh(listed.name, at_s)
        ready = listed.ready_jobs
        if declared is not None and declared.queue is not None:
            ready = declared.queue.ready_jobs
        if ready is None:
            return None
        count = QueueCount(
            ready_jobs=ready,
            unacked_jobs=listed.unacked_jobs,
            is_classic=is_classic,
            consumers=consumers,
            keeps_order=listed.keeps_order,
            has_single_consumer=listed.has_single_consumer,
            is_current=is_classic or (declared is not None and declared.at_s == at_s),
            message_ttl_s=ttl_s,
        )
        if is_classic:
            self._counts[listed.name] = listed, consumers, count
        return count

    def _consumers(self, name: str, at_s: float) -> int | None:
        found = self._declared.get(name)
        is_known = found is not None and found.queue is not None and 0 <= at_s - found.at_s < CONSUMERS_HOLD_S
        return found.queue.consumers if is_known and found is not None and found.queue is not None else None

    def _note_states(self, listed: Iterable[ListedQueue]) -> None:
        """Log which queues cannot be counted, when that begins."""
        unknown = {
            f"queue {each.name}": each.state for each in listed if each.ready_jobs is None and each.kind == CLASSIC
        }
        for name in [name for name in self._problems if name.startswith("queue ") and name not in unknown]:
            del self._problems[name]
        for name, state in unknown.items():
            if self._problems.get(name) is None:
                queue = self._connection.queue(name.removeprefix("queue "))
                log.warning("queue unreadable queue=%s: its state is %s", queue, state)
            self._problems[name] = state

    def _note(self, source: str, problem: str | None) -> None:
        """Log that a source of figures was lost or is back, once each."""
        name = self._connection.name
        if problem is None:
            if self._problems.pop(source, None) is not None:
                log.info("%s back connection=%s", source, name)
        elif source not in self._problems:
            without = "jobs in flight are unknown" if source != "AMQP" else "quorum queues are read with a lag of 5 s"
            log.warning("%s lost connection=%s: %s; %s", source, name, problem, without)
            self._problems[source] = problem


def _kept(cursor: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """What ``cursor`` holds by ``name``; nothing before the first, and of the same library in another broker."""
    found = (cursor or {}).get(name)
    return found if isinstance(found, dict) else {}


def _unlisted(name: str, declared: DeclaredQueue) -> ListedQueue:
    return ListedQueue(
        name=name, kind=CLASSIC, is_transient=False, ready_jobs=declared.ready_jobs, unacked_jobs=None, state="running"
    )
