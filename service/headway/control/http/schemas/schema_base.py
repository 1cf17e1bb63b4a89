"""What the models of the HTTP API have in common: where descriptions of fields come from, and how answers are made."""

import ast
import asyncio
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Self, get_args, get_type_hints

from fastapi import Response
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from headway.scaling.fields import shared


class Described:
    """A model whose fields are described by the docstrings below them.

    They are read when the API is described. Pydantic's ``use_attribute_docstrings`` reads them at each start of a
    control plane: a sixth of what its imports take of a processor.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        _describe(handler.resolve_ref_schema(schema), cls)
        return schema


def describe_dataclasses(schemas: Mapping[str, JsonSchemaValue]) -> None:
    """Describe the fields of the dataclasses that such models hold; ``schemas`` are by name."""
    found: set[type] = set()
    for model in _derived(Described):
        _find_dataclasses(get_type_hints(model), found)
    for each in found:
        if each.__name__ in schemas:
            _describe(schemas[each.__name__], each)


def _describe(schema: JsonSchemaValue, described: type) -> None:
    properties = schema.get("properties", {})
    for owner in described.__mro__:
        for name, text in _docstrings(owner) if owner.__module__.startswith("headway.") else ():
            field = properties.get(name)
            if field is not None and "description" not in field:
                default = {"default": field.pop("default")} if "default" in field else {}
                field |= {"description": text, **default}


def _docstrings(owner: type) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(_bodies(owner.__module__).get(owner.__name__, ())):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)


@cache
def _bodies(module: str) -> Mapping[str, Sequence[ast.stmt]]:
    """What the classes of a module consist of, by name. To find one, Python parses all of its file, each time."""
    try:
        source = inspect.getsource(sys.modules[module])
    except OSError:  # installed without its source
        return {}
    return {each.name: each.body for each in ast.parse(source).body if isinstance(each, ast.ClassDef)}


def _derived(base: type) -> Iterator[type]:
    subclasses: list[type] = base.__subclasses__()
    for each in subclasses:
        yield each
        yield from _derived(each)


def _find_dataclasses(annotations: Mapping[str, Any], found: set[type]) -> None:
    parts = list(annotations.values())
    while parts:
        part = parts.pop()
        parts += get_args(part)
        if isinstance(part, type) and is_dataclass(part) and part not in found:
            found.add(part)
            parts += get_type_hints(part).values()


class Given(Described, BaseModel):
    """What a client gets."""

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)

    @classmethod
    def taken_from(cls, *values: Any, **beside: Any) -> Self:
        """The answer with each field from ``beside``, or else from the first of ``values`` that has it."""
        return cls(**shared(cls.model_fields, values, beside))


async def in_a_thread(make: Callable[[], Given]) -> Response:
    """The answer that ``make`` makes. Ten thousand rows take half a second, in which polls and ticks shall go on."""
    return Response(await asyncio.to_thread(lambda: make().model_dump_json()), media_type="application/json")
