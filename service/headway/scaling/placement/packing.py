"""Whether workers of several sizes fit on a few hosts together, and how: an exact search of a bounded length.

Filling the hosts one after the other, each as full as it can be, misses nothing: what a host could still take from a
later one only makes that one emptier.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Amounts = tuple[int, ...]
"""Of each resource."""
Counts = tuple[int, ...]
"""Workers by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """A host to be filled: what it has left, and what one worker of each kind takes there; ``None``: it cannot run."""

    left: Amounts
    costs: Sequence[Amounts | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What came of a search."""

    fills: tuple[Counts, ...] | None
    """Workers by kind on each host; ``None`` where they do not fit, or the search ended before it knew."""
    steps: int
    """More than were allowed where the search ended before it knew."""


def packed(bins: Sequence[Bin], counts: Counts, *, steps_max: int) -> Packed:
    """How ``counts`` workers fit into ``bins``, within ``steps_max`` steps.

    For twelve workers on six hosts a few hundred steps are usual and some ten thousand the most that was seen.
    """
    search = _Search(bins, counts, steps_max)
    is_found = search.is_through(0, counts)
    return Packed(fills=search.fills() if is_found else None, steps=steps_max - search.steps_left)


class _Search:
    """Depth first through the hosts, from the one that can hold the least; a dead end is met once."""

    def __init__(self, bins: Sequence[Bin], counts: Counts, steps_max: int) -> None:
        self._order = sorted(range(len(bins)), key=lambda number: (_most(bins[number], counts), number))
        self._bins = [bins[number] for number in self._order]
        self._kinds = _largest_first(bins, counts)
        self._chosen: list[Counts] = [tuple(0 for _ in counts)] * len(bins)
        self._dead: set[tuple[int, Counts]] = set()
        self._from_here = _sums(self._bins, counts)
        self._least = _least_costs(bins, counts)
        self.steps_left = steps_max

    def fills(self) -> tuple[Counts, ...]:
        """What was chosen, in the order in which the hosts were given."""
        by_number = dict(zip(self._order, self._chosen, strict=True))
        return tuple(by_number[number] for number in range(len(self._order)))

    def is_through(self, at: int, left: Counts) -> bool:
        """Whether ``left`` fit on the hosts from ``at`` on."""
        if not any(left):
            self._chosen[at:] = [left] * (len(self._bins) - at)
            return True
        if at == len(self._bins) or (at, left) in self._dead or not self._may_fit(at, left):
            return False
        for fill in self._fills(self._bins[at], left):
            self._chosen[at] = fill
            if self.is_through(at + 1, tuple(have - put for have, put in zip(left, fill, strict=True))):
                return True
            if self.steps_left < 0:
                return False
        self._dead.add((at, left))
        return False

    def _may_fit(self, at: int, left: Counts) -> bool:
        """Whether the hosts from ``at`` on have enough of everything, were they one."""
        alone, amounts = self._from_here[at]
        if any(have > most for have, most in zip(left, alone, strict=True)):
            return False
        return all(
            sum(have * least[resource] for have, least in zip(left, self._least, strict=True)) <= amount
            for resource, amount in enumerate(amounts)
        )

    def _fills(self, bin_: Bin, left: Counts) -> Iterator[Counts]:
        """Ways to fill a host from ``left`` so that no more of it fits, largest workers first."""
        fill = [0] * len(left)

        def fill_from(number: int, room: Amounts) -> Iterator[Counts]:
            self.steps_left -= 1
            if self.steps_left < 0:
                return
            if number == len(self._kinds):
                if not any(fill[kind] < left[kind] and _fitting(bin_.costs[kind], room, 1) for kind in self._kinds):
                    yield tuple(fill)
                return
            kind = self._kinds[number]
            cost = bin_.costs[kind]
            for count in range(_fitting(cost, room, left[kind]), -1, -1):
                fill[kind] = count
                yield from fill_from(number + 1, _without(room, cost, count) if count else room)
            fill[kind] = 0

        yield from fill_from(0, bin_.left)


def _fitting(cost: Amounts | None, room: Amounts, most: int) -> int:
    """How many workers fit, up to ``most``."""
    if cost is None:
        return 0
    for amount, have in zip(cost, room, strict=True):
        if amount:
            most = min(most, have // amount)
    return max(0, most)


def _without(room: Amounts, cost: Amounts | None, count: int) -> Amounts:
    return tuple(have - amount * count for have, amount in zip(room, cost or room, strict=True))


def _most(bin_: Bin, counts: Counts) -> int:
    """How many workers a host could hold, each kind alone: the fewer, the sooner it is filled."""
    return sum(_fitting(cost, bin_.left, count) for cost, count in zip(bin_.costs, counts, strict=True))


def _sums(bins: Sequence[Bin], counts: Counts) -> list[tuple[Counts, Amounts]]:
    """From each host on: how many of each kind they hold alone, and what they have of each resource."""
    resources = len(bins[0].left) if bins else 0
    sums: list[tuple[Counts, Amounts]] = [((0,) * len(counts), (0,) * resources)]
    for bin_ in reversed(bins):
        alone, amounts = sums[-1]
        more = (_fitting(cost, bin_.left, count) for cost, count in zip(bin_.costs, counts, strict=True))
        sums.append(
            (
                tuple(before + each for before, each in zip(alone, more, strict=True)),
                tuple(before + max(0, each) for before, each in zip(amounts, bin_.left, strict=True)),
            )
        )
    return sums[::-1]


def _least_costs(bins: Sequence[Bin], counts: Counts) -> list[Amounts]:
    """Of each kind the least that one takes anywhere."""
    resources = range(len(bins[0].left) if bins else 0)
    found = []
    for kind in range(len(counts)):
        costs = [cost for cost in (bin_.costs[kind] for bin_ in bins) if cost is not None]
        found.append(tuple(min((cost[resource] for cost in costs), default=0) for resource in resources))
    return found


def _largest_first(bins: Sequence[Bin], counts: Counts) -> list[int]:
    """The kinds of which there are any, by the part of all hosts that one takes of what it takes most of."""
    totals = [max(1, sum(amounts)) for amounts in zip(*(bin_.left for bin_ in bins), strict=True)]
    least = _least_costs(bins, counts)
    parts = [max((amount / total for amount, total in zip(each, totals, strict=True)), default=0.0) for each in least]
    return sorted((kind for kind, count in enumerate(counts) if count), key=lambda kind: (-parts[kind], kind))
