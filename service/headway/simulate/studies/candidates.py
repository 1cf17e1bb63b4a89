"""Other ways to run a pool: what each would change of its profile."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from headway.errors import Invalid
from headway.scaling.mapping import is_number
from headway.scaling.profile import Profile, profile_from_mapping, profile_to_mapping

FIXED_KEYS = ("pool", "queues", "template", "mode", "pause", "override")
"""What a pool is, and by whose hand it is run: no candidate changes that."""
CANDIDATES_MAX = 500  # more is no comparison any more, and each is a rehearsal of every pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A name and the keys of a profile that it sets; without any it is the profile as it is."""

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise Invalid("a candidate has no name")
        fixed = [key for key in FIXED_KEYS if key in self.changes]
        if fixed:
            raise Invalid(f"{', '.join(fixed)} is no policy and stays as it is", where=self.where)
        if "preset" in self.changes:
            raise Invalid("name the keys of the preset that differ, not the preset", where=self.where)

    @property
    def where(self) -> str:
        """How a breach of a rule names it."""
        return f"candidate {self.name!r}"

    def of(self, profile: Profile) -> Profile:
        """``profile`` with the changes. Another strategy begins with its own numbers.

        Raises:
            Invalid: with every key that is not known and every rule that is broken.
        """
        if not self.changes:
            return profile
        # Every key is there: a preset must not speak again where a candidate leaves one out.
        values = {**profile_to_mapping(profile), "preset": None}
        if self.changes.get("strategy", profile.strategy) != profile.strategy:
            values["strategy_options"] = {}
        merged = {**values, **self.changes}
        for name in ("objective", "strategy_options"):
            if name in self.changes and isinstance(self.changes[name], Mapping):
                merged[name] = {**(values.get(name) or {}), **self.changes[name]}
        try:
            return profile_from_mapping(
                profile.pool, {key: value for key, value in merged.items() if value is not None}
            )
        except Invalid as error:
            raise Invalid(*error.breaches, where=self.where) from error


AS_IT_IS = Candidate(name="as it is")


def grid(axes: Mapping[str, Sequence[Any]]) -> tuple[Candidate, ...]:
    """A candidate for every combination of the values of ``axes``, named by them: ``risk=1.4 hold_down_s=60``."""
    return tuple(
        Candidate(
            name=" ".join(f"{key}={shown(value)}" for key, value in zip(axes, values, strict=True)),
            changes=dict(zip(axes, values, strict=True)),
        )
        for values in product(*axes.values())
    )


def shown(value: Any) -> str:
    """A value in a candidate's name; ``auto`` is the key left out."""
    if value is None:
        return "auto"
    return f"{value:g}" if is_number(value) else str(value)


def with_base(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """``candidates`` after the profile as it is, which all others are compared with.

    Raises:
        Invalid: two have the same name, or there are too many.
    """
    given = tuple(candidates)
    names = [each.name for each in given]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Invalid(*(f"candidate {name!r} is there twice" for name in twice))
    if len(given) > CANDIDATES_MAX:
        raise Invalid(f"{len(given)} candidates; up to {CANDIDATES_MAX} are compared")
    return given if AS_IT_IS.name in names else (AS_IT_IS, *given)
