"""Queues to which RabbitMQ moves what other queues have rejected or let expire. Pure.

What is in them failed, or waits for its next attempt until it expires there. A worker that took from them would run
failed jobs again, or retry at once.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from headway.collect.rabbitmq.management_api import ExchangeBinding, ListedQueue


def queues_aside(
    queues: Sequence[ListedQueue], bindings: Iterable[ExchangeBinding], consumed: Collection[str]
) -> frozenset[str]:
    """Those of ``queues`` that take the others' dead letters, and keep them or let them expire.

    One that has its own dead letters and lets nothing expire is a queue of jobs, to which retries come back.

    Args:
        queues: All of the virtual host.
        bindings: Those of the virtual host.
        consumed: Those that have a consumer: somebody takes from them on purpose.
    """
    targets = set(_targets(queues, bindings))
    return frozenset(
        each.name
        for each in queues
        if each.name in targets
        and each.name not in consumed
        and (each.dead_letter_exchange is None or each.expires_after_ms is not None)
    )


def _targets(queues: Sequence[ListedQueue], bindings: Iterable[ExchangeBinding]) -> Iterator[str]:
    exchanges = {each.dead_letter_exchange for each in queues}
    # The default exchange knows each queue by its name.
    yield from (each.dead_letter_key for each in queues if each.dead_letter_exchange == "")
    yield from (each.target for each in bindings if each.is_to_queue and each.exchange and each.exchange in exchanges)
