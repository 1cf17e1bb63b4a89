"""Binding keys of topic exchanges, which Celery's emitter and collector both read."""

from collections.abc import Sequence


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
