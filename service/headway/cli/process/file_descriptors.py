"""Descriptors of this process: as many as the system gives, and no more connections than they are enough for."""

import logging
import resource
from dataclasses import replace

from headway.control.bounds import Bounds

WANTED = 65_536

log = logging.getLogger(__name__)


def within_descriptors(bounds: Bounds) -> Bounds:
    """``bounds``, its connections no more than descriptors are there for. Raises the soft limit of this process.

    Files, the database and what a connection needs beside itself keep a quarter.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max(soft, min(WANTED, hard)) if hard != resource.RLIM_INFINITY else max(soft, WANTED)
    if limit > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    kept = replace(
        bounds,
        http_connections_max=min(bounds.http_connections_max, limit // 4),
        grpc_connections_max=min(bounds.grpc_connections_max, limit // 2),
    )
    if kept != bounds:
        log.warning(
            "only %d descriptors: at most %d connections at the HTTP port and %d at the gRPC port; "
            "raise LimitNOFILE or ulimits for more",
            *(limit, kept.http_connections_max, kept.grpc_connections_max),
        )
    return kept
