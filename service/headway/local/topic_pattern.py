"""Binding keys of topic exchanges, which Celery's emitter and collector both read."""

from collections.abc import Sequence

DELAY_WORDS = 28  # Celery's delayed delivery in RabbitMQ puts the bits of a delay in front of a message's key


def topic_matches(pattern: Sequence[str], key: Sequence[str]) -> bool:
    """Whether a message with the words ``key`` goes to who bound with ``pattern``: ``*`` is a word, ``#`` any number.

    Takes no longer than the product of both lengths, whatever they are.
    """
    reached = {0}  # how many words of the key are used up
    for word in pattern:
        if word == "#":
            reached = set(range(min(reached), len(key) + 1))
        else:
            reached = {used + 1 for used in reached if used < len(key) and word in ("*", key[used])}
        if not reached:
            return False
    return len(key) in reached


def undelayed(routing_key: str) -> str:
    """``routing_key`` as it was before Celery's delayed delivery, whose exchanges replace that of the message."""
    words = routing_key.split(".", DELAY_WORDS)
    is_delayed = len(words) > DELAY_WORDS and all(word in ("0", "1") for word in words[:DELAY_WORDS])
    return words[-1] if is_delayed else routing_key
