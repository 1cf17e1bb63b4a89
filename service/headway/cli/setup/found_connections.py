"""The brokers that will be connections: which workers read each, and which of its queues belong to this folder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from headway.cli.setup.broker_candidates import VARIABLES_OF, addresses_of, as_read, place_of
from headway.cli.setup.broker_survey import FoundBroker
from headway.cli.setup.running_workers import RunningWorker
from headway.cli.setup.source.declared_queues import CELERY_DEFAULT_QUEUE
from headway.connections import Connection

NAMES = {"redis": "redis", "rediss": "redis", "unix": "redis", "amqp": "rabbitmq", "amqps": "rabbitmq"}
RQ_DEFAULT_URL = "redis://127.0.0.1:6379/0"


@dataclass(slots=True, kw_only=True)
class FoundConnection:
    """A broker that will be a connection, with the workers here that read it."""

    name: str
    broker: FoundBroker
    workers: list[RunningWorker] = field(default_factory=list)
    """Those of this folder's application."""
    strangers: list[RunningWorker] = field(default_factory=list)
    """Those of others."""
    declared: list[str] = field(default_factory=list)
    """Queues that the source of the application names."""
    declared_library: str | None = None
    """Whose queues these are, where that is none that has a collector of its own."""
    is_of_application: bool = False
    """Whether the application of this folder reads it, whatever is in it."""
    is_declared_only: bool = False
    """Whether nobody says that this broker is the application's: of its queues, those count that the source names."""

    @property
    def library(self) -> str:
        """Whose workers serve it: a broker that is read whoever uses it is most often Celery's."""
        return "rq" if self.broker.library.name == "rq" else self.declared_library or "celery"

    @property
    def queues(self) -> list[str]:
        """Those of its application, by broker, source and workers; else the one where its first job will be."""
        return self.known_queues or [CELERY_DEFAULT_QUEUE]

    @property
    def known_queues(self) -> list[str]:
        """The same, and none where the application is not known to have any."""
        names = [each.name for each in self.broker.queues if not each.is_aside and self._is_own(each.name)]
        served = [queue for worker in self.workers for queue in worker.command.queues]
        return list(dict.fromkeys([*names, *self.declared, *served]))

    @property
    def is_own(self) -> bool:
        """Whether anything of it belongs to this folder's application."""
        return bool(self.known_queues or self.workers or self.is_of_application)

    @property
    def others_queues(self) -> list[str]:
        """The queues in the broker that are somebody else's."""
        return [each.name for each in self.broker.queues if not each.is_aside and not self._is_own(each.name)]

    @property
    def queues_aside(self) -> list[str]:
        """The queues of dead letters, of which none is its application's by source or workers."""
        return [each.name for each in self.broker.queues if each.is_aside and not self._is_named(each.name)]

    def declare(self, queues: Iterable[str]) -> None:
        """Note that the application of this folder reads it, and names ``queues`` in its source."""
        self.is_of_application = True
        self.declared += [each for each in queues if each not in self.declared]

    def serves(self, worker: RunningWorker, queue: str) -> bool:
        """Whether ``worker`` takes jobs of ``queue``; one that names no queues takes all that its application has."""
        unnamed = [each for each in self.known_queues if each not in worker.command.excluded]
        return queue in (worker.command.queues or unnamed or [CELERY_DEFAULT_QUEUE])

    def _is_named(self, queue: str) -> bool:
        return queue in self.declared or queue in _taken_by(self.workers)

    def _is_own(self, queue: str) -> bool:
        if self._is_named(queue):
            return True
        is_own_broker = bool(self.workers) or not self.is_declared_only
        return is_own_broker and queue not in _taken_by(self.strangers)


def _taken_by(workers: Iterable[RunningWorker]) -> set[str]:
    """The queues from which ``workers`` take: one of Celery's that names none takes at least the default one."""
    return {queue for each in workers for queue in each.command.queues or (CELERY_DEFAULT_QUEUE,)}


def connections(
    brokers: Iterable[FoundBroker],
    workers: Iterable[RunningWorker],
    *,
    strangers: Iterable[RunningWorker] = (),
) -> tuple[list[FoundConnection], list[RunningWorker]]:
    """``brokers`` with the workers that read each, and those of ``workers`` whose broker is none of ``brokers``."""
    found = [FoundConnection(name="", broker=each) for each in brokers]
    strays = []
    for worker in workers:
        of = _connection_of(worker, found) or _connection_by_hints(worker, found)
        if of is None:
            strays.append(worker)
        else:
            of.workers.append(worker)
    for worker in strangers:
        if (of := _connection_of(worker, found)) is not None:
            of.strangers.append(worker)
    return found, strays


def give_names(found: Iterable[FoundConnection], *, name: str | None) -> None:
    """Name each connection after its broker's kind, or ``name``, and each differently."""
    taken: list[str] = []
    for each in found:
        each.name = _free_name(name or usual_name(each.broker), each.broker.library.name, taken)
        taken.append(each.name)


def _connection_of(worker: RunningWorker, found: Sequence[FoundConnection]) -> FoundConnection | None:
    """The connection that ``worker`` reads by its URL or its addresses; ``None``: it is none, or they do not say."""
    own = _readable(worker, found)
    if (url := _url_of(worker)) is not None:
        return next(iter(_at(own, [url])), None)
    if at := _at(own, [_written(worker)]):
        return at[0]
    connected = _connected(worker, own)
    seen = [each for each in connected if each.broker.clients & worker.own_addresses]
    if seen or any(each.broker.other_clients & worker.own_addresses for each in connected):
        return next(iter(seen), None)
    hints = VARIABLES_OF[worker.command.library][1:]
    likely = [
        each
        for each in _likeliest(worker, connected, hints)
        if kind_of(each.broker) != "redis" or _speaks_for(worker, each, hints)  # which of its databases it reads
    ]
    return next(iter(likely), None)


def _connection_by_hints(worker: RunningWorker, found: Sequence[FoundConnection]) -> FoundConnection | None:
    """The connection that a worker of this folder most likely reads, where it is connected to none by an address.

    A socket in the file system is left, or a connection that nobody may see.
    """
    own = _readable(worker, found)
    if _url_of(worker) is not None or _connected(worker, own):
        return None
    hints = VARIABLES_OF[worker.command.library][1:]
    left = [each for each in own if worker.addresses is None or not each.broker.addresses]
    liked = _likeliest(worker, left, hints)
    return liked[0] if len(liked) == 1 and _speaks_for(worker, liked[0], hints) else None


def _readable(worker: RunningWorker, found: Sequence[FoundConnection]) -> list[FoundConnection]:
    """Those of its library, without servers of which its source names another database."""
    written = _written(worker)
    return [
        each
        for each in found
        if (each.broker.library.name == "rq") == (worker.command.library == "rq")
        and (each in _at([each], [written]) or _servers_of(written).isdisjoint(_servers_of(each.broker.candidate.url)))
    ]


def _connected(worker: RunningWorker, found: Sequence[FoundConnection]) -> list[FoundConnection]:
    """Those to whose addresses it is connected."""
    return [each for each in found if each.broker.addresses & (worker.addresses or frozenset())]


def _written(worker: RunningWorker) -> str:
    """The URL that its source writes out, and that may be another one by now; empty where it writes none."""
    return as_read((worker.app.broker or "") if worker.app else "")


def _servers_of(url: str) -> set[tuple[str, int | None]]:
    """Where the servers of the URL are, whichever of their databases it names."""
    return {(urlsplit(url).path, None)} if url.startswith("unix:///") else set(addresses_of(url))


def _url_of(worker: RunningWorker) -> str | None:
    """The URL that its command line, its environment or its library says it reads."""
    found = worker.command.broker or worker.environment.get(VARIABLES_OF[worker.command.library][0])
    of_app = worker.app.given_url(worker.environment) if worker.app else ""
    if not found and worker.command.library == "rq" and not worker.command.has_settings:
        return RQ_DEFAULT_URL
    return found or of_app or None


def _likeliest(
    worker: RunningWorker, found: Sequence[FoundConnection], hints: Sequence[str]
) -> Sequence[FoundConnection]:
    """Those of ``found`` that have most in common with what is known of ``worker``."""
    for count in (3, 2, 1):
        better = [each for each in found if _speaks_for(worker, each, hints) >= count]
        if better:
            return better
    return found


def _speaks_for(worker: RunningWorker, found: FoundConnection, hints: Sequence[str]) -> int:
    """How much points to ``found``: 3 the source of the application, 2 names of queues, 1 a variable, 0 nothing."""
    named = set(worker.command.queues)
    if worker.app and found.broker.candidate.source == str(worker.app.file):
        return 3
    if named and named <= {queue.name for queue in found.broker.queues}:
        return 2
    return int(bool(_at([found], (worker.environment.get(name, "") for name in hints))))


def _at(found: Iterable[FoundConnection], urls: Iterable[str]) -> list[FoundConnection]:
    places = {place_of(as_read(url)) for url in urls if url}
    return [each for each in found if each.broker.candidate.place in places]


def usual_name(broker: FoundBroker) -> str:
    kind = kind_of(broker)
    return broker.library.name if kind == "redis" and broker.library.name != "rq" else kind


def _free_name(name: str, library: str, taken: Sequence[str]) -> str:
    if name not in taken:
        return name
    number = 2
    base = f"{name}-{library}" if not name.startswith(library) else name
    free = base
    while free in taken:
        free = f"{base}-{number}"
        number += 1
    return free


def kind_of(broker: FoundBroker) -> str:
    return NAMES.get(Connection(name="", url=broker.candidate.url).scheme, broker.library.name)
