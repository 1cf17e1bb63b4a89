"""The TLS settings, as clients of the HTTP server take them."""

import ssl

from headway.environment import ClientTls
from headway.local.https import https_context


def http_context(tls: ClientTls | None) -> ssl.SSLContext | None:
    """For an HTTPS address; ``None``: whom the system trusts. Raises ``Misconfigured``."""
    if tls is None or (tls.ca is None and tls.certificate is None):
        return None
    return https_context(tls.ca, certificate=tls.certificate, key=tls.key)
