"""What a member of kombu's binding sets says, whatever its application has set as ``sep``.

    routing key, separator, pattern, separator, queue

The pattern is empty, or of a topic exchange the routing key as a regular expression. Nothing in the broker names the
separator, and each application may have one of its own: it is what stands twice between two names that are known.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SEPARATOR = "\x06\x16"  # kombu's own default
MEMBER_CHARS_MAX = 2_000  # of a longer one the separator is not searched for
_BEHIND, _BEFORE = re.compile(r"(\W.*)\1(.+)", re.DOTALL), re.compile(r"(.+?)(\W.*)\2", re.DOTALL)
_DOUBLED = re.compile(r"(\W+)\1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """By which route messages come to a queue."""

    routing_key: str
    pattern: str
    """Empty, but of a topic exchange."""
    queue: str
    separator: str


def binding_from(member: str, *, exchange: str, separators: Iterable[str]) -> Binding | None:
    """The binding that ``member`` is; ``None`` where its separator does not show.

    Args:
        member: Of the set of ``exchange``.
        exchange: By which most queues are called, and most routing keys.
        separators: Those of other members, the likeliest first.
    """
    for separator in separators:
        if (found := _split(member, separator)) is not None:
            return found
    return next(_searched(member, exchange), None) if len(member) <= MEMBER_CHARS_MAX else None


def _split(member: str, separator: str) -> Binding | None:
    routing_key, doubled, queue = member.partition(2 * separator)
    if doubled:
        return Binding(routing_key=routing_key, pattern="", queue=queue, separator=separator)
    routing_key, _, rest = member.partition(separator)
    pattern, _, queue = rest.rpartition(separator)
    if pattern and (separator == SEPARATOR or pattern in _patterns(routing_key)):
        return Binding(routing_key=routing_key, pattern=pattern, queue=queue, separator=separator)
    return None


def _searched(member: str, exchange: str) -> Iterator[Binding]:
    """What ``member`` may be, the likeliest first."""
    for routing_key, pattern, separator, queue in (
        *_of_topics(member),
        *_between_twins(member),
        *_beside(member, exchange),
        *_between_any(member),
    ):
        yield Binding(routing_key=routing_key, pattern=pattern, queue=queue, separator=separator)


_Parts = tuple[str, str, str, str]


def _of_topics(member: str) -> Iterator[_Parts]:
    for begins in (each.start() for each in re.finditer(r"\^", member)):
        for length in range(1, begins):
            separator = member[length:begins]
            for pattern in _patterns(member[:length]):
                ends = f"{pattern}{separator}"
                if member.startswith(ends, begins) and (queue := member[begins + len(ends) :]):
                    yield member[:length], pattern, separator, queue


def _between_twins(member: str) -> Iterator[_Parts]:
    """Where the routing key is the queue's name, as where Celery makes a queue by itself."""
    for length in range((len(member) - 2) // 2, 0, -1):
        name, middle = member[:length], member[length : len(member) - length]
        separator = middle[: len(middle) // 2]
        if separator and member.endswith(name) and middle == 2 * separator:
            yield name, "", separator, name


def _beside(member: str, exchange: str) -> Iterator[_Parts]:
    """Where the routing key or the queue is called like the exchange."""
    rest = member.removeprefix(exchange)
    if exchange and rest != member and (found := _BEHIND.fullmatch(rest)) is not None:
        yield exchange, "", found.group(1), found.group(2)
    head = member.removesuffix(exchange)
    if exchange and head != member and (found := _BEFORE.fullmatch(head)) is not None:
        yield found.group(1), "", found.group(2), exchange


def _between_any(member: str) -> Iterator[_Parts]:
    """Where one thing alone stands twice, and no letter is in it."""
    found = list(_DOUBLED.finditer(member))
    if len(found) == 1 and found[0].start() and member[found[0].end() :]:
        yield member[: found[0].start()], "", found[0].group(1), member[found[0].end() :]


def _patterns(routing_key: str) -> tuple[str, ...]:
    """As versions of kombu write the binding key of a topic exchange."""
    escaped = "".join(each if each.isalnum() or each in ".#*" else f"\\{each}" for each in routing_key)
    return tuple(
        "^{}$".format(r"\.".join({"*": star, "#": r".*?"}.get(word, word) for word in escaped.split(".")))
        for star in (r"[^\.]+", r".*?[^\.]")
    )
