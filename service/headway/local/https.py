"""What every client of the HTTP API needs: whom it trusts and what it shows, and what an answer's status means."""

import ipaddress
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from headway.errors import (
    Conflict,
    Forbidden,
    HeadwayError,
    Invalid,
    Misconfigured,
    NotFound,
    Overloaded,
    Refused,
    Unauthenticated,
    Unavailable,
)

_ERRORS: Mapping[int, type[HeadwayError]] = {
    HTTPStatus.BAD_REQUEST: Invalid,
    HTTPStatus.UNAUTHORIZED: Unauthenticated,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.PRECONDITION_FAILED: Conflict,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: Invalid,
    HTTPStatus.UNPROCESSABLE_ENTITY: Invalid,
    HTTPStatus.TOO_MANY_REQUESTS: Overloaded,
}


def http_error(status: int) -> type[HeadwayError]:
    """The error that an answer with this ``status``, which is none of success, stands for."""
    return _ERRORS.get(status, Refused if 400 <= status < 500 else Unavailable)


def https_context(ca: Path | None, *, certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """The context of files in PEM; ``ca=None``: whom the system trusts. Raises ``Misconfigured``."""
    try:
        context = ssl.create_default_context(cafile=ca)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except OSError as error:  # of which ssl's own errors are
        raise Misconfigured(
            f"HEADWAY_TLS_CA={ca}, HEADWAY_TLS_CERT={certificate} or its key cannot be used: {error}"
        ) from error
    return context


def is_loopback(host: str) -> bool:
    """Whether a name or number is this machine's own, which no proxy of the environment can reach."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
