"""How pools and templates behave live, and how far predictions were off, in the words of Prometheus."""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily

from headway.control.http.prometheus.gauges import gauge, gauges
from headway.scaling.metrics.behaviour import Behaviour, Spread, Timings
from headway.scaling.metrics.prediction_error import PredictionError

SPREADS_OF_TEMPLATES = (
    ("start_up", "From the spawn of a worker to ready."),
    ("exit", "From the request to stop to the end of the process, of workers without a job."),
    ("start_up_alone", "The start-up, less what the workers waited for a core."),
    ("exit_alone", "The exit, less what the workers waited for a core."),
)
LAGS = (
    ("sample_lag", "How old the newest sample of the pool's queues is at an evaluation, while jobs wait."),
    ("worker_lag", "From the change of a worker's state to its report."),
    ("apply_delay", "From the beginning of an evaluation to the spawns and requests to stop that it makes."),
    ("wake_delay", "From the first job of a pool at zero to the evaluation that wakes it."),
    ("evaluation_delay", "How much later than its interval an evaluation of the pool begins."),
)


def of_behaviours(
    of_pools: Mapping[str, tuple[Behaviour, PredictionError | None]], of_templates: Mapping[str, Timings]
) -> Iterator[GaugeMetricFamily]:
    """What was measured of all pools and templates."""
    templates = [((name,), known) for name, known in of_templates.items()]
    for name, help_text in SPREADS_OF_TEMPLATES:
        spreads = [(which, getattr(known, name)) for (which,), known in templates]
        yield _quantiles(f"headway_template_{name}_seconds", help_text, "template", spreads)
    yield from gauges(
        "headway_template",
        ("template",),
        templates,
        (
            ("start_up_cpu_seconds", "CPU seconds of a start.", lambda known: known.start_up_cpu_s),
            ("exit_cpu_seconds", "CPU seconds of the exit of a worker without a job.", lambda known: known.exit_cpu_s),
        ),
    )
    pools = of_pools.items()
    yield gauge(
        "headway_pool_dispatch_overhead_seconds",
        "From the end of a job to the next start in the same slot while jobs wait.",
        ("pool",),
        [((pool,), behaviour.dispatch_overhead_s) for pool, (behaviour, _) in pools],
    )
    for name, help_text in LAGS:
        spreads = [(pool, getattr(behaviour, name)) for pool, (behaviour, _) in pools]
        yield _quantiles(f"headway_pool_{name}_seconds", help_text, "pool", spreads)
    errors = [(pool, error) for pool, (_, error) in pools if error is not None]
    help_text = "How far predicted pickup times of the last hour were from observed ones."
    yield _quantiles("headway_pool_prediction_error_seconds", help_text, "pool", errors)
    yield from gauges(
        "headway_pool",
        ("pool",),
        [((pool,), error) for pool, error in errors],
        (
            (
                "prediction_bias_seconds",
                "The mean of predicted less observed pickup times of the last hour.",
                lambda error: error.bias_s,
            ),
            (
                "predictions",
                "Predictions of the last hour that could be compared with what came.",
                lambda error: error.count,
            ),
        ),
    )


def _quantiles(
    name: str, help_text: str, label: str, spreads: Iterable[tuple[str, Spread | PredictionError | None]]
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
