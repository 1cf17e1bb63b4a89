"""Which pools serve what was found: as the workers that run divide the queues, else a pool for each queue."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from headway.cli.setup.broker_candidates import VARIABLES_OF, as_read, place_of
from headway.cli.setup.broker_survey import FoundBroker
from headway.cli.setup.running_workers import RunningWorker
from headway.cli.setup.scaffold import ConnectionDraft, Draft, PoolDraft
from headway.cli.setup.worker_templates import Templates
from headway.collect.libraries import Libraries
from headway.connections import AUTO, Connection
from headway.errors import Misconfigured

CELERY_DEFAULT_QUEUE = "celery"
NAMES = {"redis": "redis", "rediss": "redis", "unix": "redis", "amqp": "rabbitmq", "amqps": "rabbitmq"}
EXAMPLE_QUEUE = "emails"


@dataclass(slots=True, kw_only=True)
class FoundConnection:
    """A broker that will be a connection, with the workers here that read it."""

    name: str
    broker: FoundBroker
    workers: list[RunningWorker] = field(default_factory=list)

    @property
    def library(self) -> str:
        """Whose workers serve it: a broker that is read whoever uses it is most often Celery's."""
        return "rq" if self.broker.library.name == "rq" else "celery"

    @property
    def queues(self) -> list[str]:
        """Those in the broker, and those that only its workers name; else where the first job will be."""
        names = [each.name for each in self.broker.queues]
        served = [queue for worker in self.workers for queue in worker.command.queues]
        return list(dict.fromkeys([*names, *served])) or [CELERY_DEFAULT_QUEUE]

    def serves(self, worker: RunningWorker, queue: str) -> bool:
        """Whether ``worker`` takes jobs of ``queue``; one that names no queues takes all that its application has."""
        return queue in (worker.command.queues or self._unnamed(worker))

    def _unnamed(self, worker: RunningWorker) -> list[str]:
        found = [each.name for each in self.broker.queues if each.name not in worker.command.excluded]
        return found or [CELERY_DEFAULT_QUEUE]


def connections(
    brokers: Iterable[FoundBroker],
    workers: Iterable[RunningWorker],
    *,
    name: str | None = None,
    apps_at: Collection[tuple[object, ...]] = (),
) -> tuple[list[FoundConnection], list[RunningWorker]]:
    """The brokers with queues, workers or a Celery application, and the workers whose broker is none of ``brokers``.

    ``apps_at``: the places of brokers that applications here name.
    """
    found = [FoundConnection(name="", broker=each) for each in brokers]
    strays = []
    for worker in workers:
        of = _connection_of(worker, found)
        if of is None:
            strays.append(worker)
        else:
            of.workers.append(worker)
    used = [each for each in found if each.broker.queues or each.workers or _is_of_app(each.broker, apps_at)]
    taken: list[str] = []
    for each in used:
        each.name = _free_name(name or _usual_name(each.broker), each.broker.library.name, taken)
        taken.append(each.name)
    return used, strays


def _is_of_app(broker: FoundBroker, apps_at: Collection[tuple[object, ...]]) -> bool:
    return broker.library.name == "celery" and broker.candidate.place in apps_at


def as_one_library(brokers: Iterable[FoundBroker], *, is_celery: bool) -> list[FoundBroker]:
    """``brokers``, each RabbitMQ once: as Celery's where ``is_celery``, or a variable of Celery's names it.

    In a Redis, each library has keys of its own; in RabbitMQ, every library has the same queues.
    """
    kept = []
    for each in brokers:
        is_any = _kind(each) != "rabbitmq" or each.library.name not in {"celery", "rabbitmq"}
        means_celery = is_celery or each.candidate.variable == VARIABLES_OF["celery"][0]
        if is_any or (each.library.name == "celery") == means_celery:
            kept.append(each)
    return kept


def draft(found: Sequence[FoundConnection], templates: Templates, libraries: Libraries) -> Draft:
    """What to write of what was found."""
    return Draft(
        connections=[_connection_draft(each, found, libraries) for each in found],
        pools=[pool for each in found for pool in _pools(each, templates)],
    )


def example(
    broker: FoundBroker, templates: Templates, libraries: Libraries, *, name: str | None, is_celery: bool
) -> Draft:
    """What to write where nothing waits and nobody works: a connection, and a pool.

    Where a Celery application is here, that is Celery's own default queue; else an example.
    """
    found = FoundConnection(name=name or _usual_name(broker), broker=broker)
    is_known = is_celery and found.library == "celery"
    queue = CELERY_DEFAULT_QUEUE if is_known else EXAMPLE_QUEUE
    preset = templates.plain(found.library, [queue], broker.candidate)
    return Draft(
        connections=[_connection_draft(found, [found], libraries)],
        pools=[PoolDraft(connection=found.name, queues=[queue], template=preset)],
        is_example=not is_known,
    )


def _connection_draft(
    found: FoundConnection, all_found: Sequence[FoundConnection], libraries: Libraries
) -> ConnectionDraft:
    broker = found.broker
    is_alone = sum(each.broker.candidate.place == broker.candidate.place for each in all_found) == 1
    return ConnectionDraft(
        name=found.name,
        url=broker.candidate.url,
        library=None if is_alone and _is_meant(broker, libraries) else broker.library.name,
        management_url=broker.candidate.management_url,
    )


def _is_meant(broker: FoundBroker, libraries: Libraries) -> bool:
    """Whether the URL alone means this library."""
    try:
        return libraries.of(Connection(name="", url=broker.candidate.url, library=AUTO)).name == broker.library.name
    except Misconfigured:
        return False


def _pools(found: FoundConnection, templates: Templates) -> list[PoolDraft]:
    """Each queue in one pool: first those that workers here name, as they group them; then each by itself."""
    candidate = found.broker.candidate
    pools = []
    left = found.queues
    for worker in found.workers:
        queues = [queue for queue in worker.command.queues if queue in left]
        if queues:
            left = [queue for queue in left if queue not in queues]
            pools.append(
                PoolDraft(connection=found.name, queues=queues, template=templates.like(worker, queues, candidate))
            )
    unnamed = [each for each in found.workers if not each.command.queues]
    for queue in left:
        like = next((each for each in unnamed if queue not in each.command.excluded), None) or next(
            iter(found.workers), None
        )
        made = templates.like(like, [queue], candidate) if like else templates.plain(found.library, [queue], candidate)
        pools.append(PoolDraft(connection=found.name, queues=[queue], template=made))
    return pools


def _connection_of(worker: RunningWorker, found: Sequence[FoundConnection]) -> FoundConnection | None:
    """The connection that ``worker`` reads; ``None``: it is none of them, or nobody can say which."""
    own = [each for each in found if each.library == worker.command.library]
    decisive, *hints = VARIABLES_OF[worker.command.library]
    read = worker.command.broker or worker.environment.get(decisive) or worker.app_broker
    if read:
        return next(iter(_at(own, [read])), None)
    connected = [each for each in own if each.broker.addresses & (worker.addresses or frozenset())]
    if connected:
        return _likeliest(worker, connected, hints)[0]
    # It is connected to none of their addresses: a socket in the file system is left, or one that nobody may see.
    left = [each for each in own if worker.addresses is None or not each.broker.addresses]
    liked = _likeliest(worker, left, hints)
    return liked[0] if len(liked) == 1 and _speaks_for(worker, liked[0], hints) else None


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
    if found.broker.candidate.source == worker.app_source:
        return 3
    if named and named <= {queue.name for queue in found.broker.queues}:
        return 2
    return int(bool(_at([found], (worker.environment.get(name, "") for name in hints))))


def _at(found: Iterable[FoundConnection], urls: Iterable[str]) -> list[FoundConnection]:
    places = {place_of(as_read(url)) for url in urls if url}
    return [each for each in found if each.broker.candidate.place in places]


def _usual_name(broker: FoundBroker) -> str:
    kind = _kind(broker)
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


def _kind(broker: FoundBroker) -> str:
    return NAMES.get(Connection(name="", url=broker.candidate.url).scheme, broker.library.name)
