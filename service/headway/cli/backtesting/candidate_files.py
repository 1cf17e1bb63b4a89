"""The candidates that a back-test compares: out of a file, or a grid of values."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.cli.profiles_file import parsed
from headway.errors import Invalid
from headway.scaling.profile import Profile
from headway.scaling.strategy import Strategy
from headway.simulate.studies.candidates import Candidate, grid
from headway.strategies import refuse_unknown

LEFT_OUT = ("auto", "none", "null")


def read_candidates(path: Path) -> tuple[Candidate, ...]:
    """The candidates in the YAML file at ``path``: under each name, the keys of a profile that it sets.

    Raises:
        Misconfigured: it cannot be read.
        Invalid: it is no YAML, or with every candidate that is none.
    """
    top = parsed(path, hint="name a file of candidates with --candidates")
    if not isinstance(top, dict) or not top:
        raise Invalid(f"--candidates={path}: expected names and what each sets, as in `calm: {{risk: 2}}`")
    found: list[Candidate] = []
    breaches: list[str] = []
    for name, changes in top.items():
        try:
            if not isinstance(changes, dict | None):
                raise Invalid(f"candidate {name!r}: expected keys of a profile and their values")  # noqa: TRY301
            found.append(Candidate(name=str(name), changes=changes or {}))
        except Invalid as error:
            breaches += error.breaches
    if breaches:
        raise Invalid(*(f"--candidates={path}: {breach}" for breach in breaches))
    return tuple(found)


def read_grid(axes: Sequence[str]) -> tuple[Candidate, ...]:
    """Every combination of what ``axes`` name, each as in ``risk=0.5,1,2``; ``auto`` leaves a key out."""
    read: dict[str, list[Any]] = {}
    for axis in axes:
        key, equals, values = axis.partition("=")
        key = key.strip()
        if not equals or not key or not all(value.strip() for value in values.split(",")):
            raise Invalid(f"--grid={axis!r} must be a key of a profile and its values, as in risk=0.5,1,2")
        if key in read:
            raise Invalid(f"--grid={axis!r}: {key} is there twice; name all its values at once")
        read[key] = list(dict.fromkeys(_value(value.strip()) for value in values.split(",")))
    return grid(read) if read else ()


def _value(text: str) -> Any:
    if text.lower() in LEFT_OUT:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def refuse_unfit(
    candidates: Iterable[Candidate], profiles: Mapping[str, Profile], strategies: Mapping[str, Strategy]
) -> None:
    """Return if every candidate is possible for at least one pool, and every profile as it is.

    What is wrong for some pools only, as a hold beyond a pool's own rules, is reported in their results.

    Raises:
        Invalid: with what is wrong, of one pool.
    """
    for profile in profiles.values():
        refuse_unknown(profile, strategies)
    for candidate in candidates:
        refused = None
        for profile in profiles.values():
            try:
                refuse_unknown(candidate.of(profile), strategies)
                break
            except Invalid as error:
                refused = refused or error
        else:
            if refused is not None:
                is_named = refused.where == candidate.where
                raise refused if is_named else Invalid(*refused.breaches, where=candidate.where) from refused
