"""The TLS settings, as the clients of the two servers take them."""

import ssl

from headway.errors import Misconfigured
from headway.settings import ClientTls
from headway.wire.channel import Tls, read_tls


def grpc_tls(tls: ClientTls | None) -> Tls | None:
    """For the gRPC server; ``None``: it is called without TLS. Raises ``Misconfigured``."""
    return None if tls is None else read_tls(tls.ca, certificate=tls.certificate, key=tls.key)


def http_context(tls: ClientTls | None) -> ssl.SSLContext | None:
    """For an HTTPS address; ``None``: whom the system trusts. Raises ``Misconfigured``."""
    if tls is None or (tls.ca is None and tls.certificate is None):
        return None
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        if tls.certificate is not None:
            context.load_cert_chain(tls.certificate, tls.key)
    except OSError as error:  # of which ssl's own errors are
        raise Misconfigured(
            f"HEADWAY_TLS_CA={tls.ca}, HEADWAY_TLS_CERT={tls.certificate} or its key cannot be used: {error}"
        ) from error
    return context
