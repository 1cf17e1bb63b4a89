"""The TLS settings, as clients of the gRPC server take them. Apart from those of HTTPS: gRPC is slow to load."""

from headway.environment import ClientTls
from headway.wire.channel import Tls, read_tls


def grpc_tls(tls: ClientTls | None) -> Tls | None:
    """For the gRPC server; ``None``: it is called without TLS. Raises ``Misconfigured``."""
    return None if tls is None else read_tls(tls.ca, certificate=tls.certificate, key=tls.key)
