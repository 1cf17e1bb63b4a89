"""How a key is declared beside its type: its bounds, and how its value is written.

A field is annotated ``Annotated[int, Range(1, 9)]`` or ``Annotated[int, Form(…)]``. ``mapping`` reads and checks
what is given for it, and `headway schema` describes it, both by that annotation alone. A field whose key has another
name says that in its metadata: ``field(metadata={"key": "measured"})``.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field
from functools import lru_cache
from math import inf
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

Schema = Mapping[str, Any]
"""What a value may be, as JSON Schema."""


@dataclass(frozen=True, slots=True)
class Range:
    """The bounds between which a number must lie."""

    low: float
    high: float
    excluded: Literal["", "low", "high", "both"] = ""
    """The bounds that are themselves refused."""
    unit: str = ""
    """As ``seconds``, to follow the bounds in a sentence."""
    why: str = ""
    """Why the bounds are these, or an example: what the sentence ends with."""

    def __contains__(self, value: float) -> bool:
        """Whether ``value`` lies in the range. NaN never does."""
        is_low = self.low < value if self.excluded in {"low", "both"} else self.low <= value
        return is_low and (value < self.high if self.excluded in {"high", "both"} else value <= self.high)

    def __str__(self) -> str:
        """The rule as a sentence without its subject."""
        return f"must lie {self.place}{self.why and f': {self.why}'}"

    @property
    def place(self) -> str:
        """The bounds in words, to follow *must lie* or *a number*."""
        if self.high == inf:
            return f"above {self.low:g}" if self.excluded else f"at {self.low:g} or above"
        low, high = (f"{each:.0f}" if float(each).is_integer() else f"{each:g}" for each in (self.low, self.high))
        place = {
            "": f"in {low}..{high}",
            "low": f"above {low}, up to {high}",
            "high": f"in {low}..{high}, exclusive of {high}",
            "both": f"between {low} and {high}",
        }[self.excluded]
        return f"{place} {self.unit}" if self.unit else place


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Form:
    """How a value is written where its type does not say it."""

    read: Callable[[Any], Any]
    """Returns the value. Raises ``TypeError`` or ``ValueError`` with what would be right, or ``Invalid`` with every
    mistake inside it, each beginning with the key."""
    schema: Schema = field(default_factory=dict)
    missing: str = ""
    """What the sentence says beside its name where the key must be given and is not."""
    is_secret: bool = False
    """Whether the value may hold a password, which no message repeats."""


def is_text(value: Any) -> bool:
    """Whether ``value`` is a text that a file's name, a variable or Postgres can hold."""
    return isinstance(value, str) and "\0" not in value


def text(value: Any) -> str:
    """``value``. Raises ``TypeError`` if it is no text, or empty."""
    if not is_text(value) or not value:
        raise TypeError("expected a text that is not empty")
    return str(value)


Text = Annotated[str, Form(read=text, schema={"type": "string", "minLength": 1})]


def key_of(item: Field[Any]) -> str:
    """What the field is called where it is written."""
    return str(item.metadata.get("key", item.name))


def parts_of(kind: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """The type that an annotation names, the rules beside it, and whether ``None`` may take its place."""
    return _parts_of(kind)


@lru_cache(maxsize=512)  # a profile is read in two thirds of the time
def _parts_of(kind: Any) -> tuple[Any, tuple[Any, ...], bool]:
    rules: tuple[Any, ...] = ()
    is_optional = False
    while (origin := get_origin(kind)) in {Annotated, Union, UnionType}:
        if origin is Annotated:
            kind, *found = get_args(kind)
            rules = (*rules, *found)
        else:
            kind = next(each for each in get_args(kind) if each is not type(None))
            is_optional = True
    return kind, rules, is_optional
