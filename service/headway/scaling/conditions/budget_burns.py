"""The rates at which error budgets burn, in the language of Prometheus."""

from collections.abc import Sequence

from headway.scaling.arithmetic import DAY_S, HOUR_S
from headway.scaling.metrics.attainment import BURNS, Burn


def burn_expression(burn: Burn) -> str:
    """Whether the share of late jobs is too great over both windows."""
    allowed = f"{burn.rate:g} * headway_pool_error_budget_ratio"
    windows = (f"{_late_share(span_s)} > on (pool) max by (pool) ({allowed})" for span_s in (burn.long_s, burn.short_s))
    return " and on (pool) ".join(f"({each})" for each in windows)


def _window(span_s: float) -> str:
    if span_s >= DAY_S:
        return f"{span_s / DAY_S:g}d"
    return f"{span_s / HOUR_S:g}h" if span_s >= HOUR_S else f"{span_s / 60:g}m"


def _late_share(span_s: float) -> str:
    return f"headway:pool_late_jobs:ratio_rate{_window(span_s)}"


def _rate(jobs: str, span_s: float) -> str:
    # Every control plane counts the same jobs: the greatest is one of them, and a sum would have them twice.
    return f"sum by (pool) (max by (queue, pool) (rate(headway_queue_{jobs}_jobs_total[{_window(span_s)}])))"


RECORDED: Sequence[tuple[str, str]] = tuple(
    (_late_share(span_s), f"{_rate('late', span_s)} / {_rate('measured', span_s)}")
    for span_s in sorted({span_s for burn in BURNS for span_s in (burn.long_s, burn.short_s)})
)
"""The name and the expression of each series that the expressions above are made of."""
