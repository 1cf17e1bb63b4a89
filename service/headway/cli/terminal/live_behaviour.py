"""How a pool behaves live, and how far predictions of it were off, as text for a terminal."""

from rich.table import Table

from headway.cli.terminal.cells import UNKNOWN, Row, table

ROWS = (
    ("start_up", "start-up, from spawn to ready"),
    ("start_up_alone", "start-up with a core of its own"),
    ("exit", "exit of an idle worker"),
    ("exit_alone", "exit with a core of its own"),
    ("sample_lag", "age of queue samples while jobs wait"),
    ("worker_lag", "from a worker's change to its report"),
    ("evaluation_delay", "evaluations later than their interval"),
    ("apply_delay", "from an evaluation to what hosts do"),
    ("wake_delay", "from a first job to the wake"),
)


def behaviour(answer: Row) -> Table | str:
    """How a pool behaves; what was not measured is unknown."""
    rows = [(label, *_spread(answer[name])) for name, label in ROWS]
    rows.insert(1, ("CPU seconds of a start", _seconds(answer["start_up_cpu_s"]), "", ""))
    rows.insert(4, ("CPU seconds of an exit", _seconds(answer["exit_cpu_s"]), "", ""))
    rows.insert(6, ("dispatch overhead a job", _seconds(answer["dispatch_overhead_s"]), "", ""))
    rows.append(("predictions off by", *_spread(answer["prediction"])))
    return table(("what", "median", "95 %", "observations"), rows, empty="nothing was measured yet")


def predicted(prediction: Row | None) -> str:
    """One sentence on how far the predictions of a pool were off."""
    if prediction is None:
        return "No prediction of the last hour could be compared with what came."
    bias_s = prediction["bias_s"]
    return (
        f"Predictions of the last hour: off by {_seconds(prediction['p50_s'])} at the median, "
        f"{_seconds(prediction['p95_s'])} at p95, n={prediction['count']}; jobs waited "
        f"{_seconds(abs(bias_s))} {'more' if bias_s < 0 else 'less'} than predicted on average."
    )


def _spread(spread: Row | None) -> tuple[str, str, str]:
    if spread is None:
        return UNKNOWN, "", ""
    return _seconds(spread["p50_s"]), _seconds(spread["p95_s"]), str(spread["count"])


def _seconds(value_s: float | None) -> str:
    return UNKNOWN if value_s is None else f"{value_s:.3g} s" if value_s < 1 else f"{value_s:.1f} s"
