"""The TLS settings, as the clients of the two servers take them."""

import ssl

from headway.local.https import https_context
from headway.settings import ClientTls
from headway.wire.channel import Tls, read_tls


def grpc_tls(tls: ClientTls | None) -> Tls | None:
    """For the gRPC server; ``None``: it is called without TLS. Raises ``Misconfigured``."""
    return None if tls is None else read_tls(tls.ca, certificate=tls.certificate, key=tls.key)


def http_context(tls: ClientTls | None) -> ssl.SSLContext | None:
    """For an HTTPS address; ``None``: whom the system trusts. Raises ``Misconfigured``."""
    if tls is None or (tls.ca is None and tls.certificate is None):
        return None
    return https_context(tls.ca, certificate=tls.certificate, key=tls.key)
