"""Which queues of a RabbitMQ have the dead letters of others."""

import pytest

from headway.collect.rabbitmq.dead_letters import queues_aside
from headway.collect.rabbitmq.management_api import ExchangeBinding, ListedQueue


def queue(name: str, exchange: str | None = None, key: str = "", *, expires: bool = False) -> ListedQueue:
    return ListedQueue(
        name=name,
        kind="classic",
        is_transient=False,
        ready_jobs=0,
        unacked_jobs=0,
        state="running",
        dead_letter_exchange=exchange,
        dead_letter_key=key,
        expires_after_ms=1_000 if expires else None,
    )


@pytest.mark.parametrize(
    ("queues", "bindings", "aside"),
    [
        ([queue("mail"), queue("mail.dead")], [], set()),  # the name alone says nothing
        ([queue("mail", "", "mail.dead"), queue("mail.dead")], [], {"mail.dead"}),
        ([queue("mail", "dlx"), queue("dead")], [("dlx", "dead"), ("", "mail"), ("", "dead")], {"dead"}),
        ([queue("mail", "dlx"), queue("news")], [("news", "news")], set()),  # the exchange leads nowhere
        # A retry waits until it expires, and goes back to the queue of jobs.
        ([queue("mail", "", "wait"), queue("wait", "", "mail", expires=True)], [], {"wait"}),
        # Jobs that nobody took in time, of a queue that nothing is moved into.
        ([queue("mail", "", "dead", expires=True), queue("dead")], [], {"dead"}),
    ],
)
def test_dead_letters_are_aside_where_they_stay_or_wait(
    queues: list[ListedQueue], bindings: list[tuple[str, str]], aside: set[str]
) -> None:
    assert queues_aside(queues, [ExchangeBinding(*each, is_to_queue=True) for each in bindings], consumed=()) == aside


def test_dead_letters_that_somebody_takes_are_jobs() -> None:
    queues = [queue("mail", "", "mail.dead"), queue("mail.dead")]
    assert queues_aside(queues, [], consumed=["mail.dead"]) == frozenset()
