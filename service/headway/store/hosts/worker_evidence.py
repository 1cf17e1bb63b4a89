"""Whether a worker is busy, of what its agent reports and what its broker says: which of the two counts."""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    Label,
    and_,
    bindparam,
    case,
    cast,
    false,
    func,
    literal_column,
    not_,
    or_,
    select,
    true,
)

from headway.scaling.model import ActivitySource
from headway.store.tables import epoch_s, hosts, seconds, worker_activities, workers

FRESH_S = 15.0  # what a broker said of a worker longer ago says nothing of it now
WORD_HOLDS_S = 20.0  # agents report every 18 s at the latest, and at once that an idle worker has a job

_OLDEST_STARTED_S = (
    select(func.min(cast(literal_column("job ->> 'started_at_s'"), Double)))
    .select_from(func.jsonb_array_elements(workers.c.running).alias("job"))
    .scalar_subquery()
)
"""Since when a worker has been busy, by the jobs that it named."""

_HAS_JUST_REPORTED = func.coalesce(
    hosts.c.reported_at > func.now() - seconds(bindparam("host_word_s", WORD_HOLDS_S)), false()
)
_SEEN_AT_S = epoch_s(worker_activities.c.seen_at)
_REPORTED_KNOWN_S = epoch_s(hosts.c.reported_at) - workers.c.activity_age_s
_IS_NEWER = func.coalesce(_REPORTED_KNOWN_S, 0.0) <= _SEEN_AT_S
_IS_WITHDRAWN = worker_activities.c.seen_at == literal_column("'-infinity'::timestamptz")
_IS_OWN = func.coalesce(workers.c.activity_source == ActivitySource.REPORTER.value, False)
_SAYS_BUSY = worker_activities.c.is_busy == true()

BROKERS_WORD = and_(
    worker_activities.c.host_name == hosts.c.name,
    worker_activities.c.pid == workers.c.pid,
    or_(
        _IS_WITHDRAWN,
        and_(
            worker_activities.c.seen_at > func.now() - seconds(bindparam("activity_fresh_s", FRESH_S)),
            worker_activities.c.seen_at > workers.c.started_at,  # before that its pid was another process's
        ),
    ),
)
"""What joins a worker with the broker's word of it, if there is one that still says something."""

# The worker's own report counts before the broker's word, and that before what its processes show. A proof that it is
# busy counts before an older claim that it is idle, whoever says so; before the worker's own, only where its agent may
# not have been able to report since: a job that Celery lost sight of is in all heartbeats of the worker that had it.
_BY_BROKER = case(
    (or_(worker_activities.c.is_busy.is_(None), _IS_WITHDRAWN), False),
    # A reporter that is silent may hide a job: the broker's word proves work then, and no idleness.
    (workers.c.is_busy.is_(None), or_(_SAYS_BUSY, not_(_IS_OWN))),
    (worker_activities.c.is_busy == workers.c.is_busy, not_(_IS_OWN)),
    (_SAYS_BUSY, or_(not_(_IS_OWN), and_(_IS_NEWER, not_(_HAS_JUST_REPORTED)))),
    else_=and_(_IS_NEWER, not_(_IS_OWN)),
)
# What the agent has of the broker's own word ends with that, and not a report later.
_BY_NOBODY = and_(_IS_WITHDRAWN, workers.c.is_busy == false(), workers.c.activity_source == ActivitySource.BROKER.value)


def _counting(name: str, *, broker: Any, agent: ColumnElement[Any]) -> Label[Any]:
    return case((_BY_BROKER, broker), (_BY_NOBODY, None), else_=agent).label(name)


EVIDENCE = (
    _counting("is_busy", broker=worker_activities.c.is_busy, agent=workers.c.is_busy),
    case(
        (and_(_BY_BROKER, _SAYS_BUSY), worker_activities.c.busy_since_s),
        (workers.c.is_busy == true(), _OLDEST_STARTED_S),
    ).label("busy_since_s"),
    case((and_(_BY_BROKER, _SAYS_BUSY), worker_activities.c.busy_queue)).label("busy_queue"),
    _counting("running_jobs", broker=worker_activities.c.running_jobs, agent=workers.c.running_jobs),
    _counting("activity_source", broker=ActivitySource.BROKER.value, agent=workers.c.activity_source),
    _counting("activity_known_at_s", broker=_SEEN_AT_S, agent=_REPORTED_KNOWN_S),
)
"""Columns of what counts: whether busy, since when, of which queue, how many jobs, who says it and when it was so."""
