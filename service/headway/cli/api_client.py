"""The HTTP API as the command line calls it: every failure becomes one sentence that says what to do."""

import os
import ssl
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from headway.cli.tls import http_context
from headway.environment import ClientSettings, ClientTls
from headway.errors import HeadwayError, Invalid, Misconfigured, Unauthenticated, Unavailable
from headway.local.https import http_error, is_loopback

API_TIMEOUT_S = 15.0  # longer than the control plane waits for its database
PAGES_MAX = 1_000
CERTIFICATE_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED of OpenSSL


def connected(*, timeout_s: float = API_TIMEOUT_S) -> "Api":
    """The API that the environment names."""
    settings = ClientSettings.from_env(os.environ)
    return Api(settings.url, settings.token, timeout_s=timeout_s, tls=settings.tls)


def path_of(*names: str) -> str:
    """The path below ``/v1`` that ``names`` lead to, whatever characters they have."""
    return "/".join(["/v1", *(quote(name, safe="") for name in names)])


def sent(method: str, path: str, **options: Any) -> dict[str, Any]:
    """The answer to one request of the API that the environment names, and under ``at`` which installation gave it."""
    with connected() as api:
        answer = api.send(method, path, **options)
        return {**(api.body(answer) if answer.content else {}), "at": api.url}


class NoAnswer(Unavailable):
    """No control plane answers at the URL: nothing does, or something else."""


class LateAnswer(NoAnswer):
    """What listens at the URL took the request and did not answer in time."""


class UntrustedControlPlane(Misconfigured):
    """The control plane shows a certificate that has expired, or is not trusted here."""


class Api:
    """One control plane's API."""

    def __init__(
        self, url: str, token: str | None, *, timeout_s: float = API_TIMEOUT_S, tls: ClientTls | None = None
    ) -> None:
        self._url = url.rstrip("/")
        self._has_token = token is not None
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        is_plain = self._url.casefold().startswith("http://")
        # Whom the system trusts takes 40 ms to load. Without TLS it is nobody: no redirect is followed.
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else http_context(tls) or True
        try:
            # A proxy of the environment cannot reach this machine's own loopback.
            trust_env = not is_loopback(httpx.URL(url).host)
            self._client = httpx.Client(
                base_url=self._url, headers=headers, timeout=timeout_s, trust_env=trust_env, verify=verify
            )
        except (httpx.InvalidURL, UnicodeEncodeError, ValueError) as error:
            raise Misconfigured(
                f"HEADWAY_URL={url!r} or HEADWAY_TOKEN cannot be used: expected a URL as http://127.0.0.1:8460, "
                "and a token of plain characters"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    @property
    def url(self) -> str:
        """Which installation it is, as people name it."""
        return self._url

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """The JSON at ``path``."""
        return self.body(
            self.send("GET", path, params={name: value for name, value in query.items() if value is not None})
        )

    def get_all(self, path: str, rows: str, *, by: str = "after", **query: Any) -> dict[str, Any]:
        """The JSON at ``path`` with the ``rows`` of all its pages; ``by`` names where the next one goes on.

        ``next`` is ``None``, but after so many pages that something must be wrong.
        """
        page = answer = self.get(path, **query)
        for _ in range(PAGES_MAX):
            if page.get("next") is None:
                break
            page = self.get(path, **query, **{by: page["next"]})
            answer[rows] += page[rows]
        return {**answer, "next": page.get("next")}

    def body(self, answer: httpx.Response) -> dict[str, Any]:
        """The JSON of an answer. Raises ``NoAnswer`` where no Headway gives such a one."""
        try:
            body = answer.json()
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise self._foreign(answer)
        return body

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """The answer to one request.

        Raises:
            HeadwayError: the control plane does not answer, or refuses: its own sentence.
        """
        try:
            answer = self._client.request(method, path, **options)
        except httpx.TransportError as error:
            raise _unanswered(self._url, error) from error
        if answer.is_success:
            return answer
        raise self._refusal(answer)

    def _refusal(self, answer: httpx.Response) -> HeadwayError:
        is_problem = answer.headers.get("content-type") == "application/problem+json"
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            if not self._has_token:
                return Unauthenticated(f"the control plane at {self._url} asks for a token: set HEADWAY_TOKEN_FILE")
            why = f": {self.body(answer).get('detail')}" if is_problem else ""
            return Unauthenticated(
                f"the control plane at {self._url} does not take the token in HEADWAY_TOKEN_FILE or HEADWAY_TOKEN{why}"
            )
        if not is_problem:
            return self._foreign(answer)
        problem = self.body(answer)
        if breaches := problem.get("breaches"):
            return Invalid(*breaches)
        return http_error(answer.status_code)(str(problem.get("detail")))

    def _foreign(self, answer: httpx.Response) -> NoAnswer:
        return NoAnswer(
            f"what answers at {self._url} is not Headway (status {answer.status_code}): correct HEADWAY_URL"
        )


def _unanswered(url: str, error: httpx.TransportError) -> HeadwayError:
    """What keeps the control plane at ``url`` from answering, as far as ``error`` shows."""
    if isinstance(error, httpx.UnsupportedProtocol):
        return Misconfigured(f"HEADWAY_URL={url!r} is no address of HTTP: expected one as http://127.0.0.1:8460")
    refused = _certificate_error(error)
    if refused is not None and refused.verify_code == CERTIFICATE_EXPIRED:
        return UntrustedControlPlane(
            f"the control plane at {url} shows a certificate that has expired: make another one there, as with "
            "`headway keys server NAME`"
        )
    if refused is not None:
        return UntrustedControlPlane(
            f"the control plane at {url} shows a certificate that is not trusted here or not for this name: "
            f"HEADWAY_TLS_CA must name the CA that signed it ({error})"
        )
    if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
        return NoAnswer(
            f"what listens at {url} ended the call without an answer: repeat it, or correct HEADWAY_URL; a control "
            f"plane with TLS wants https://, and its gRPC endpoint is another port ({error or type(error).__name__})"
        )
    if isinstance(error, httpx.ReadTimeout):
        return LateAnswer(
            f"what listens at {url} took the call and did not answer in time: repeat it; its machine may be "
            "overloaded, or it hangs: see its log"
        )
    return NoAnswer(
        f"no control plane answers at {url}: start one (`headway up` or `headway control`), or say with HEADWAY_URL "
        f"where it is ({error or type(error).__name__})"
    )


def _certificate_error(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Why the certificate was refused, of the errors that led to ``error``; ``None``: it was not."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error
