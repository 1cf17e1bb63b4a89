"""Synthetic workloads as they are written on a command line: ``flash:rate=2,peak=40,service=300ms,seed=7``."""

from dataclasses import fields
from typing import Any

from headway.cli.rehearse.trace_files import Workload
from headway.cli.terminal.units import count, described, seconds
from headway.errors import Invalid
from headway.simulate.workloads.jobs import Jobs
from headway.simulate.workloads.loads import LOADS
from headway.simulate.workloads.synthetic import KINDS, Synthetic

UNITS = ("_per_s", "_s")
GENERAL = {"service": "service_s", "tail": "tail", "for": "for_s", "seed": "seed"}


def synthetic_of(text: str) -> Synthetic:
    """The workload that ``KIND:key=value,…`` describes.

    Raises:
        Invalid: with every unknown key and wrong value.
    """
    kind, pairs = described(text)
    if kind not in KINDS:
        raise Invalid(f"--synthetic={text!r}: no kind {kind!r}; known: {', '.join([*KINDS, *LOADS])}")
    shape = {_short(item.name): item.name for item in fields(KINDS[kind])}
    of_shape: dict[str, Any] = {}
    of_all: dict[str, Any] = {}
    breaches = []
    for key, value in pairs:
        name = shape.get(key) or GENERAL.get(key)
        if name is None:
            breaches.append(f"no key {key!r}; known: {', '.join([*shape, *GENERAL])}")
            continue
        try:
            (of_shape if key in shape else of_all)[name] = _value(name, value)
        except Invalid as error:
            breaches += error.breaches
    if breaches:
        raise Invalid(*(f"--synthetic {kind}: {breach}" for breach in breaches))
    return Synthetic(arrivals=KINDS[kind](**of_shape), **of_all)


def drawn(text: str) -> Workload:
    """The jobs of the workload that ``text`` describes, or names: a named load takes a seed and nothing else."""
    kind, pairs = described(text)
    if kind in LOADS:
        return Workload(name=kind, jobs=LOADS[kind].jobs(seed=_seed(kind, pairs)))
    jobs = list(synthetic_of(text).jobs())
    if not jobs:
        raise Invalid(f"--synthetic={text!r} draws no job: let it last longer, as in for=6h, or arrive faster")
    at_s, service_s = zip(*jobs, strict=True)
    return Workload(name=described(text)[0], jobs=Jobs(at_s=at_s, service_s=service_s))


def _seed(load: str, pairs: tuple[tuple[str, str], ...]) -> int:
    seed = 1
    for key, value in pairs:
        if key != "seed":
            raise Invalid(f"--synthetic {load}: no key {key!r}; a named load takes seed only")
        seed = _value("seed", value)
    return seed


def _short(name: str) -> str:
    for unit in UNITS:
        name = name.removesuffix(unit)
    return name


def _value(name: str, text: str) -> Any:
    if name == "tail":
        return text
    if name == "seed":
        if not text.lstrip("-").isdecimal():
            raise Invalid(f"seed={text!r} is no whole number")
        return int(text)
    if name.endswith("_s") and not name.endswith("_per_s"):
        return seconds(text, option=_short(name))
    return count(text, option=_short(name))
