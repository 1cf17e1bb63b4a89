"""The conditions of pools: one row each, the worst first. The state of a pool is the first that is true of it."""

from collections.abc import Sequence
from functools import partial

from headway.scaling.conditions import pool_sentences as says
from headway.scaling.conditions.condition import Alert, Condition, Counting, Severity, Subject
from headway.scaling.conditions.job_troubles import cut_sentence, poison_sentence
from headway.scaling.conditions.noticed_workers import (
    background_sentence,
    overdue_sentence,
    start_failure_sentence,
    unable_sentence,
)

ERROR_BUDGET_SPENT = "error_budget_spent"
"""The rule of the incident of which a pool has one a day at most."""
PAGE, TICKET, NOTE = Severity
_POOL, _NAME = "pool {{ $labels.pool }}", "{{ $labels.pool }}"
_DARK = "without fresh data"
_of = partial(Condition, subject=Subject.POOL)
_has, _is = partial(_of, verb="has"), partial(_of, verb="is")
_note_has, _note_is = partial(_has, severity=NOTE), partial(_is, severity=NOTE)
_page_has, _page_is = partial(_has, severity=PAGE), partial(_is, severity=PAGE)
_ticket_has, _ticket_is = partial(_has, severity=TICKET), partial(_is, severity=TICKET)
_lost = partial(_of, own_rule="jobs_lost", confirmed_after_s=0.0, is_measured=True, seen_after="10 s")
_cut = partial(
    _has,
    own_rule="jobs_cut",
    confirmed_after_s=0.0,
    seen_after="10 s",
    says=lambda pool: [cut_sentence(pool.cuts)],
    cure="see `headway events --pool POOL` for the jobs and why, and whether they run again; without `drain_timeout_s` "
    "in host.toml Headway kills no worker, and a host needs the memory that its workers take",
)
_broken = partial(
    _has,
    severity=PAGE,
    counted_as="failing",
    own_rule="pool_broken",
    is_measured=True,
    alert=Alert(
        "HeadwayPoolBroken",
        'headway_pool_state{state=~"failing|crash_loop|no_host"} == 1',
        summary=f"{_POOL} is in the state {{{{ $labels.state }}}}: headway top",
    ),
)
_unknown = partial(
    _has,
    severity=PAGE,
    counted_as=_DARK,
    own_rule="pool_unknown",
    alert=Alert(
        "HeadwayPoolUnknown",
        'headway_pool_state{state=~"stale|unseen"} == 1',
        for_s=120,
        summary=f"{_POOL} has no fresh data ({{{{ $labels.state }}}}): headway top",
    ),
)


def _any(name: str, counted: str, what: str = "", *, for_s: float = 0.0) -> Alert:
    """A rule that finds pools of which any job or worker is ``counted``; ``what`` follows their number."""
    return Alert(name, f"headway_pool_{counted} > 0", for_s=for_s, summary=f"{{{{ $value }}}} {what}" if what else "")


def _state(name: str, state: str, *, for_s: float = 60.0) -> Alert:
    """A rule that finds a state of pools."""
    return Alert(name, f'headway_pool_state{{state="{state}"}} == 1', for_s=for_s)


OF_POOLS: Sequence[Condition] = (
    _ticket_is(
        name="suspended",
        what="suspended: its library or its consumers keep all workers from taking jobs",
        cure="`headway explain POOL` says who keeps its workers from taking jobs: `rq resume` ends `rq suspend`, and "
        "`celery control add_consumer QUEUE` what `cancel_consumer` began",
        word="suspended",
        counted_as="suspended",
        own_rule="pool_suspended",
        is_measured=True,
        alert=_state("HeadwayPoolSuspended", "suspended"),
        seen_after="2 s; 20 s by the workers' own word, 15 s where RabbitMQ lists no consumer",
        is_true=lambda pool: pool.is_suspended,
        says=lambda pool: [None if pool.suspension is None else pool.suspension.text],
        counting=Counting(
            several="pools are suspended: their libraries or consumers keep all workers from taking jobs"
        ),
    ),
    _lost(
        name="lost_jobs",
        verb="has",
        what="lost waiting jobs before their start",
        severity=PAGE,
        cure="find out who flushed the broker or deleted the jobs; a Redis that keeps jobs needs `appendonly yes` and "
        "`maxmemory-policy noeviction`",
        alert=_any("HeadwayJobsLost", "lost_jobs", f"waiting jobs of {_POOL} are gone and were not started"),
        is_true=lambda pool: pool.lost_jobs > 0,
        says=says.lost_jobs,
    ),
    _lost(
        name="perhaps_lost_jobs",
        verb="may have",
        what="lost waiting jobs before their start, or they expired",
        severity=TICKET,
        cure="see whether these jobs expire (Celery's `expires`, RQ's `ttl`, a time to live in the broker); where they "
        "do not, the broker was flushed or somebody deleted them. Workers of a Celery that an agent starts report "
        "which tasks expire",
        alert=_any(
            "HeadwayJobsPerhapsLost",
            "perhaps_lost_jobs",
            f"waiting jobs of {_POOL} expired or were revoked, or are lost",
        ),
        is_true=lambda pool: pool.perhaps_lost_jobs > 0,
        says=says.perhaps_lost_jobs,
    ),
    _cut(
        name="cut_jobs",
        what="jobs that the end of a worker has cut in the last 15 minutes",
        severity=PAGE,
        alert=_any("HeadwayJobsCut", "cut_jobs", f"jobs of {_POOL} were cut: headway events --pool {_NAME}"),
        is_true=lambda pool: pool.has_certain_cuts,
        counting=Counting(
            one="job was cut, or may have been, in the last 15 min",
            several="jobs were cut, or may have been, in the last 15 min",
            number=lambda pool: len(pool.cuts),
            see="headway events",
        ),
    ),
    _cut(
        name="perhaps_cut_jobs",
        what="workers that ended in the last 15 minutes and may have cut a job",
        severity=TICKET,
        alert=_any("HeadwayJobsPerhapsCut", "perhaps_cut_jobs"),
        is_true=lambda pool: bool(pool.cuts) and not pool.has_certain_cuts,
        counting=Counting(
            one="worker may have lost a job in the last 15 min",
            several="workers may have lost a job in the last 15 min",
            number=lambda pool: len(pool.cuts),
            see="headway events",
        ),
    ),
    _ticket_has(
        name="poison_jobs",
        what="a job with which its workers died three times",
        cure="remove the job in its library: `celery -A APP control revoke ID`, or `Job.fetch(ID, connection).delete()`"
        " of RQ; Headway removes no job",
        own_rule="job_poisonous",
        confirmed_after_s=0.0,
        alert=_any("HeadwayPoisonJob", "poison_jobs"),
        seen_after="10 s",
        is_true=lambda pool: bool(pool.poison),
        says=lambda pool: [poison_sentence(pool.poison)],
        counting=Counting(
            one="job is poisonous, workers died with it three times or more",
            several="jobs are poisonous, workers died with each three times or more",
            number=lambda pool: len(pool.poison),
        ),
    ),
    _ticket_has(
        name="unheld_jobs",
        what="jobs that are taken and that no worker has, as after the kill of a worker or a restart of the broker",
        cure="wait until the broker gives them back, after Celery's `visibility_timeout` or at RQ's clean-up; one "
        "that is shorter than a job has that job run twice. Tasks with a `rate_limit` of a few an hour look alike: "
        "`celery -A APP inspect reserved` names the tasks that a worker has",
        own_rule="jobs_unheld",
        is_measured=True,
        alert=_any("HeadwayJobsUnheld", "unheld_jobs", f"jobs of {_POOL} are held by no worker", for_s=60),
        seen_after="1 min",
        is_true=lambda pool: pool.unheld is not None,
        says=says.unheld,
        counting=Counting(
            one="job is held by no worker, and does not run before its broker gives it back",
            several="jobs are held by no worker, and do not run before their broker gives them back",
            number=lambda pool: 0 if pool.unheld is None else pool.unheld.jobs,
        ),
    ),
    _page_is(
        name="breaching",
        what="late: the oldest job of a queue has waited longer than that queue's objective allows",
        cure="`headway explain POOL` says how many workers it needs, and what limits them",
        word="late",
        counted_as="late",
        own_rule="pool_late",
        is_measured=True,
        alert=_state("HeadwayPoolLate", "breaching", for_s=300),
        is_true=lambda pool: pool.is_late and not pool.is_suspended,
        says=says.late,
    ),
    _broken(
        name="crash_loop",
        what="workers in a crash loop",
        cure="read the last lines of the workers' output, in workers/ of the agent's state folder; "
        "`headway agent check` shows the command that is run; after a change of host.toml the agent tries again "
        "immediately",
        word="crash loop",
        seen_after="the first ends of its workers",
        is_true=lambda pool: pool.is_crash_looping,
        says=says.crash_loop,
    ),
    _broken(
        name="failing",
        what="too many failing jobs",
        cure="read the workers' output for what the jobs raise; more workers do not help while jobs fail",
        word="failing",
        seen_after="a minute, where all do",
        is_true=lambda pool: pool.is_failing,
        says=says.failing,
    ),
    _broken(
        name="no_host",
        what="no reachable host to run on",
        cure="add [templates.NAME] to the host.toml of a host and start its agent, or correct `template` in the "
        "profile",
        word="no host",
        seen_after="immediately",
        is_true=lambda pool: pool.no_host is not None,
        says=says.no_host,
    ),
    _unknown(
        name="unseen",
        what="a queue that no collector or sender has ever reported",
        cure="see `headway get health`, and whether the profile names the queue as `headway get queues` lists it",
        word="not seen yet",
        is_true=lambda pool: pool.is_unseen,
        says=says.unseen,
    ),
    _unknown(
        name="stale",
        what="no fresh data: depths or measurements are older than 60 % of `stale_after_s`, so nothing is scaled down",
        cure="see `headway get health`",
        word="no fresh data",
        is_true=lambda pool: not (pool.is_unlisted or (pool.has_fresh_depths and pool.has_fresh_measures)),
        says=says.stale,
    ),
    _note_has(
        name="recovering",
        what="been late in the objective's window, and no job is known to wait too long now",
        word="was late",
        is_true=lambda pool: pool.is_lately_late,
    ),
    _ticket_has(
        name="bottleneck",
        what="a bottleneck",
        cure="`headway explain POOL` says what limits it and what cures it; more workers do not start or do not help",
        word="bottleneck",
        own_rule="pool_bottleneck",
        alert=_state("HeadwayPoolBottleneck", "bottleneck", for_s=300),
        seen_after="the next evaluation, 5 s; of failed starts their first end, or 7 s",
        is_true=lambda pool: bool(pool.bottlenecks),
        says=lambda pool: [start_failure_sentence(pool.noticed), *pool.useless],
        counting=Counting(details=lambda pool: pool.bottlenecks),
    ),
    _note_is(
        name="at_risk",
        what="nearly late: the oldest job has waited 70 % of its objective, or workers do not come",
        word="nearly late",
        is_momentary=True,
        is_true=lambda pool: pool.is_at_risk,
    ),
    _note_has(
        name="unlisted",
        what="queues that its collector has never found in their broker: they have had no job yet, or are misspelt",
        cure=f"correct the name: it is CONNECTION/QUEUE, as `headway get queues` lists them; {says.FIRST_JOB}",
        word="not found yet",
        is_true=lambda pool: pool.is_unlisted,
        says=says.unlisted,
    ),
    _has(
        name="scaling",
        what="workers that are being started or let go",
        word="scaling",
        is_true=lambda pool: pool.is_scaling,
    ),
    _is(
        name="on_time",
        what="on time: waits are within the objective, or no job waits or starts while jobs run or may run",
        word="on time",
        is_true=lambda pool: pool.is_quiet and pool.may_be_at_work,
    ),
    _is(
        name="idle",
        what="idle: no job waits, runs or has started lately, so there is nothing to measure",
        word="idle",
        is_true=lambda pool: pool.is_quiet,
    ),
    _note_has(
        name="unmeasured",
        what="jobs, and no pickup time was measured within the objective's window",
        word="not measured",
        counted_as=_DARK,
        is_true=lambda pool: pool.metrics.pickup_objective_s is None,
    ),
    _of(
        name="capacity",
        verb="needs",
        what="more workers than hosts have capacity for",
        severity=PAGE,
        cure="add a host, or lower `cpu_cores` and `memory_bytes` of the template where workers take less",
        seen_after="the next evaluation, 5 s",
        is_true=lambda pool: pool.is_short_of_room and pool.no_host is None,
        says=lambda pool: [f"the hosts have capacity for only {pool.target_workers or 'none'} of its workers"],
    ),
    _page_has(
        name="unstarted",
        what="workers that no host has started",
        cure="read the agent's log on the hosts of that pool: it says what keeps workers from starting",
        seen_after="6 s",
        is_true=lambda pool: pool.unstarted_workers > 0 and pool.no_host is None and not pool.is_crash_looping,
        says=says.unstarted,
    ),
    _ticket_has(
        name="unable_workers",
        what="workers that take no jobs: their process is stopped, or their consumers are cancelled",
        cure="see why on its host: a process that was stopped goes on with `kill -CONT PID`; consumers that were "
        "cancelled come back with `celery -A APP control add_consumer QUEUE`, or with a new worker. Others are "
        "started in their place, and they stay until they end",
        own_rule="worker_unable",
        alert=_any(
            "HeadwayWorkerUnable",
            "unable_workers",
            f"workers of {_POOL} take no jobs: headway explain {_NAME}",
            for_s=60,
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
    _note_has(
        name="in_background",
        what="a template that goes to the background, where its agent cannot watch it",
        cure="remove --detach from the `argv` of the template",
        is_true=lambda pool: any(each.worker.goes_to_background for each in pool.noticed),
        says=lambda pool: [background_sentence(pool.noticed)],
    ),
    _page_has(
        name="drain_overdue",
        what="a worker that drains for more than three times as long as 99 % of the pool's jobs take",
        cure="see what it does on its host; `headway kill WORKER` ends it, and cuts its jobs",
        own_rule="drain_overdue",
        alert=_any("HeadwayDrainOverdue", "overdue_workers", for_s=60),
        is_true=lambda pool: bool(pool.overdue),
        says=lambda pool: [overdue_sentence(pool.overdue, service_p99_s=pool.service_p99_s, now_s=pool.now_s)],
    ),
    _page_is(
        name="at_ceiling",
        what="late, and its `workers_max`, or the cap of a group that it is in, allows no more workers",
        cure="raise workers_max of pool POOL, or add hosts",
        own_rule="pool_at_ceiling",
        is_measured=True,
        alert=Alert(
            "HeadwayAtCeiling",
            'headway_pool_state{state="breaching"} == 1 and on (instance, pool) '
            "headway_pool_target_workers >= headway_pool_ceiling_workers",
            for_s=300,
            is_composed=True,
        ),
        is_true=lambda pool: pool.is_at_ceiling and not pool.is_suspended,
        says=says.at_ceiling,
    ),
    _ticket_has(
        name="budget_reached",
        what="spent its budget of the day",
        cure="raise the budget of pool POOL, or wait for the next day",
        own_rule="pool_budget_reached",
        alert=Alert(
            "HeadwayBudgetReached",
            "headway_pool_day_paid_worker_seconds >= headway_pool_day_budget_worker_seconds",
            is_composed=True,
        ),
        is_true=lambda pool: pool.has_spent_budget,
        says=lambda _: ["it has spent its budget of the day"],
    ),
    _ticket_has(
        name="error_budget_spent",
        what="spent the day's error budget: more jobs have started late since 00:00 UTC than its objective allows",
        cure="`headway get slo --pool POOL` shows the days, and `headway explain POOL` what limits its workers; if the "
        "objective is stricter than needed, change it. The incident ends with the day",
        own_rule=ERROR_BUDGET_SPENT,
        confirmed_after_s=0.0,
        alert=Alert(
            "HeadwayErrorBudgetSpent",
            "headway_pool_day_late_jobs > headway_pool_day_late_jobs_allowed",
            for_s=0,
            summary=f"more jobs of {_POOL} have started late today than its objective allows a day: headway get slo",
            is_composed=True,
        ),
        is_true=lambda pool: pool.has_spent_error_budget,
        says=says.error_budget_spent,
    ),
)
