"""A mistake is named with the path that leads to its key, whoever finds it."""

from dataclasses import dataclass
from typing import Annotated, Any

from headway.errors import Invalid
from headway.scaling.keys import Form
from headway.scaling.mapping import Reading


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
