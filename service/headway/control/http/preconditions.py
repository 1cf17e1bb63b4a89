"""The version that a request changes: its ETag in If-Match, or * in If-None-Match to create."""

import re
from typing import Annotated, Any

from fastapi import Header, Query

from headway.errors import Invalid
from headway.store.pools.versions import Expected

ETAG: dict[str, Any] = {"ETag": {"description": "The version, in quotes.", "schema": {"type": "string"}}}

IfMatch = Annotated[str | None, Header(description='The version that the change was made for: its ETag, as `"3"`.')]
DryRun = Annotated[bool, Query(description="Change nothing, and answer what would change.")]
IfNoneMatch = Annotated[str | None, Header(description="`*`: create it, and refuse where it exists.")]


def etag_of(version: int) -> str:
    """The ETag of a version."""
    return f'"{version}"'


def expected_of(if_match: str | None, if_none_match: str | None, *, what: str) -> Expected:
    """What the headers of a request that changes a ``what`` take for granted.

    Raises:
        Invalid: they contradict each other, or have another form.
    """
    if if_match is not None and if_none_match is not None:
        raise Invalid("If-Match and If-None-Match contradict each other: send one")
    if if_none_match is not None:
        if if_none_match.strip() != "*":
            raise Invalid(f"If-None-Match={if_none_match!r}: only * is taken, to create a {what} that does not exist")
        return Expected(is_absent=True)
    if if_match is None:
        return Expected()
    version = re.fullmatch(r'\s*"(\d{1,18})"\s*', if_match)
    if version is None:
        raise Invalid(f'If-Match={if_match!r}: expected the ETag of a {what}, as "3" with its quotes')
    return Expected(version=int(version[1]))
