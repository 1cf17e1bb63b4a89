"""What every answer of the HTTP API has in common."""

import asyncio
from collections.abc import Callable
from typing import Any, Self

from fastapi import Response
from pydantic import BaseModel, ConfigDict

from headway.scaling.fields import shared


class Given(BaseModel):
    """What a client gets."""

    model_config = ConfigDict(
        from_attributes=True, use_attribute_docstrings=True, json_schema_serialization_defaults_required=True
    )

    @classmethod
    def taken_from(cls, *values: Any, **beside: Any) -> Self:
        """The answer with each field from ``beside``, or else from the first of ``values`` that has it."""
        return cls(**shared(cls.model_fields, values, beside))


async def in_a_thread(make: Callable[[], Given]) -> Response:
    """The answer that ``make`` makes. Ten thousand rows take half a second, in which polls and ticks shall go on."""
    return Response(await asyncio.to_thread(lambda: make().model_dump_json()), media_type="application/json")
