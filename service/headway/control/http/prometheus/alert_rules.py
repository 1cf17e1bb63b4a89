"""What to be woken for: the one definition that docs/reference/alerts.yml and the Grafana board are made from.

`python -m headway.control.http.prometheus.alert_files docs/reference` writes both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.control.http.overview.alerting import PAGE, TICKET, TICKETED
from headway.scaling.arithmetic import DAY_S, HOUR_S
from headway.scaling.metrics.attainment import BURNS, FAST, SLOW, Burn

CERTIFICATE_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """A condition that a person has to know of."""

    name: str
    expression: str
    for_s: float
    severity: str
    summary: str
    """With the labels of the series, as Prometheus's templates name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRule:
    """A series that others are made of."""

    name: str
    expression: str


_TICKETED = "|".join(sorted(TICKETED))
SIMPLE: Sequence[AlertRule] = (
    AlertRule(
        name="HeadwayAway",
        expression='up{job="headway"} == 0',
        for_s=60,
        severity=PAGE,
        summary="the control plane {{ $labels.instance }} is away, or its Postgres is",
    ),
    AlertRule(
        name="HeadwayDegraded",
        expression=f'headway_health_reason{{reason!~"{_TICKETED}"}} == 1',
        for_s=120,
        severity=PAGE,
        summary="health is degraded, and the reason is {{ $labels.reason }}: headway get health",
    ),
    AlertRule(
        name="HeadwayNoLeader",
        expression="headway_leader_silent_seconds > 10",
        for_s=60,
        severity=PAGE,
        summary="no control plane leads, so nothing is decided: headway get health",
    ),
    AlertRule(
        name="HeadwayPoolUndecided",
        expression="headway_pool_decided_age_seconds > 600",
        for_s=60,
        severity=PAGE,
        summary="pool {{ $labels.pool }} is not decided and keeps its target",
    ),
    AlertRule(
        name="HeadwayPoolLate",
        expression='headway_pool_state{state="breaching"} == 1',
        for_s=300,
        severity=PAGE,
        summary="jobs of pool {{ $labels.pool }} wait longer than their objective: headway explain {{ $labels.pool }}",
    ),
    AlertRule(
        name="HeadwayPoolBroken",
        expression='headway_pool_state{state=~"failing|crash_loop|no_host"} == 1',
        for_s=60,
        severity=PAGE,
        summary="pool {{ $labels.pool }} is in the state {{ $labels.state }}: headway top",
    ),
    AlertRule(
        name="HeadwayPoolSuspended",
        expression='headway_pool_state{state="suspended"} == 1',
        for_s=60,
        severity=TICKET,
        summary="workers of pool {{ $labels.pool }} are kept from taking jobs: headway explain {{ $labels.pool }}",
    ),
    AlertRule(
        name="HeadwayPoolBottleneck",
        expression='headway_pool_state{state="bottleneck"} == 1',
        for_s=300,
        severity=TICKET,
        summary="more workers of pool {{ $labels.pool }} do not start or help: headway explain {{ $labels.pool }}",
    ),
    AlertRule(
        name="HeadwayPoolUnknown",
        expression='headway_pool_state{state=~"stale|unseen"} == 1',
        for_s=120,
        severity=PAGE,
        summary="pool {{ $labels.pool }} has no fresh data ({{ $labels.state }}): headway top",
    ),
    AlertRule(
        name="HeadwayJobsLost",
        expression="headway_pool_lost_jobs > 0",
        for_s=0,
        severity=PAGE,
        summary="{{ $value }} waiting jobs of pool {{ $labels.pool }} are gone and were not started",
    ),
    AlertRule(
        name="HeadwayJobsPerhapsLost",
        expression="headway_pool_perhaps_lost_jobs > 0",
        for_s=0,
        severity=TICKET,
        summary="{{ $value }} waiting jobs of pool {{ $labels.pool }} expired or were revoked, or are lost",
    ),
    AlertRule(
        name="HeadwayJobsCut",
        expression="headway_pool_cut_jobs > 0",
        for_s=0,
        severity=PAGE,
        summary="{{ $value }} jobs of pool {{ $labels.pool }} were cut: headway events --pool {{ $labels.pool }}",
    ),
    AlertRule(
        name="HeadwayPoisonJob",
        expression="headway_pool_poison_jobs > 0",
        for_s=0,
        severity=TICKET,
        summary="workers of pool {{ $labels.pool }} die of a job: headway explain {{ $labels.pool }}",
    ),
    AlertRule(
        name="HeadwayWorkerUnable",
        expression="headway_pool_unable_workers > 0",
        for_s=60,
        severity=TICKET,
        summary="{{ $value }} workers of pool {{ $labels.pool }} take no jobs: headway explain {{ $labels.pool }}",
    ),
    AlertRule(
        name="HeadwayPipelineSilent",
        expression="headway_pipeline_beat_age_seconds > 10",
        for_s=60,
        severity=PAGE,
        summary="the pipeline {{ $labels.pipeline }} does not answer",
    ),
    AlertRule(
        name="HeadwayUnmeasured",
        expression="headway_pool_measured_age_seconds > 60",
        for_s=60,
        severity=PAGE,
        summary="whether pool {{ $labels.pool }} meets its objective is not known",
    ),
    AlertRule(
        name="HeadwayWorkersEnd",
        expression='headway_pool_workers{state="backing_off"} > 0',
        for_s=300,
        severity=TICKET,
        summary="workers of pool {{ $labels.pool }} end too early",
    ),
    AlertRule(
        name="HeadwayHostSilent",
        expression='headway_hosts{state="silent"} > 0',
        for_s=120,
        severity=PAGE,
        summary="{{ $value }} hosts have not reported for a lease: headway get hosts",
    ),
    AlertRule(
        name="HeadwayNamesRefused",
        expression="increase(headway_refused_names_total[10m]) > 0",
        for_s=0,
        severity=TICKET,
        summary="more {{ $labels.kind }} are sent than there is room for",
    ),
    AlertRule(
        name="HeadwayHostsMissing",
        expression="headway_hosts_wanted > 0",
        for_s=900,
        severity=TICKET,
        summary="workers have no place: headway get wanted",
    ),
    AlertRule(
        name="HeadwayEvaluationLate",
        expression='headway_pool_evaluation_delay_seconds{quantile="0.95"} > 5',
        for_s=300,
        severity=TICKET,
        summary="evaluations of pool {{ $labels.pool }} begin {{ $value }} s late",
    ),
    AlertRule(
        name="HeadwayDrainOverdue",
        expression='headway_pool_workers{state="draining"} > 0',
        for_s=3600,
        severity=TICKET,
        summary="workers of pool {{ $labels.pool }} have been draining for an hour: headway describe pool",
    ),
    AlertRule(
        name="HeadwayWorkersForced",
        expression="increase(headway_host_forced_workers_total[15m]) > 0",
        for_s=0,
        severity=TICKET,
        summary="workers of pool {{ $labels.pool }} on {{ $labels.host }} did not finish by their drain deadline",
    ),
)
"""Each of one series, compared with a number."""


def _window(span_s: float) -> str:
    if span_s >= DAY_S:
        return f"{span_s / DAY_S:g}d"
    return f"{span_s / HOUR_S:g}h" if span_s >= HOUR_S else f"{span_s / 60:g}m"


def _late_share(span_s: float) -> str:
    return f"headway:pool_late_jobs:ratio_rate{_window(span_s)}"


def _burning(burn: Burn, *, for_s: float) -> AlertRule:
    allowed = f"{burn.rate:g} * headway_pool_error_budget_ratio"
    windows = (f"{_late_share(span_s)} > on (pool) max by (pool) ({allowed})" for span_s in (burn.long_s, burn.short_s))
    return AlertRule(
        name=f"HeadwayBudgetBurns{burn.name.capitalize()}",
        expression=" and on (pool) ".join(f"({each})" for each in windows),
        for_s=for_s,
        severity=PAGE,
        summary="{{ $value | humanizePercentage }} of the jobs of pool {{ $labels.pool }} start late, "
        f"{burn.rate:g} times what its error budget allows: headway explain " + "{{ $labels.pool }}",
    )


WINDOWS_S = sorted({span_s for burn in BURNS for span_s in (burn.long_s, burn.short_s)})
RECORDED: Sequence[RecordingRule] = tuple(
    RecordingRule(
        name=_late_share(span_s),
        # Every control plane counts the same jobs: the greatest is one of them, and a sum would have them twice.
        expression=f"sum by (pool) (max by (queue, pool) (rate(headway_queue_late_jobs_total[{_window(span_s)}]))) / "
        f"sum by (pool) (max by (queue, pool) (rate(headway_queue_measured_jobs_total[{_window(span_s)}])))",
    )
    for span_s in WINDOWS_S
)
COMPOSED: Sequence[AlertRule] = (
    _burning(FAST, for_s=120),
    _burning(SLOW, for_s=900),
    AlertRule(
        name="HeadwayAtCeiling",
        expression='headway_pool_state{state="breaching"} == 1 and on (instance, pool) '
        "headway_pool_target_workers >= headway_pool_ceiling_workers",
        for_s=300,
        severity=PAGE,
        summary="jobs of pool {{ $labels.pool }} wait too long and its workers_max allows no more workers",
    ),
    AlertRule(
        # jobs that come every three minutes or less often turn a healthy target so often, and each turn pays for itself
        name="HeadwayFlapping",
        expression="resets(headway_pool_target_workers[30m]) > 10 and "
        "changes(headway_pool_target_workers[30m]) - resets(headway_pool_target_workers[30m]) > 10",
        for_s=300,
        severity=TICKET,
        summary="the target of pool {{ $labels.pool }} goes up and down: headway get decisions",
    ),
    AlertRule(
        name="HeadwayBudgetReached",
        expression="headway_pool_day_paid_worker_seconds >= headway_pool_day_budget_worker_seconds",
        for_s=60,
        severity=TICKET,
        summary="pool {{ $labels.pool }} has spent its budget of the day",
    ),
    AlertRule(
        name="HeadwayCertificateEnds",
        expression=f"headway_host_certificate_left_seconds < {CERTIFICATE_DAYS * DAY_S:g}",
        for_s=3600,
        severity=TICKET,
        summary="the certificate of host {{ $labels.host }} ends in {{ $value | humanizeDuration }}: "
        "headway keys client",
    ),
)
"""Each of several series, or of a difference."""
