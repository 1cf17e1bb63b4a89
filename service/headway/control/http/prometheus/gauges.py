"""Gauges and counters in the words of Prometheus. What is not known has no sample: it is not zero."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

Labels = tuple[str, ...]
Values = Iterable[tuple[Labels, float | None]]
"""The labels of each sample, and its value."""
Row = TypeVar("Row")
Family = TypeVar("Family", GaugeMetricFamily, CounterMetricFamily)
Figures = Sequence[tuple[str, str, Callable[[Row], float | None]]]
"""The name, the help and the value, of a row, of several gauges."""


def gauge(name: str, help_text: str, labels: Labels, values: Values) -> GaugeMetricFamily:
    """The gauge ``name`` with a sample for each of ``values`` that is known."""
    return _with(GaugeMetricFamily(name, help_text, labels=labels), values)


def counter(name: str, help_text: str, labels: Labels, values: Values) -> CounterMetricFamily:
    """The counter ``name`` with a sample for each of ``values``."""
    return _with(CounterMetricFamily(name, help_text, labels=labels), values)


def gauges(
    prefix: str, labels: Labels, rows: Sequence[tuple[Labels, Row]], figures: Figures[Row]
) -> Iterator[GaugeMetricFamily]:
    """A gauge for each of ``figures``, its name after ``prefix``."""
    for name, help_text, figure in figures:
        yield gauge(f"{prefix}_{name}", help_text, labels, [(which, figure(row)) for which, row in rows])


def _with(family: Family, values: Values) -> Family:
    for which, value in values:
        if value is not None:
            family.add_metric(which, float(value))
    return family
