"""What members of kombu's binding sets say, whatever separates their parts."""

import pytest
from kombu.transport.virtual.exchange import TopicExchange

from headway.collect.celery.binding_members import SEPARATOR, Binding, binding_from

TOPIC = TopicExchange(channel=None)
SEPARATORS = (SEPARATOR, ":", "::", "|", "--", "<>", ":1:", "\x1f")


def member(routing_key: str, queue: str, separator: str, *, is_topic: bool = False) -> str:
    """As kombu writes it."""
    pattern = TOPIC.prepare_bind(queue, "any", routing_key, {})[1] if is_topic else ""
    return separator.join([routing_key, pattern, queue])


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize(
    ("exchange", "routing_key", "queue"),
    [
        ("mail", "mail", "mail"),  # as Celery makes a queue by itself
        ("celery", "celery", "mail"),  # of ``task_queues`` without a routing key
        ("shop", "mail.urgent", "mail.urgent"),
        ("mail", "urgent", "mail"),
    ],
)
def test_a_separator_is_what_stands_twice_between_names_that_are_known(
    exchange: str, routing_key: str, queue: str, separator: str
) -> None:
    found = binding_from(member(routing_key, queue, separator), exchange=exchange, separators=[SEPARATOR])
    assert found == Binding(routing_key=routing_key, pattern="", queue=queue, separator=separator)


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("routing_key", ["mail.#", "mail.*.now", "mail-box"])
def test_a_topic_exchange_is_read_by_its_pattern(routing_key: str, separator: str) -> None:
    text = member(routing_key, "inbox", separator, is_topic=True)
    found = binding_from(text, exchange="shop", separators=[SEPARATOR])
    assert found is not None
    assert (found.routing_key, found.queue, found.separator) == (routing_key, "inbox", separator)
    assert found.pattern


def test_what_others_have_shown_is_tried_first() -> None:
    """Alone, two things stand twice in it."""
    text = member("a--b", "c--d", ":")
    assert binding_from(text, exchange="shop", separators=[SEPARATOR]) is None
    found = binding_from(text, exchange="shop", separators=[SEPARATOR, ":"])
    assert found == Binding(routing_key="a--b", pattern="", queue="c--d", separator=":")


@pytest.mark.parametrize("text", ["", "mail", "a:b", "mail" + "x" * 5_000, "^", "a^$b", "::"])
def test_what_is_no_binding_is_none(text: str) -> None:
    assert binding_from(text, exchange="mail", separators=[SEPARATOR]) is None
