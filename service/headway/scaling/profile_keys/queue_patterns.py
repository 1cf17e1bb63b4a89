"""Patterns of queue names, as ``shop/tenant-*``: what one is, what it matches, and when two of them conflict.

Only ``*`` is special: it stands for any characters, also for none. The connection of a queue is always named.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from headway.errors import Invalid

ANY = "*"
PATTERNS_MAX = 20  # per pool: each is compared with each queue that no pool names
STARS_MAX = 8  # per pattern


def is_pattern(name: str) -> bool:
    """Whether ``name`` may stand for several queues."""
    return ANY in name


def is_match(pattern: str, name: str) -> bool:
    """Whether ``pattern`` stands for ``name``. A pattern without ``*`` stands for itself alone."""
    first, *rest = pattern.split(ANY)
    if not rest:
        return pattern == name
    *middle, last = rest
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    # Each part at its earliest place leaves the most room for the next: one pass, whatever the name holds.
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def is_within(inner: str, outer: str) -> bool:
    """Whether ``outer`` stands for each queue that ``inner`` stands for."""
    # A character that no name holds: only a star of ``outer`` can stand for a star of ``inner``.
    return is_match(outer, inner.replace(ANY, "\0"))


def do_overlap(one: str, other: str) -> bool:
    """Whether there can be a queue that both patterns stand for."""
    if not is_pattern(one) or not is_pattern(other):
        return is_match(one, other) or is_match(other, one)
    starts, ends = zip(_ends_of(one), _ends_of(other), strict=True)
    begin_alike = starts[0].startswith(starts[1]) or starts[1].startswith(starts[0])
    return begin_alike and (ends[0].endswith(ends[1]) or ends[1].endswith(ends[0]))


def narrowness(pattern: str) -> tuple[int, int]:
    """A key by which a pattern that lies within another one sorts before it."""
    # Of stars beside each other, one counts.
    stars = sum(now == ANY != before for before, now in pairwise(f" {pattern}"))
    return -len(pattern.replace(ANY, "")), stars


def refuse_unsound_patterns(profile: Any) -> None:
    """Refuse a profile with a pattern that is no sound one, or that stands where it means nothing.

    It is asked of what people apply. What an earlier version has stored took each star for a letter, and goes on.

    Raises:
        Invalid: with a sentence for each such pattern.
    """
    patterns = [queue for queue in profile.queues if is_pattern(queue)]
    if profile.pools_max is not None and len(patterns) < len(profile.queues):
        raise Invalid(
            f"profile {profile.pool!r}: pools_max makes a pool of each queue that a pattern matches: queues may hold "
            "patterns only"
        )
    breaches = [text for pattern in patterns for text in _wrong_with(pattern)]
    if len(patterns) > PATTERNS_MAX:
        breaches.append(f"queues has {len(patterns)} patterns; at most {PATTERNS_MAX} fit")
    elsewhere = {
        "pool": (profile.pool,),
        "template": (profile.template,),
        "member_objectives": profile.member_objectives,
    }
    breaches += [
        f"{key}: {name!r} is a pattern, which only queues may hold: name one"
        for key, names in elsewhere.items()
        for name in names
        if is_pattern(name)
    ]
    if breaches:
        raise Invalid(*(f"profile {profile.pool!r}: {text}" for text in breaches))


def conflicts(pool: str, queues: Iterable[str], others: Mapping[str, Iterable[str]]) -> list[str]:
    """A sentence for each pattern that another pool's pattern crosses: neither is the narrower one, so none owns.

    A pattern that lies within another pool's is its exception: the narrower one owns what both stand for.
    """
    return [
        f"queues {pattern!r} of pool {pool!r} and {other!r} of pool {owner!r} stand for the same queues, and neither "
        "lies within the other: a queue belongs to exactly one pool, so narrow one of them"
        for pattern in filter(is_pattern, queues)
        for owner, theirs in sorted(others.items())
        if owner != pool
        for other in filter(is_pattern, theirs)
        if do_overlap(pattern, other) and is_within(pattern, other) == is_within(other, pattern)
    ]


def _wrong_with(pattern: str) -> Iterator[str]:
    connection, _, name = pattern.partition("/")
    if is_pattern(connection) or not name:
        yield f"queues: {pattern!r} must name its connection, as in 'redis/tenant-*'"
    if pattern.count(ANY) > STARS_MAX:
        yield f"queues: {pattern!r} has more than {STARS_MAX} '*'"


def _ends_of(pattern: str) -> tuple[str, str]:
    """What each name begins and ends with that the pattern stands for."""
    parts = pattern.split(ANY)
    return parts[0], parts[-1]
