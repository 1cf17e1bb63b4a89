"""Whom a client of an HTTPS address trusts, and what it shows."""

import ssl
from pathlib import Path

from headway.errors import Misconfigured


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
