"""Queues by their names: in a path whatever a broker takes, slashes and line breaks included, else in a body."""

from typing import Annotated

from pydantic import Field, model_validator
from starlette.convertors import PathConvertor, register_url_convertor

from headway.control.http.schemas.requests import Taken, Text
from headway.control.http.schemas.schema_base import Given

QUEUE_NAMES_FORGOTTEN_MAX = 100  # at once: the history of each may have ten thousand rows


class _AnyText(PathConvertor):
    """The framework's own path ends at a line break."""

    regex = "(?s:.*)"


register_url_convertor("text", _AnyText())
IN_PATH = "{queue:text}"


class QueuesBody(Taken):
    """Which queues: these, or those that no profile names and whose names begin so."""

    queues: Annotated[list[Text], Field(min_length=1, max_length=QUEUE_NAMES_FORGOTTEN_MAX)] | None = None
    prefix: Text | None = None
    """Of them the first by name, so many at once as are named in `queues` at most."""

    @model_validator(mode="after")
    def _is_one(self) -> "QueuesBody":
        if (self.queues is None) == (self.prefix is None):
            raise ValueError("either `queues` or `prefix` is expected")
        return self


class ForgottenOut(Given):
    """Queues that were forgotten."""

    queues: list[str]
    is_all: bool
    """Whether none is left that was asked for; else ask again."""
