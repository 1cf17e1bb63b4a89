"""Telemetry over HTTP, with nothing but the standard library: it is imported into other people's programs."""

import http.client
import json
import ssl
from urllib.parse import urlsplit

from headway.errors import HeadwayError, Misconfigured, Unavailable
from headway.local.https import http_error

PATH = "/v1/telemetry"
ANSWER_S = 5.0
ANSWER_BYTES_MAX = 65_536


class HttpSender:
    """One connection to one control plane, made at the first batch and again when it is lost. Used by one thread."""

    def __init__(self, url: str, *, token: str | None, tls: ssl.SSLContext | None = None) -> None:
        """Raises ``Misconfigured`` where ``url`` is none of HTTP."""
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = 0
        if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
            raise Misconfigured(f"HEADWAY_URL={url} is no address: write it as http://127.0.0.1:8460")
        self._url = url
        self._path = parts.path.rstrip("/") + PATH
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._connection = (
            http.client.HTTPSConnection(parts.hostname, port, timeout=ANSWER_S, context=tls)
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname, port, timeout=ANSWER_S)
        )

    def send(self, body: bytes) -> None:
        """Send the JSON of one batch; return when it can no longer be lost.

        Raises:
            Invalid: the batch will never be taken.
            HeadwayError: it may be sent again, under the same number.
        """
        try:
            self._connection.request("POST", self._path, body, self._headers)
            answer = self._connection.getresponse()
            said = answer.read(ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unavailable(f"control plane at {self._url}: {error or type(error).__name__}") from error
        is_taken = answer.status // 100 == 2
        if not (is_taken and answer.isclosed()):  # or an answer without an end
            self.close()
        if not is_taken:
            raise self._failure(answer.status, said)

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def _failure(self, status: int, said: bytes) -> HeadwayError:
        try:
            detail = str(json.loads(said)["detail"])
        except (ValueError, KeyError, TypeError, RecursionError):
            detail = f"it answers {status}: is that Headway?"
        return http_error(status)(f"control plane at {self._url}: {detail}")
