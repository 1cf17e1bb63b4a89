"""The certificate that both servers show. A renewed one is reloaded without a restart; one that does not fit is not."""

import asyncio
import logging
import ssl
import time
from pathlib import Path

import grpc

from headway.errors import Misconfigured
from headway.local.throttle import Throttle

WATCH_S = 5.0
CERTIFICATE_WARNED_BEFORE_S = 14 * 86_400.0  # time enough for whoever reads the log once a week
WARNED_EVERY_S = 86_400.0

log = logging.getLogger(__name__)


class Certificates:
    """What is shown to clients and, with a CA for them, asked of those of the gRPC server."""

    def __init__(self, certificate: Path, key: Path, *, client_ca: Path | None = None) -> None:
        """Read the files. Raises ``Misconfigured`` where they cannot be used."""
        self._files = tuple(file for file in (certificate, key, client_ca) if file is not None)
        self._certificate, self._key, self._client_ca = certificate, key, client_ca
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        """For the HTTP server: browsers and command lines are known by their tokens."""
        self.ends_at_s = float("inf")
        """Until when clients take it, Unix seconds."""
        self._warnings = Throttle(WARNED_EVERY_S)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            self._state = self._stamp()
            self._take()
        except (OSError, ValueError) as error:
            raise Misconfigured(
                f"HEADWAY_TLS_CERT={certificate} and HEADWAY_TLS_KEY={key} cannot be used: {_said(error)}; `headway "
                "keys server NAME` makes a pair"
            ) from error
        self._log_expiry()

    def for_grpc(self) -> grpc.ServerCredentials:
        """Credentials of the gRPC server: each handshake takes what is newest."""
        shown = self._pems

        def newest() -> grpc.ServerCertificateConfiguration | None:
            nonlocal shown
            self.refresh()
            if self._pems == shown:
                return None
            shown = self._pems
            return self._configuration()

        return grpc.dynamic_ssl_server_credentials(
            self._configuration(),
            newest,  # type: ignore[arg-type]  # None means no change
            require_client_authentication=self._client_ca is not None,
        )

    def refresh(self) -> None:
        """Take up what has changed on disk, once it fits together."""
        try:
            state = self._stamp()
            if state == self._state:
                return
            self._state = state
            self._take()
        except (OSError, ValueError) as error:
            log.warning("the changed certificate %s is not loaded: %s", self._certificate, _said(error))
        else:
            log.info("took up the changed certificate %s", self._certificate)
            self._log_expiry()

    async def watch(self) -> None:
        """Poll for changed files, for ever."""
        while True:
            await asyncio.sleep(WATCH_S)
            self.refresh()
            if self._warnings.due() is not None:
                self._log_expiry()

    def _take(self) -> None:
        trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trial.load_cert_chain(self._certificate, self._key)  # a new certificate beside the old key does not fit
        self.context.load_cert_chain(self._certificate, self._key)
        client_ca = None if self._client_ca is None else self._client_ca.read_bytes()
        if client_ca is not None:
            trial.load_verify_locations(cadata=client_ca.decode("ascii"))
        self._pems = self._key.read_bytes(), self._certificate.read_bytes(), client_ca

    def _log_expiry(self) -> None:
        """Warn of a certificate that nobody takes any more, or soon."""
        from cryptography import x509  # not for those without TLS: some megabytes

        self._warnings.restart()
        _, certificate, _ = self._pems
        ends = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
        self.ends_at_s = ends.timestamp()
        left_s = self.ends_at_s - time.time()
        if left_s < CERTIFICATE_WARNED_BEFORE_S:
            verb = "expires" if left_s > 0 else "has expired, and no client takes it"
            log.warning(
                "the certificate %s %s: %s; another one in its place, as of `headway keys server NAME`, is loaded "
                "without a restart",
                self._certificate,
                verb,
                ends.strftime("%Y-%m-%d %H:%M UTC"),
            )

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        key, certificate, client_ca = self._pems
        return grpc.ssl_server_certificate_configuration([(key, certificate)], client_ca)

    def _stamp(self) -> tuple[tuple[int, int, int], ...]:
        found = (file.stat() for file in self._files)
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in found)


def _said(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
