"""A mistake is named with the path that leads to its key, whoever finds it."""

import json
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from headway.errors import Invalid
from headway.scaling.keys import Form
from headway.scaling.mapping import Reading, from_mapping, near, to_mapping
from headway.scaling.model import HostProblem, HostProblemKind, KnownArrivals, Memory, Wanted


def _names(value: Any) -> Any:
    raise Invalid(f"names={value!r} must have no 'x'")


@dataclass(frozen=True)
class Inner:
    names: Annotated[str, Form(read=_names)]
    size: int = 0


@dataclass(frozen=True)
class Outer:
    inner: Inner
    names: Annotated[str, Form(read=_names)]


def test_a_form_s_own_mistake_keeps_the_path_of_the_table_that_it_is_in() -> None:
    reading = Reading()
    reading.fields_of(Outer, {"inner": {"names": "x", "size": "big"}, "names": "y"}, where="the file")
    assert reading.breaches == [
        "the file: inner.names='x' must have no 'x'",
        "the file: inner.size='big': expected a whole number",
        "the file: names='y' must have no 'x'",
    ]


def test_a_value_comes_back_from_json_as_it_was() -> None:
    memory = Memory(
        wanted=(Wanted(at_s=1.0, workers=2),),
        known_arrivals=KnownArrivals(delayed_jobs=3, came=((1.5, 2), (2.5, 1))),
        strategy_state={"learned": [1, {"a": None}]},
    )
    assert from_mapping(Memory, json.loads(json.dumps(to_mapping(memory)))) == memory


def test_what_a_later_version_wrote_is_read_as_far_as_it_goes() -> None:
    later = {"wanted": [{"at_s": 1.0, "workers": 2, "colour": 7}], "invented_later": {"a": 1}}
    assert from_mapping(Memory, later) == Memory(wanted=(Wanted(at_s=1.0, workers=2),))
    found = [from_mapping(HostProblem, {"kind": kind}).kind for kind in (*HostProblemKind, "invented_later")]
    assert found == [*HostProblemKind, "invented_later"]
    assert all(isinstance(kind, HostProblemKind) for kind in found[:-1])


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("cpus", "cpu_cores"),  # its letters are those of gpus
        ("cpu", "cpu_cores"),
        ("memory", "memory_bytes"),
        ("gpu", "gpus"),
        ("gpuz", "gpus"),
        ("cpu_core", "cpu_cores"),
        ("memroy_bytes", "memory_bytes"),
        ("disk", ""),
    ],
)
def test_the_name_that_begins_with_the_same_words_was_meant_rather_than_one_with_the_same_letters(
    given: str, meant: str
) -> None:
    question = near(given, ("cpu_cores", "gpus", "measured", "memory_bytes"))
    assert question == (f" did you mean {meant!r}?" if meant else "")
