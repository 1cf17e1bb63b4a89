"""Commands to a Redis whose bytes are made once: packing a command costs more than to send it and read its reply."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import redis


class Prepared(NamedTuple):
    """One or more commands as they are sent."""

    packed: bytes
    commands: int = 1


def together(*each: Prepared) -> Prepared:
    """All commands of ``each``, in that order."""
    return Prepared(b"".join(one.packed for one in each), sum(one.commands for one in each))


def prepared(*words: str | int) -> Prepared:
    """A command: its name and its arguments."""
    return Prepared(beginning(words, words_in_all=len(words)))


def beginning(words: Iterable[str | int], *, words_in_all: int) -> bytes:
    """The bytes of the first ``words`` of a command of ``words_in_all``; ``ending`` of the others completes it."""
    return b"*%d\r\n%b" % (words_in_all, ending(words))


def ending(words: Iterable[str | int]) -> bytes:
    """The bytes of the last ``words`` of a command."""
    # Ids and names are asked for as they were read, whatever their bytes: as redis_client decodes them.
    encoded = [str(word).encode(errors="surrogateescape") for word in words]
    return b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded])


def exchange(client: "redis.Redis", batch: Iterable[Prepared]) -> list[Any]:
    """The replies to all commands of ``batch``, sent in one round trip: as the server gave them, errors among them.

    Raises ``redis.RedisError`` or ``OSError`` where the server does not answer.
    """
    batch = list(batch)
    if not batch:
        return []
    packed = b"".join(each.packed for each in batch)
    replies = sum(each.commands for each in batch)
    pool = client.connection_pool
    connection: Any = pool.get_connection()
    try:
        received: list[Any] = connection.retry.call_with_retry(
            lambda: _exchanged(connection, packed, replies), lambda _: connection.disconnect()
        )
        return received
    finally:
        pool.release(connection)


def sound(replies: Sequence[Any]) -> Sequence[Any]:
    """``replies``, none of which is an error: the first one is raised."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def scores_of(reply: Sequence[Any]) -> dict[str, float]:
    """Member -> score, of a reply in which they alternate, as RESP2 has it, or are pairs, as RESP3 has it."""
    if reply and isinstance(reply[0], list):
        return {member: float(score) for member, score in reply}
    each = iter(reply)
    return {member: float(score) for member, score in zip(each, each, strict=True)}


def _exchanged(connection: Any, packed: bytes, replies: int) -> list[Any]:
    connection.send_packed_command([packed])
    read, received = connection.read_response, []
    for _ in range(replies):
        try:
            received.append(read())
        except redis.ResponseError as error:
            received.append(error)
    return received
