"""One gauge in the words of Prometheus. What is not known has no sample: it is not zero."""

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily


def gauge(
    name: str, help_text: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float | None]]
) -> GaugeMetricFamily:
    """The gauge ``name`` with a sample for each of ``values`` that is known."""
    family = GaugeMetricFamily(name, help_text, labels=labels)
    for which, value in values:
        if value is not None:
            family.add_metric(which, float(value))
    return family
