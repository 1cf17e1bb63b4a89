"""What a limit is: a named rule that says itself when it is in force, and what it reads off the clock."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from headway.scaling.policy.ground import Ground
from headway.scaling.view import PoolView

Rule = Callable[[int, Ground], int]
"""It moves a count in its declared way, and in no other."""
IsInForce = Callable[[Ground], bool]
Clock = Callable[[PoolView, float], object]
"""What a limit reads off the clock for a view at a moment, Unix seconds: while that is the same, so is what it says."""


def always(ground: Ground) -> bool:  # noqa: ARG001 - the shape of a condition
    """Whether a limit that every pool has is in force: it is."""
    return True


def unknown_clock(view: PoolView, now_s: float) -> object:  # noqa: ARG001 - the shape of a clock
    """What a limit reads of which nobody knows it: never the same twice."""
    return object()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Limit:
    """A named reason to change the count. It is called like its rule; two limits are the same if they are one value."""

    name: str
    rule: Rule
    is_in_force: IsInForce = always
    """Whether the profile or the moment sets it. Where it is not set, its rule leaves every count as it is."""
    clock: Clock | None = None
    """``None`` if it says the same at any time, of the same pool and the same memory."""

    def __call__(self, count: int, ground: Ground) -> int:
        """``count`` as the limit leaves it."""
        return self.rule(count, ground)


def limit(*, is_in_force: IsInForce = always, clock: Clock | None = None) -> Callable[[Rule], Limit]:
    """A decorator that makes a rule the limit of its name."""

    def made(rule: Rule) -> Limit:
        return Limit(name=rule.__name__, rule=rule, is_in_force=is_in_force, clock=clock)

    return made


@lru_cache(maxsize=256)  # one per strategy
def limit_of(rule: Rule) -> Limit:
    """The limit that ``rule`` is: itself, or of a strategy's own function one that is in force, by an unknown clock."""
    return rule if isinstance(rule, Limit) else Limit(name=rule.__name__, rule=rule, clock=unknown_clock)
