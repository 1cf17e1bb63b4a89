"""What the models of the HTTP API have in common: where descriptions of fields come from, and how answers are made."""

import ast
import asyncio
import dataclasses
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast, get_args, get_origin, get_type_hints

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, WithJsonSchema, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from headway.scaling.fields import shared
from headway.scaling.keys import Form, Range, parts_of
from headway.scaling.mapping import to_mapping

Model = TypeVar("Model", bound=BaseModel)


class Described:
    """A model whose fields are described by the docstrings below them.

    They are read when the API is described. Pydantic's ``use_attribute_docstrings`` reads them at each start of a
    control plane: a sixth of what its imports take of a processor.
    """

    core: ClassVar[type | None] = None
    """The core's dataclass whose fields the model has, where there is one; see ``with_fields_of``."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        _describe(handler.resolve_ref_schema(schema), cls)
        return schema


def with_fields_of(core: Any, *, left_out: Collection[str] = ()) -> Callable[[type[Model]], type[Model]]:
    """Give a model the fields of a dataclass of the core: their types, bounds, defaults and descriptions, in its order.

    A field that the model has itself stands in the place of the core's. A dataclass inside becomes the model that was
    made of it before.
    """

    def made(model: type[Model]) -> type[Model]:
        own = model.model_fields
        given: dict[str, Any] = {
            item.name: (own[item.name].annotation, own[item.name]) if item.name in own else _field(item)
            for item in fields(core)
            if item.name not in left_out
        }
        base: Any = model.__bases__
        whole: Any = create_model(
            model.__name__, __base__=base, __doc__=model.__doc__, __module__=model.__module__, **given
        )
        whole.core = core
        _MODELS[core] = whole
        return cast("type[Model]", whole)

    return made


_MODELS: dict[type, type[BaseModel]] = {}
"""Dataclass of the core -> the model that has its fields."""


def _field(item: dataclasses.Field[Any]) -> tuple[Any, Any]:
    annotation = _annotation(item.type)
    if item.default is not MISSING:
        return annotation, [] if item.default == () else item.default
    if item.default_factory is MISSING:
        return annotation, ...
    return annotation, _MODELS[item.type](**to_mapping(item.default_factory())) if item.type in _MODELS else {}


def _annotation(kind: Any) -> Any:
    """What a field of the core is annotated with, as Pydantic reads it."""
    inner, rules, is_optional = parts_of(kind)
    found: Any = _MODELS.get(inner, inner)
    if get_origin(inner) is tuple:
        found = list[_annotation(get_args(inner)[0])]  # type: ignore[misc]
    elif get_origin(inner) is not None:
        found = dict[str, _annotation(get_args(inner)[1])]  # type: ignore[misc]
    for rule in rules:
        if isinstance(rule, Form):
            found = Annotated[Any, WithJsonSchema(dict(rule.schema))]
        elif isinstance(rule, Range):
            low = "gt" if rule.excluded in {"low", "both"} else "ge"
            high = "lt" if rule.excluded in {"high", "both"} else "le"
            bounds: dict[str, Any] = {low: rule.low, high: rule.high}
            found = Annotated[found, Field(**bounds)]
    return found | None if is_optional else found


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
    core = getattr(described, "core", None)
    for owner in (*described.__mro__, core) if core else described.__mro__:
        for name, text in _docstrings(owner) if owner.__module__.startswith("headway.") else ():
            field = properties.get(name)
            if field is not None and "description" not in field:
                default = {"default": field.pop("default")} if "default" in field else {}
                shown = text.replace("``None``", "null").replace("``", "`") if owner is core else text
                field |= {"description": shown, **default}


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
