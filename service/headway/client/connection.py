"""How a program reaches a control plane, and how it gets an answer or an exception."""

import os
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import httpx

from headway.client.v1 import AuthenticatedClient, Client
from headway.client.v1.models.problem import Problem
from headway.client.v1.types import Response
from headway.environment import ClientSettings
from headway.local.https import https_context, is_loopback

API_TIMEOUT_S = 15.0  # longer than the control plane waits for its database

Answer = TypeVar("Answer")


class ApiProblem(Exception):
    """The control plane refused a request, or cannot answer it now. Its text is the problem's own sentence."""

    def __init__(self, problem: Problem, *, retry_after_s: float | None = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        """Title, status, detail and ``breaches``: every rule that the request breaks."""
        self.retry_after_s = retry_after_s
        """After how long the same request may succeed, where the control plane says so."""


def connected(env: Mapping[str, str] = os.environ, *, timeout_s: float = API_TIMEOUT_S) -> AuthenticatedClient | Client:
    """The client of the control plane that ``env`` names, as the command line reads it.

    ``HEADWAY_URL``, ``HEADWAY_TOKEN_FILE`` (without it: none is shown), ``HEADWAY_TLS_CA``, ``HEADWAY_TLS_CERT`` and
    ``HEADWAY_TLS_KEY``. Nothing is sent yet. A status that the API's description does not have raises
    ``headway.client.v1.errors.UnexpectedStatus``. A request that is not answered, or not within ``timeout_s`` seconds,
    raises ``httpx.TransportError``.

    Raises:
        headway.errors.Refused: a setting is wrong; the message names it.
    """
    settings = ClientSettings.from_env(env)
    tls = settings.tls
    options: dict[str, Any] = {
        "base_url": settings.url.rstrip("/"),
        "timeout": httpx.Timeout(timeout_s),
        "raise_on_unexpected_status": True,
        "httpx_args": {"trust_env": not is_loopback(httpx.URL(settings.url).host)},
    }
    if tls is not None and (tls.ca or tls.certificate):
        options["verify_ssl"] = https_context(tls.ca, certificate=tls.certificate, key=tls.key)
    return AuthenticatedClient(token=settings.token, **options) if settings.token else Client(**options)


def answered(response: Response[Problem | Answer]) -> Answer:
    """The body of an answer that ``sync_detailed`` or ``asyncio_detailed`` of an operation returned.

    Raises:
        ApiProblem: it did not succeed.
    """
    if isinstance(response.parsed, Problem):
        retry_after = response.headers.get("retry-after")
        raise ApiProblem(response.parsed, retry_after_s=None if retry_after is None else float(retry_after))
    return cast("Answer", response.parsed)  # None where it has no content: 204
