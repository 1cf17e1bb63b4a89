"""Every condition, once. Health, states of pools, incidents, rules of Prometheus, `headway doctor` and
docs/reference/conditions.md are made from this table.

Within a subject the worst comes first: the state of a pool is the first that is true of it.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from headway.scaling.arithmetic import DAY_S
from headway.scaling.conditions import pool_sentences as says
from headway.scaling.conditions.budget_burns import burn_expression
from headway.scaling.conditions.condition import DEGRADED, Alert, Condition, Counting, Severity, Subject
from headway.scaling.conditions.job_troubles import cut_sentence, poison_sentence
from headway.scaling.conditions.noticed_workers import (
    background_sentence,
    overdue_sentence,
    start_failure_sentence,
    unable_sentence,
)
from headway.scaling.metrics.attainment import FAST, SLOW

CERTIFICATE_DAYS = 7
CLOCK_OFF_S = 5.0  # of Postgres's clock, which dates what agents and pipelines do, or of the control plane's
PIPELINE_SILENT_S = 180.0  # longer than a warm-up may take without a word
HEARTBEAT_MISSED_S = 5.0  # of a pipeline, which has one every second
PAGE, TICKET, NOTE = Severity
_of_installation = partial(Condition, subject=Subject.INSTALLATION)
_of_host = partial(Condition, subject=Subject.HOST)
_of_pool = partial(Condition, subject=Subject.POOL)
_POOL = "pool {{ $labels.pool }}"
_BROKEN = Alert(
    name="HeadwayPoolBroken",
    expression='headway_pool_state{state=~"failing|crash_loop|no_host"} == 1',
    summary=f"{_POOL} is in the state {{{{ $labels.state }}}}: headway top",
)
_UNKNOWN = Alert(
    name="HeadwayPoolUnknown",
    expression='headway_pool_state{state=~"stale|unseen"} == 1',
    for_s=120,
    summary=f"{_POOL} has no fresh data ({{{{ $labels.state }}}}): headway top",
)
_CUT_CURE = (
    "see `headway events --pool POOL` for the jobs and why, and whether they run again; without `drain_timeout_s` in "
    "host.toml Headway kills no worker, and a host needs the memory that its workers take"
)

OF_INSTALLATION: Sequence[Condition] = (
    _of_installation(
        name="away",
        sentence="a control plane is away, its Postgres is, or its certificate has expired",
        severity=PAGE,
        cure="read its log, and ask `headway get health`",
        alert=Alert(
            name="HeadwayAway",
            expression='up{job="headway"} == 0',
            summary="the control plane {{ $labels.instance }} is away, or its Postgres is",
        ),
    ),
    _of_installation(
        name="leader",
        sentence="no control plane leads: nothing is decided, and no incident opens",
        severity=PAGE,
        cure="start `headway control`; where one runs, its log says why it does not lead: it must reach Postgres",
        alert=Alert(name="HeadwayNoLeader", expression="headway_leader_silent_seconds > 10"),
        seen_after="10 s",
    ),
    _of_installation(
        name="pipeline",
        sentence="the pipeline is stopped, crashed, not responding, starting, or hangs in a batch",
        severity=PAGE,
        cure="start `headway pipeline`, or read its log (with `headway up`: logs/pipeline.log of the data folder); "
        "`headway pipeline rebuild` replaces a checkpoint that no stream can continue from",
        alert=Alert(
            name="HeadwayPipelineSilent",
            expression="headway_pipeline_beat_age_seconds > 10",
            summary="the pipeline {{ $labels.pipeline }} does not answer",
        ),
        seen_after="5 to 10 s",
    ),
    _of_installation(
        name="broker",
        sentence="no queue of a broker connection has been read: `headway collect` or the broker is away",
        severity=PAGE,
        cure="start `headway collect`; `headway collect --check` shows whether it reaches its brokers and may read "
        "them",
        seen_after="10 s",
    ),
    _of_installation(
        name="collectors",
        sentence="several collectors poll one broker connection: one counts, the others stand by",
        severity=PAGE,
        cure="end every collector of that broker but one: `headway describe queue QUEUE` names them",
        seen_after="10 s",
    ),
    _of_installation(
        name="event_log",
        sentence="telemetry is refused: the disk is full, or the event log is another one",
        severity=PAGE,
        cure="make room on the disk of HEADWAY_EVENT_LOG, or mount the folder there that belongs to this database; "
        "producers keep their events and send them again",
        seen_after="immediately",
    ),
    _of_installation(
        name="upkeep",
        sentence="upkeep fails, or decisions soon have no place to be stored",
        severity=PAGE,
        cure="grant the role what docs/how-to/postgres-role.md lists, or read the log of the role that is named",
        seen_after="upkeep's next run, 10 min at most",
    ),
    _of_installation(
        name="clock",
        sentence=f"the clocks of a control plane and Postgres differ by more than {CLOCK_OFF_S:g} s, or that of a "
        "sender or host is wrong",
        severity=PAGE,
        cure="synchronize the clocks of the machines, as with `timedatectl set-ntp true`, and restart nothing",
        seen_after="immediately",
    ),
    _of_installation(
        name="certificate",
        sentence="the certificate of a control plane ends within a day or has ended, or that of a host that does not "
        "report has expired",
        severity=PAGE,
        cure="make another: `headway keys server NAME` for the control plane, `headway keys client NAME` for a host; "
        "both take up the new files by themselves",
        seen_after="immediately",
    ),
    _of_installation(
        name="credentials",
        sentence="a token expires within a day, or calls use a token or credential that was revoked or has expired",
        severity=PAGE,
        cure="`headway token list` names the tokens, `headway audit` the addresses: make another with "
        "`headway token create` and put it into that role's HEADWAY_TOKEN_FILE",
        seen_after="immediately",
    ),
    _of_installation(
        name="names_refused",
        sentence="a sender sends more names than there is room for",
        severity=TICKET,
        cure="the control plane's log names the sender; docs/reference/settings.md lists the bounds",
        alert=Alert(
            name="HeadwayNamesRefused",
            expression="increase(headway_refused_names_total[10m]) > 0",
            for_s=0,
            summary="more {{ $labels.kind }} are sent than there is room for",
        ),
    ),
)
OF_HOSTS: Sequence[Condition] = (
    _of_host(
        name="host_unreachable",
        sentence="has not reported within its lease: what it runs is unknown and counts as running",
        severity=PAGE,
        cure="see `headway get hosts` and the agent's log there",
        own_rule="host_unreachable",
        alert=Alert(
            name="HeadwayHostSilent",
            expression='headway_hosts{state="silent"} > 0',
            for_s=120,
            summary="{{ $value }} hosts have not reported for a lease: headway get hosts",
        ),
    ),
    _of_host(
        name="host",
        sentence="has lost the connection and not reported since, is overdue with a report, or is unreachable",
        severity=PAGE,
        cure="start the agent on that host, or read its log there; if the host is gone for good: "
        "`headway host forget HOST --reason TEXT`",
        seen_after="3 s, or 13 s where its agent hangs or is partitioned; 25 s; its lease, 45 s",
    ),
    _of_host(
        name="host_disk",
        sentence="has an agent that cannot write to its state folder, and starts no worker; or to its log folder",
        severity=PAGE,
        cure="make room on that host, or correct the owner of the agent's folder; the agent tries again every 5 s",
        seen_after="10 s",
    ),
    _of_host(
        name="host_file",
        sentence="has a changed `host.toml` with mistakes, and the one before is in force",
        severity=PAGE,
        cure="`headway agent check` on that host names the mistakes; a corrected host.toml is read by itself",
        seen_after="15 s",
    ),
    _of_host(
        name="host_certificate",
        sentence=f"has a certificate that ends within {CERTIFICATE_DAYS} days",
        severity=TICKET,
        cure="`headway keys client NAME` makes another",
        alert=Alert(
            name="HeadwayCertificateEnds",
            expression=f"headway_host_certificate_left_seconds < {CERTIFICATE_DAYS * DAY_S:g}",
            for_s=3600,
            summary="the certificate of host {{ $labels.host }} ends in {{ $value | humanizeDuration }}: "
            "headway keys client",
            is_composed=True,
        ),
    ),
    _of_host(
        name="workers_forced",
        sentence="has ended workers by force, because they had not finished by their drain deadline",
        severity=TICKET,
        cure="see the `drain_timeout_s` of the template, and the worker's log",
        alert=Alert(
            name="HeadwayWorkersForced",
            expression="increase(headway_host_forced_workers_total[15m]) > 0",
            for_s=0,
            summary=f"workers of {_POOL} on {{{{ $labels.host }}}} did not finish by their drain deadline",
        ),
    ),
)
OF_POOLS: Sequence[Condition] = (
    _of_pool(
        name="suspended",
        sentence="is suspended: its library or its consumers keep all workers from taking jobs",
        severity=TICKET,
        cure="`headway explain POOL` says who keeps its workers from taking jobs: `rq resume` ends `rq suspend`, and "
        "`celery control add_consumer QUEUE` what `cancel_consumer` began",
        word="suspended",
        own_rule="pool_suspended",
        is_measured=True,
        alert=Alert(name="HeadwayPoolSuspended", expression='headway_pool_state{state="suspended"} == 1'),
        seen_after="2 s; 20 s by the workers' own word, 15 s where RabbitMQ lists no consumer",
        is_true=lambda pool: pool.is_suspended,
        says=lambda pool: [None if pool.suspension is None else pool.suspension.text],
        counting=Counting(
            several="pools are suspended: their libraries or consumers keep all workers from taking jobs"
        ),
    ),
    _of_pool(
        name="lost_jobs",
        sentence="has lost waiting jobs before their start",
        severity=PAGE,
        cure="find out who flushed the broker or deleted the jobs; a Redis that keeps jobs needs `appendonly yes` and "
        "`maxmemory-policy noeviction`",
        own_rule="jobs_lost",
        confirmed_after_s=0.0,
        is_measured=True,
        alert=Alert(
            name="HeadwayJobsLost",
            expression="headway_pool_lost_jobs > 0",
            for_s=0,
            summary=f"{{{{ $value }}}} waiting jobs of {_POOL} are gone and were not started",
        ),
        seen_after="10 s",
        is_true=lambda pool: pool.lost_jobs > 0,
        says=says.lost_jobs,
        counting=Counting(several="pools have lost waiting jobs before their start"),
    ),
    _of_pool(
        name="perhaps_lost_jobs",
        sentence="may have lost waiting jobs before their start, or they expired",
        severity=TICKET,
        cure="see whether these jobs expire (Celery's `expires`, RQ's `ttl`, a time to live in the broker); where they "
        "do not, the broker was flushed or somebody deleted them. Workers of a Celery that an agent starts report "
        "which tasks expire",
        own_rule="jobs_lost",
        confirmed_after_s=0.0,
        is_measured=True,
        alert=Alert(
            name="HeadwayJobsPerhapsLost",
            expression="headway_pool_perhaps_lost_jobs > 0",
            for_s=0,
            summary=f"{{{{ $value }}}} waiting jobs of {_POOL} expired or were revoked, or are lost",
        ),
        seen_after="10 s",
        is_true=lambda pool: pool.perhaps_lost_jobs > 0,
        says=says.perhaps_lost_jobs,
        counting=Counting(several="pools may have lost waiting jobs before their start, or these expired"),
    ),
    _of_pool(
        name="cut_jobs",
        sentence="has jobs that the end of a worker has cut in the last 15 minutes",
        severity=PAGE,
        cure=_CUT_CURE,
        own_rule="jobs_cut",
        confirmed_after_s=0.0,
        alert=Alert(
            name="HeadwayJobsCut",
            expression="headway_pool_cut_jobs > 0",
            for_s=0,
            summary=f"{{{{ $value }}}} jobs of {_POOL} were cut: headway events --pool {{{{ $labels.pool }}}}",
        ),
        seen_after="10 s",
        is_true=lambda pool: pool.has_certain_cuts,
        says=lambda pool: [cut_sentence(pool.cuts)],
        counting=Counting(
            one="job was cut, or may have been, in the last 15 min",
            several="jobs were cut, or may have been, in the last 15 min",
            number=lambda pool: len(pool.cuts),
            see="headway events",
        ),
    ),
    _of_pool(
        name="perhaps_cut_jobs",
        sentence="has workers that ended in the last 15 minutes and may have cut a job",
        severity=TICKET,
        cure=_CUT_CURE,
        own_rule="jobs_cut",
        confirmed_after_s=0.0,
        alert=Alert(name="HeadwayJobsPerhapsCut", expression="headway_pool_perhaps_cut_jobs > 0", for_s=0),
        seen_after="10 s",
        is_true=lambda pool: bool(pool.cuts) and not pool.has_certain_cuts,
        says=lambda pool: [cut_sentence(pool.cuts)],
        counting=Counting(
            one="worker may have lost a job in the last 15 min",
            several="workers may have lost a job in the last 15 min",
            number=lambda pool: len(pool.cuts),
            see="headway events",
        ),
    ),
    _of_pool(
        name="poison_jobs",
        sentence="has a job with which its workers died three times",
        severity=TICKET,
        cure="remove the job in its library: `celery -A APP control revoke ID`, or `Job.fetch(ID, connection).delete()`"
        " of RQ; Headway removes no job",
        own_rule="job_poisonous",
        confirmed_after_s=0.0,
        alert=Alert(name="HeadwayPoisonJob", expression="headway_pool_poison_jobs > 0", for_s=0),
        seen_after="10 s",
        is_true=lambda pool: bool(pool.poison),
        says=lambda pool: [poison_sentence(pool.poison)],
        counting=Counting(
            one="job is poisonous, workers died with it three times or more",
            several="jobs are poisonous, workers died with each three times or more",
            number=lambda pool: len(pool.poison),
        ),
    ),
    _of_pool(
        name="breaching",
        sentence="is late: the oldest job of a queue has waited longer than that queue's objective allows",
        severity=PAGE,
        cure="`headway explain POOL` says what was wanted, and what limits its workers",
        word="late",
        own_rule="pool_late",
        is_measured=True,
        alert=Alert(name="HeadwayPoolLate", expression='headway_pool_state{state="breaching"} == 1', for_s=300),
        is_true=lambda pool: pool.is_late and not pool.is_suspended,
        says=says.late,
    ),
    _of_pool(
        name="crash_loop",
        sentence="has workers in a crash loop",
        severity=PAGE,
        cure="read the last lines of the workers' output, in workers/ of the agent's state folder; "
        "`headway agent check` shows the command that is run; after a change of host.toml the agent tries again "
        "immediately",
        word="crash loop",
        own_rule="pool_broken",
        is_measured=True,
        alert=_BROKEN,
        seen_after="the first ends of its workers",
        is_true=lambda pool: pool.is_crash_looping,
        says=says.crash_loop,
        counting=Counting(several="pools have workers in a crash loop"),
    ),
    _of_pool(
        name="failing",
        sentence="has too many failing jobs",
        severity=PAGE,
        cure="read the workers' output for what the jobs raise; more workers do not help while jobs fail",
        word="failing",
        own_rule="pool_broken",
        is_measured=True,
        alert=_BROKEN,
        seen_after="a minute, where all do",
        is_true=lambda pool: pool.is_failing,
        says=says.failing,
        counting=Counting(several="pools have too many failing jobs"),
    ),
    _of_pool(
        name="no_host",
        sentence="has no reachable host to run on",
        severity=PAGE,
        cure="add [templates.NAME] to the host.toml of a host and start its agent, or correct `template` in the "
        "profile",
        word="no host",
        own_rule="pool_broken",
        is_measured=True,
        alert=_BROKEN,
        seen_after="immediately",
        is_true=lambda pool: pool.no_host is not None,
        says=lambda pool: [pool.no_host],
        counting=Counting(several="pools have no reachable host to run on"),
    ),
    _of_pool(
        name="unseen",
        sentence="has a queue that no collector or sender has ever reported",
        severity=PAGE,
        cure="see `headway get health`, and whether the profile names the queue as `headway get queues` lists it",
        word="not seen yet",
        own_rule="pool_unknown",
        alert=_UNKNOWN,
        is_true=lambda pool: pool.metrics.sampled_at_s is None,
        says=lambda pool: [f"no collector or producer has reported all its queues: {says.listed(pool.profile.queues)}"],
    ),
    _of_pool(
        name="stale",
        sentence="has no fresh data: depths or measurements are older than 60 % of `stale_after_s`, so nothing is "
        "scaled down",
        severity=PAGE,
        cure="see `headway get health`",
        word="no fresh data",
        own_rule="pool_unknown",
        alert=_UNKNOWN,
        is_true=lambda pool: not (pool.has_fresh_depths and pool.has_fresh_measures),
        says=says.stale,
    ),
    _of_pool(
        name="recovering",
        sentence="has been late in the objective's window, and no job is known to wait too long now",
        severity=NOTE,
        word="was late",
        is_true=lambda pool: pool.is_lately_late,
    ),
    _of_pool(
        name="bottleneck",
        sentence="has a bottleneck",
        severity=TICKET,
        cure="`headway explain POOL` says what limits it and what cures it; more workers do not start or do not help",
        word="bottleneck",
        own_rule="pool_bottleneck",
        alert=Alert(name="HeadwayPoolBottleneck", expression='headway_pool_state{state="bottleneck"} == 1', for_s=300),
        seen_after="the next evaluation, 5 s; of failed starts their first end, or 7 s",
        is_true=lambda pool: bool(pool.bottlenecks),
        says=lambda pool: [start_failure_sentence(pool.noticed), *pool.useless],
        counting=Counting(several="pools have a bottleneck", details=lambda pool: pool.bottlenecks),
    ),
    _of_pool(
        name="at_risk",
        sentence="is nearly late: the oldest job has waited 70 % of its objective, or workers do not come",
        severity=NOTE,
        word="nearly late",
        is_true=lambda pool: pool.is_at_risk,
    ),
    _of_pool(
        name="scaling",
        sentence="has workers that are being started or let go",
        word="scaling",
        is_true=lambda pool: pool.is_scaling,
    ),
    _of_pool(
        name="on_time",
        sentence="is on time: waits are within the objective, or no job waits or starts while jobs run or may run",
        word="on time",
        is_true=lambda pool: pool.is_quiet and pool.may_be_at_work,
    ),
    _of_pool(
        name="idle",
        sentence="is idle: no job waits, runs or has started lately, so there is nothing to measure",
        word="idle",
        is_true=lambda pool: pool.is_quiet,
    ),
    _of_pool(
        name="unmeasured",
        sentence="has jobs, and no pickup time was measured within the objective's window",
        severity=NOTE,
        word="not measured",
        is_true=lambda pool: pool.metrics.pickup_objective_s is None,
    ),
    _of_pool(
        name="capacity",
        sentence="wants more workers than hosts have capacity for",
        severity=PAGE,
        cure="add a host, or lower `cpu_cores` and `memory_bytes` of the template where workers take less",
        seen_after="the next evaluation, 5 s",
        is_true=lambda pool: pool.is_short_of_room and pool.no_host is None,
        says=lambda pool: [f"the hosts have capacity for only {pool.target_workers or 'none'} of its workers"],
        counting=Counting(several="pools want more workers than hosts have capacity for"),
    ),
    _of_pool(
        name="unstarted",
        sentence="has workers that no host has started",
        severity=PAGE,
        cure="read the agent's log on the hosts of that pool: it says what keeps workers from starting",
        seen_after="6 s",
        is_true=lambda pool: pool.unstarted_workers > 0 and pool.no_host is None and not pool.is_crash_looping,
        says=says.unstarted,
        counting=Counting(several="pools have workers that no host has started"),
    ),
    _of_pool(
        name="unable_workers",
        sentence="has workers that take no jobs: their process is stopped, or their consumers are cancelled",
        severity=TICKET,
        cure="see why on its host: a process that was stopped goes on with `kill -CONT PID`; consumers that were "
        "cancelled come back with `celery -A APP control add_consumer QUEUE`, or with a new worker. Others are "
        "started in their place, and they stay until they end",
        own_rule="worker_unable",
        alert=Alert(
            name="HeadwayWorkerUnable",
            expression="headway_pool_unable_workers > 0",
            summary=f"{{{{ $value }}}} workers of {_POOL} take no jobs: headway explain {{{{ $labels.pool }}}}",
        ),
        seen_after="30 s",
        is_true=lambda pool: bool(pool.unable),
        says=lambda pool: [unable_sentence(pool.noticed)],
        counting=Counting(
            one="worker is there and takes no jobs",
            several="workers are there and take no jobs",
            number=lambda pool: len(pool.unable),
        ),
    ),
    _of_pool(
        name="in_background",
        sentence="has a template that goes to the background, where its agent cannot watch it",
        severity=NOTE,
        cure="remove --detach from the `argv` of the template",
        is_true=lambda pool: any(each.worker.goes_to_background for each in pool.noticed),
        says=lambda pool: [background_sentence(pool.noticed)],
    ),
    _of_pool(
        name="drain_overdue",
        sentence="has a worker that drains for more than three times as long as 99 % of the pool's jobs take",
        severity=PAGE,
        cure="see what it does on its host; `headway kill WORKER` ends it, and cuts its jobs",
        own_rule="drain_overdue",
        alert=Alert(name="HeadwayDrainOverdue", expression="headway_pool_overdue_workers > 0"),
        is_true=lambda pool: bool(pool.overdue),
        says=lambda pool: [overdue_sentence(pool.overdue, service_p99_s=pool.service_p99_s, now_s=pool.now_s)],
    ),
    _of_pool(
        name="at_ceiling",
        sentence="is late, and its `workers_max` allows no more workers",
        severity=PAGE,
        cure="raise workers_max of pool POOL, or add hosts",
        own_rule="pool_at_ceiling",
        is_measured=True,
        alert=Alert(
            name="HeadwayAtCeiling",
            expression='headway_pool_state{state="breaching"} == 1 and on (instance, pool) '
            "headway_pool_target_workers >= headway_pool_ceiling_workers",
            for_s=300,
            is_composed=True,
        ),
        is_true=lambda pool: pool.is_at_ceiling and not pool.is_suspended,
        says=lambda pool: [f"its workers_max={pool.profile.workers_max} allows no more workers"],
    ),
    _of_pool(
        name="budget_reached",
        sentence="has spent its budget of the day",
        severity=TICKET,
        cure="raise the budget of pool POOL, or wait for the next day",
        own_rule="pool_budget_reached",
        alert=Alert(
            name="HeadwayBudgetReached",
            expression="headway_pool_day_paid_worker_seconds >= headway_pool_day_budget_worker_seconds",
            is_composed=True,
        ),
        is_true=lambda pool: pool.has_spent_budget,
        says=lambda _: ["it has spent its budget of the day"],
    ),
    _of_pool(
        name="undecided",
        sentence="alone is not decided and keeps its target",
        severity=PAGE,
        cure="`not decided, target held` in the leader's log says why",
        alert=Alert(name="HeadwayPoolUndecided", expression="headway_pool_decided_age_seconds > 600"),
    ),
    _of_pool(
        name="measured_late",
        sentence="has rates and pickup times of the past: whether it meets its objective is not known",
        severity=PAGE,
        cure="see `headway get health`",
        alert=Alert(name="HeadwayUnmeasured", expression="headway_pool_measured_age_seconds > 60"),
    ),
    _of_pool(
        name="workers_end",
        sentence="has workers that end too early: one keeps trying, the others are started ever later",
        severity=TICKET,
        cure="read the worker's log on its host; `headway agent check` there",
        alert=Alert(name="HeadwayWorkersEnd", expression='headway_pool_workers{state="backing_off"} > 0', for_s=300),
    ),
    _of_pool(
        name="hosts_missing",
        sentence="has workers without a place",
        severity=TICKET,
        cure="`headway get wanted` says which hosts are missing",
        alert=Alert(
            name="HeadwayHostsMissing",
            expression="headway_hosts_wanted > 0",
            for_s=900,
            summary="workers have no place: headway get wanted",
        ),
    ),
    _of_pool(
        name="evaluation_late",
        sentence="is evaluated late: the leader or its Postgres is overloaded",
        severity=TICKET,
        cure="read the leader's log, and see its CPU",
        alert=Alert(
            name="HeadwayEvaluationLate",
            expression='headway_pool_evaluation_delay_seconds{quantile="0.95"} > 5',
            for_s=300,
            summary=f"evaluations of {_POOL} begin {{{{ $value }}}} s late",
        ),
    ),
    *(
        _of_pool(
            name=f"budget_burns_{burn.name}",
            sentence=f"has {burn.rate:g} times more late jobs than its error budget allows",
            severity=PAGE,
            cure="`headway explain POOL` says what limits its workers",
            alert=Alert(
                name=f"HeadwayBudgetBurns{burn.name.capitalize()}",
                expression=burn_expression(burn),
                for_s=for_s,
                summary=f"{{{{ $value | humanizePercentage }}}} of the jobs of {_POOL} start late, "
                f"{burn.rate:g} times what its error budget allows: headway explain {{{{ $labels.pool }}}}",
                is_composed=True,
            ),
        )
        for burn, for_s in ((FAST, 120.0), (SLOW, 900.0))
    ),
    _of_pool(
        name="flapping",
        sentence="has a target that rose more than ten times and fell more than ten times in half an hour",
        severity=TICKET,
        cure="`headway get decisions --pool POOL` shows why",
        alert=Alert(
            # jobs that come every three minutes or less often turn a healthy target so often: each turn pays for itself
            name="HeadwayFlapping",
            expression="resets(headway_pool_target_workers[30m]) > 10 and "
            "changes(headway_pool_target_workers[30m]) - resets(headway_pool_target_workers[30m]) > 10",
            for_s=300,
            is_composed=True,
        ),
    ),
)
_ALL = (*OF_INSTALLATION, *OF_HOSTS, *OF_POOLS)
WITH_OWN_INCIDENT = frozenset(each.name for each in _ALL if each.is_in_health and each.own_rule)
"""The kinds of health that are an incident, and a rule of Prometheus, of their own: they need no second one."""
_DEGRADED = _of_installation(
    name=DEGRADED,
    sentence="health is degraded by a condition that has no incident of its own",
    severity=PAGE,
    cure="`headway get health` has a sentence for each reason",
    alert=Alert(
        name="HeadwayDegraded",
        expression=f'headway_health_reason{{reason!~"{"|".join(sorted(WITH_OWN_INCIDENT))}"}} == 1',
        for_s=120,
        summary="health is degraded, and the reason is {{ $labels.reason }}: headway get health",
    ),
)
CONDITIONS: Mapping[str, Condition] = MappingProxyType({each.name: each for each in (_DEGRADED, *_ALL)})
"""Every condition by its name."""
HEALTH_KINDS: Sequence[str] = tuple(each.name for each in _ALL if each.is_in_health)
"""The kinds of reasons for which health is degraded."""
CAUSES: Sequence[str] = tuple(each.name for each in (*OF_POOLS, *OF_HOSTS) if each.severity is not None)
"""What causes of a pool may be about."""
STATES: Sequence[str] = tuple(each.name for each in _ALL if each.word)
"""The states of a pool, the worst first."""
STATES_BY_URGENCY: Sequence[str] = tuple(
    name for severity in Severity for name in STATES if CONDITIONS[name].severity is severity
)
"""The states of a pool that are not in order, the most urgent first."""
