"""A channel to the control plane's gRPC server, plain or with TLS, and what a failed handshake means."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc

from headway.errors import Misconfigured

ANSWERED = ("headway-answered", "1")
"""Goes with every failure that a control plane itself reports; a failure of the network comes without it."""

_NAME = (
    "shows a certificate that is not for this name: call it by a name that is in it, or make one with `headway keys "
    "server NAME`"
)
_HANDSHAKE_FAILURES = (
    # gRPC's own words for a failed handshake, and their meaning for the operator.
    (
        "CERTIFICATE_VERIFY_FAILED: certificate has expired",
        "shows a certificate that has expired: make another one there, as with `headway keys server NAME`",
    ),
    (
        "CERTIFICATE_VERIFY_FAILED",
        (
            "shows a certificate that is not trusted here, or one that has expired: HEADWAY_TLS_CA must name the CA "
            "that signed it"
        ),
    ),
    ("is not in peer certificate", _NAME),
    ("Hostname Verification Check failed", _NAME),
    (
        "Trying to connect an http1.x server",
        "is not a gRPC endpoint: HEADWAY_CONTROL must name the gRPC port, 8461 by default",
    ),
    ("WRONG_VERSION_NUMBER", "does not speak TLS: leave HEADWAY_TLS_CA out, or set HEADWAY_TLS_CERT there"),
    ("CERTIFICATE_REQUIRED", "asks for a certificate of this host: set HEADWAY_TLS_CERT and HEADWAY_TLS_KEY"),
    ("ALERT_CERTIFICATE_EXPIRED", "does not take this host's certificate: it has expired, make a new one"),
    ("ALERT_UNKNOWN_CA", "does not take this host's certificate: another CA has signed it"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """What a client of the gRPC server trusts, and what it shows of itself."""

    ca: bytes | None
    """Certificates of those who may sign the server's; ``None``: those that gRPC trusts by itself."""
    certificate: bytes | None = None
    key: bytes | None = None


def read_tls(ca: Path | None, *, certificate: Path | None = None, key: Path | None = None) -> Tls:
    """What the files hold; without ``ca`` what gRPC trusts by itself. Raises ``Misconfigured``."""
    return Tls(
        ca=_read(ca, "HEADWAY_TLS_CA"),
        certificate=_read(certificate, "HEADWAY_TLS_CERT"),
        key=_read(key, "HEADWAY_TLS_KEY"),
    )


def open_channel(address: str, *, options: Sequence[tuple[str, int]], tls: Tls | None) -> grpc.Channel:
    """A channel to ``address``; nothing is connected before its first call."""
    if tls is None:
        return grpc.insecure_channel(address, options=options)
    shown = grpc.ssl_channel_credentials(
        root_certificates=tls.ca, private_key=tls.key, certificate_chain=tls.certificate
    )
    return grpc.secure_channel(address, shown, options=options)


def handshake_failure(details: str) -> str | None:
    """What is wrong where ``details`` of a failed call name a handshake; else ``None``."""
    return next((meaning for words, meaning in _HANDSHAKE_FAILURES if words in details), None)


def _read(file: Path | None, setting: str) -> bytes | None:
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as error:
        raise Misconfigured(f"{setting}={file} cannot be read: {error.strerror}") from error
