"""The conditions of pools that only Prometheus finds: it compares a series with its past, or with its absence."""

from collections.abc import Sequence
from functools import partial

from headway.scaling.arithmetic import DAY_S, HOUR_S
from headway.scaling.conditions.condition import Alert, Condition, Severity, Subject
from headway.scaling.metrics.attainment import BURNS, FAST, SLOW, Burn


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
PAGE, TICKET, _ = Severity
_POOL, _NAME, _VALUE = "pool {{ $labels.pool }}", "{{ $labels.pool }}", "{{ $value }}"
_of = partial(Condition, subject=Subject.POOL)
_has, _is = partial(_of, verb="has"), partial(_of, verb="is")
_page_has = partial(_has, severity=PAGE)
_ticket_has, _ticket_is = partial(_has, severity=TICKET), partial(_is, severity=TICKET)
OF_SERIES: Sequence[Condition] = (
    _of(
        name="undecided",
        verb="alone is",
        what="not decided and keeps its target",
        severity=PAGE,
        cure="`not decided, target held` in the leader's log says why",
        alert=Alert("HeadwayPoolUndecided", "headway_pool_decided_age_seconds > 600"),
    ),
    _page_has(
        name="measured_late",
        what="rates and pickup times of the past: whether it meets its objective is not known",
        cure="see `headway get health`",
        alert=Alert("HeadwayUnmeasured", "headway_pool_measured_age_seconds > 60"),
    ),
    _ticket_has(
        name="workers_end",
        what="workers that end too early: one keeps trying, the others are started ever later",
        cure="read the worker's log on its host; `headway agent check` there",
        alert=Alert("HeadwayWorkersEnd", 'headway_pool_workers{state="backing_off"} > 0', for_s=300),
    ),
    _ticket_has(
        name="hosts_missing",
        what="workers without a place",
        cure="`headway get wanted` says which hosts are missing",
        alert=Alert(
            "HeadwayHostsMissing",
            "headway_hosts_wanted > 0",
            for_s=900,
            summary="workers have no place: headway get wanted",
        ),
    ),
    _ticket_is(
        name="evaluation_late",
        what="evaluated late: the leader or its Postgres is overloaded",
        cure="read the leader's log, and see its CPU",
        alert=Alert(
            "HeadwayEvaluationLate",
            'headway_pool_evaluation_delay_seconds{quantile="0.95"} > 5',
            for_s=300,
            summary=f"evaluations of {_POOL} begin {_VALUE} s late",
        ),
    ),
    *(
        _page_has(
            name=f"budget_burns_{burn.name}",
            what=f"{burn.rate:g} times more late jobs than its error budget allows",
            cure="`headway explain POOL` says what limits its workers",
            alert=Alert(
                f"HeadwayBudgetBurns{burn.name.capitalize()}",
                burn_expression(burn),
                for_s=for_s,
                summary=f"{{{{ $value | humanizePercentage }}}} of the jobs of {_POOL} start late, "
                f"{burn.rate:g} times what its error budget allows: headway explain {_NAME}",
                is_composed=True,
            ),
        )
        for burn, for_s in ((FAST, 120.0), (SLOW, 900.0))
    ),
    _ticket_has(
        name="flapping",
        what="a target that rose more than ten times and fell more than ten times in half an hour",
        cure="`headway get decisions --pool POOL` shows why",
        alert=Alert(
            # jobs that come every three minutes or less often turn a healthy target so often: each turn pays for itself
            "HeadwayFlapping",
            "resets(headway_pool_target_workers[30m]) > 10 and "
            "changes(headway_pool_target_workers[30m]) - resets(headway_pool_target_workers[30m]) > 10",
            for_s=300,
            is_composed=True,
        ),
    ),
)
