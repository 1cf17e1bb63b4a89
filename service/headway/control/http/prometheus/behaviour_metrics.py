"""How pools and templates behave live, and how far predictions were off, in the words of Prometheus."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily

from headway.control.http.prometheus.gauges import gauge
from headway.scaling.metrics.behaviour import Behaviour, Spread, Timings
from headway.scaling.metrics.prediction_error import PredictionError

LAGS = (
    ("sample_lag", "How old the newest sample of the pool's queues is at an evaluation, while jobs wait."),
    ("worker_lag", "From the change of a worker's state to its report."),
    ("apply_delay", "From the beginning of an evaluation to the spawns and requests to stop that it makes."),
    ("wake_delay", "From the first job of a pool at zero to the evaluation that wakes it."),
    ("evaluation_delay", "How much later than its interval an evaluation of the pool begins."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured of all pools and templates."""

    pools: Mapping[str, tuple[Behaviour, PredictionError | None]]
    templates: Mapping[str, Timings]


def of_behaviours(measured: Measured) -> Iterator[GaugeMetricFamily]:
    """All of it."""
    yield from _of_templates(measured.templates)
    pools = measured.pools.items()
    yield gauge(
        "headway_pool_dispatch_overhead_seconds",
        "From the end of a job to the next start in the same slot while jobs wait.",
        ("pool",),
        [((pool,), behaviour.dispatch_overhead_s) for pool, (behaviour, _) in pools],
    )
    for name, help_text in LAGS:
        spreads = [(pool, getattr(behaviour, name)) for pool, (behaviour, _) in pools]
        yield _quantiles(f"headway_pool_{name}_seconds", help_text, "pool", spreads)
    yield from _of_predictions([(pool, error) for pool, (_, error) in pools if error is not None])


def _of_templates(templates: Mapping[str, Timings]) -> Iterator[GaugeMetricFamily]:
    rows = templates.items()
    for name, help_text, spreads in (
        ("start_up", "From the spawn of a worker to ready.", [(each, known.start_up) for each, known in rows]),
        (
            "exit",
            "From the request to stop to the end of the process, of workers without a job.",
            [(each, known.exit) for each, known in rows],
        ),
        (
            "start_up_alone",
            "The start-up, less what the workers waited for a core.",
            [(each, known.start_up_alone) for each, known in rows],
        ),
        (
            "exit_alone",
            "The exit, less what the workers waited for a core.",
            [(each, known.exit_alone) for each, known in rows],
        ),
    ):
        yield _quantiles(f"headway_template_{name}_seconds", help_text, "template", spreads)
    yield gauge(
        "headway_template_start_up_cpu_seconds",
        "CPU seconds of a start.",
        ("template",),
        [((each,), known.start_up_cpu_s) for each, known in rows],
    )
    yield gauge(
        "headway_template_exit_cpu_seconds",
        "CPU seconds of the exit of a worker without a job.",
        ("template",),
        [((each,), known.exit_cpu_s) for each, known in rows],
    )


def _of_predictions(errors: Iterable[tuple[str, PredictionError]]) -> Iterator[GaugeMetricFamily]:
    known = list(errors)
    yield gauge(
        "headway_pool_prediction_error_seconds",
        "How far predicted pickup times of the last hour were from observed ones.",
        ("pool", "quantile"),
        [
            ((pool, quantile), value)
            for pool, error in known
            for quantile, value in (("0.5", error.p50_s), ("0.95", error.p95_s))
        ],
    )
    yield gauge(
        "headway_pool_prediction_bias_seconds",
        "The mean of predicted less observed pickup times of the last hour.",
        ("pool",),
        [((pool,), error.bias_s) for pool, error in known],
    )
    yield gauge(
        "headway_pool_predictions",
        "Predictions of the last hour that could be compared with what came.",
        ("pool",),
        [((pool,), error.count) for pool, error in known],
    )


def _quantiles(
    name: str, help_text: str, label: str, spreads: Iterable[tuple[str, Spread | None]]
) -> GaugeMetricFamily:
    return gauge(
        name,
        help_text,
        (label, "quantile"),
        [
            ((which, quantile), value)
            for which, spread in spreads
            if spread is not None
            for quantile, value in (("0.5", spread.p50_s), ("0.95", spread.p95_s))
        ],
    )
