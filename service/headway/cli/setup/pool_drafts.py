"""Which pools serve what was found: as the workers that run divide the queues, else a pool for each queue."""

from collections.abc import Iterable, Sequence

from headway.cli.setup.broker_candidates import VARIABLES_OF
from headway.cli.setup.broker_survey import FoundBroker
from headway.cli.setup.found_connections import FoundConnection, kind_of, usual_name
from headway.cli.setup.scaffold import Draft, PoolDraft
from headway.cli.setup.source.declared_queues import CELERY_DEFAULT_QUEUE
from headway.cli.setup.worker_templates import Templates
from headway.collect.libraries import Libraries
from headway.connections import AUTO, Connection
from headway.errors import Misconfigured

EXAMPLE_QUEUE = "emails"


def as_one_library(brokers: Iterable[FoundBroker], *, is_celery: bool) -> list[FoundBroker]:
    """``brokers``, each RabbitMQ once: as Celery's where ``is_celery``, or a variable of Celery's names it.

    In a Redis, each library has keys of its own; in RabbitMQ, every library has the same queues.
    """
    kept = []
    for each in brokers:
        is_any = kind_of(each) != "rabbitmq" or each.library.name not in {"celery", "rabbitmq"}
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
    found = FoundConnection(name=name or usual_name(broker), broker=broker)
    is_known = is_celery and found.library == "celery"
    queue = CELERY_DEFAULT_QUEUE if is_known else EXAMPLE_QUEUE
    preset = templates.plain(found.library, [queue], broker.candidate)
    return Draft(
        connections=[_connection_draft(found, [found], libraries)],
        pools=[PoolDraft(connection=found.name, queues=[queue], template=preset)],
        is_example=not is_known,
    )


def _connection_draft(found: FoundConnection, all_found: Sequence[FoundConnection], libraries: Libraries) -> Connection:
    broker = found.broker
    is_alone = sum(each.broker.candidate.place == broker.candidate.place for each in all_found) == 1
    return Connection(
        name=found.name,
        url=broker.candidate.url,
        library=AUTO if is_alone and _is_meant(broker, libraries) else broker.library.name,
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
    for queue in left:
        fit = [each for each in found.workers if templates.can_serve(each, queue)]
        unnamed = (each for each in fit if not each.command.queues and queue not in each.command.excluded)
        like = next(unnamed, None) or next(iter(fit), None)
        made = templates.like(like, [queue], candidate) if like else templates.plain(found.library, [queue], candidate)
        pools.append(PoolDraft(connection=found.name, queues=[queue], template=made))
    return pools
