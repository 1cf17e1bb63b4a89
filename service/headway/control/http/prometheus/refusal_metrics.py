"""What this control plane has refused or ended since it began, in the words of Prometheus."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric

from headway.control.http.connections import WHY
from headway.control.http.dependencies import ApiContext
from headway.control.http.prometheus.gauges import counter, gauge


def of_refusals(context: ApiContext) -> Iterator[Metric]:
    """The counts of now, those that are zero included."""
    names, callers = context.ingest.names.refused, context.callers
    yield counter(
        "headway_refused_names",
        "Items of queues, batches of producers, and reports of workers, that were refused because there is no room.",
        ("kind",),
        [((kind,), names[kind]) for kind in ("queues", "producers", "workers")],
    )
    yield counter(
        "headway_refusals",
        "Requests and calls that were refused.",
        ("port", "status"),
        callers.throttle.refusals.items(),
    )
    yield CounterMetricFamily(
        "headway_failed_sign_ins", "Tokens and credentials shown that are not valid.", value=callers.attempts.failed
    )
    yield counter(
        "headway_http_ended_connections",
        "Connections of the HTTP port that were ended for want of room, of the rest of a request, or of a reader.",
        ("reason",),
        [((reason,), context.connections.ended[reason]) for reason in WHY],
    )
    yield CounterMetricFamily(
        "headway_grpc_ended_connections",
        "Connections of the gRPC port that were ended: much came over them, no call and no credential.",
        value=context.ended_strangers(),
    )
    yield gauge("headway_viewers", "Who watches /v1/events now.", (), [((), context.feed.places_taken)])
    yield counter(
        "headway_refused_viewers",
        "Who was refused at /v1/events: too many watch with this token, or in all.",
        ("bound",),
        [((bound,), context.feed.refused[bound]) for bound in ("token", "all")],
    )
