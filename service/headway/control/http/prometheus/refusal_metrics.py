"""What this control plane has refused or ended since it began, in the words of Prometheus."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric

from headway.control.http.connections import WHY
from headway.control.http.dependencies import ApiContext
from headway.control.http.prometheus.gauges import counter, gauge


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """The counts of one moment."""

    names: Mapping[str, int]
    calls: Mapping[tuple[str, str], int]
    """By port and status."""
    failed_sign_ins: int
    ended_connections: Mapping[str, int]
    ended_strangers: int
    viewers: int
    """Who watches; no refusal, but what its bound is seen by."""
    refused_viewers: Mapping[str, int]


def counted(context: ApiContext) -> Refusals:
    """The counts of now."""
    return Refusals(
        names=dict(context.ingest.names.refused),
        calls=dict(context.callers.throttle.refusals),
        failed_sign_ins=context.callers.attempts.failed,
        ended_connections=dict(context.connections.ended),
        ended_strangers=context.ended_strangers(),
        viewers=context.feed.places_taken,
        refused_viewers=dict(context.feed.refused),
    )


def of_refusals(refusals: Refusals) -> Iterator[Metric]:
    """Their samples, those that are zero included."""
    yield counter(
        "headway_refused_names",
        "Items of queues, batches of producers, and reports of workers, that were refused because there is no room.",
        ("kind",),
        [((kind,), refusals.names.get(kind, 0)) for kind in ("queues", "producers", "workers")],
    )
    yield counter(
        "headway_refusals", "Requests and calls that were refused.", ("port", "status"), refusals.calls.items()
    )
    yield CounterMetricFamily(
        "headway_failed_sign_ins", "Tokens and credentials shown that are not valid.", value=refusals.failed_sign_ins
    )
    yield counter(
        "headway_http_ended_connections",
        "Connections of the HTTP port that were ended for want of room, of the rest of a request, or of a reader.",
        ("reason",),
        [((reason,), refusals.ended_connections.get(reason, 0)) for reason in WHY],
    )
    yield CounterMetricFamily(
        "headway_grpc_ended_connections",
        "Connections of the gRPC port that were ended: much came over them, no call and no credential.",
        value=refusals.ended_strangers,
    )
    yield gauge("headway_viewers", "Who watches /v1/events now.", (), [((), refusals.viewers)])
    yield counter(
        "headway_refused_viewers",
        "Who was refused at /v1/events: too many watch with this token, or in all.",
        ("bound",),
        [((bound,), refusals.refused_viewers.get(bound, 0)) for bound in ("token", "all")],
    )
