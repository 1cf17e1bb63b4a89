"""The leader opens and closes incidents by what the overview shows. What is not known closes none."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.control.http.schemas.incidents.poison_responses import REMOVE, poison_sentence
from headway.control.http.schemas.responses import Overview, PoolOut
from headway.errors import Unavailable
from headway.scaling.conditions.condition import Severity
from headway.scaling.conditions.condition_table import TICKETS_IN_HEALTH
from headway.scaling.conditions.incident_rules import (
    IncidentChange,
    IncidentCondition,
    IncidentKey,
    changed,
    pending_since,
)
from headway.scaling.planning.shared_pool import separation
from headway.store.engine import Engine, transaction
from headway.store.incidents import read_open, save_change
from headway.store.notifications import ReceiversOf, nobody

ALERTING_S = 10.0  # conditions must hold for a minute
ALERTING_BUSY_FRACTION_MAX = 0.05  # an overview of ten thousand queues takes a second
PAGE, TICKET = Severity.PAGE, Severity.TICKET
UNKNOWN = frozenset({"stale", "unseen"})
OF_POOL_STATE = frozenset({"pool_late", "pool_at_ceiling", "pool_broken", "pool_unknown", "jobs_lost"})
# A pool has one word, the worst: whether anything that a worse one hides still holds shows in these only.
SHOWS_ALL = frozenset({"recovering", "bottleneck", "at_risk", "scaling", "idle", "unmeasured", "on_time"})
_BROKEN = ("pool_broken", "See `headway top`.", PAGE)
_UNREAD = ("pool_unknown", "See `headway get health`.", PAGE)
OF_STATES: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("failing", "crash_loop", "no_host"), _BROKEN),
        **dict.fromkeys(UNKNOWN, _UNREAD),
        "suspended": ("pool_suspended", "See `headway explain {}`.", TICKET),
    }
)
"""State of a pool -> the rule that it breaks, what to do, and how urgent that is."""

log = logging.getLogger(__name__)


class Alerting:
    """Evaluates the conditions while this process leads. Incidents are in Postgres: a new leader goes on with them."""

    def __init__(
        self,
        *,
        engine: Engine,
        overviews: OverviewBuilder,
        epoch: Callable[[], int | None],
        receivers_of: ReceiversOf = nobody,
    ) -> None:
        self._engine = engine
        self._receivers_of = receivers_of
        self._overviews = overviews
        self._epoch = epoch
        self._pending: dict[IncidentKey, float] = {}

    async def run(self) -> None:
        """Evaluate every few seconds, for ever. A failure is logged; the next evaluation tries again."""
        took_s = 0.0
        while True:
            await asyncio.sleep(max(ALERTING_S, took_s / ALERTING_BUSY_FRACTION_MAX))
            began_s = time.monotonic()
            try:
                await self.evaluate()
            except Unavailable as error:
                log.warning("alerts not evaluated: %s", error)
            except Exception:
                log.exception("alerts not evaluated")
            took_s = time.monotonic() - began_s

    async def evaluate(self) -> IncidentChange:
        """Open and close what has begun and ended. Returns that; nothing where another process leads."""
        epoch = self._epoch()
        if epoch is None:
            self._pending = {}
            return IncidentChange()
        seen = await self._overviews.of_pools()
        found = conditions_of(seen)
        self._pending = pending_since(self._pending, found, now_s=seen.at_s)
        async with transaction(self._engine) as conn:
            going_on = await read_open(conn)
            change = changed(found, self._pending, going_on, _unknown(seen, going_on), now_s=seen.at_s)
            if change.opened or change.closed:
                await save_change(conn, change, now_s=seen.at_s, epoch=epoch, receivers_of=self._receivers_of)
        for key in change.opened:
            log.warning("alert opened rule=%s pool=%s host=%s kind=%s", key.rule, key.pool, key.host, key.kind)
        for key in change.closed:
            log.info("alert closed rule=%s pool=%s host=%s kind=%s", key.rule, key.pool, key.host, key.kind)
        return change


def conditions_of(seen: Overview) -> Mapping[IncidentKey, IncidentCondition]:
    """What is wrong in an overview."""
    found: dict[IncidentKey, IncidentCondition] = {}
    for pool in seen.pools:
        found.update(_of_pool(pool))
    for host in seen.hosts:
        if not host.is_known:
            found[IncidentKey(rule="host_unreachable", host=host.name)] = IncidentCondition(
                severity=PAGE,
                summary=f"host {host.name} has not reported within its lease: what it runs is unknown",
                action="See `headway get hosts` and the agent's log there.",
            )
    for kind, reason in zip(seen.health.kinds, seen.health.reasons, strict=True):
        if kind in TICKETS_IN_HEALTH:
            continue  # of each pool it is an incident of its own, and no breach
        found[IncidentKey(rule="degraded", kind=kind)] = IncidentCondition(
            severity=PAGE, summary=reason, action="See `headway get health`."
        )
    return found


def _of_pool(pool: PoolOut) -> Mapping[IncidentKey, IncidentCondition]:
    name = pool.pool
    causes = "; ".join(pool.causes)
    found: dict[IncidentKey, IncidentCondition] = {}

    def add(rule: str, summary: str, action: str, *, severity: str = PAGE) -> None:
        found[IncidentKey(rule=rule, pool=name)] = IncidentCondition(severity=severity, summary=summary, action=action)

    if pool.state == "breaching":
        add("pool_late", causes or f"jobs of pool {name} wait too long", f"See `headway explain {name}`.")
        if pool.target_workers is not None and pool.target_workers >= pool.workers_max:
            add(
                "pool_at_ceiling",
                f"jobs of pool {name} wait too long, and its workers_max={pool.workers_max} allows no more workers",
                _sentence(
                    separation(pool.notes)
                    or "; ".join(pool.bottlenecks)
                    or f"raise workers_max of pool {name}, or add hosts"
                ),
            )
    if pool.state in OF_STATES:
        rule, action, severity = OF_STATES[pool.state]
        add(rule, causes or f"pool {name} is in the state {pool.state}", action.format(name), severity=severity)
    _add_lost_work(pool, add)
    if pool.overdue is not None:
        add(
            "drain_overdue",
            pool.overdue,
            "See what it does on its host; `headway kill WORKER` ends it, and cuts its jobs.",
        )
    if pool.unable is not None:
        add(
            "worker_unable",
            pool.unable,
            "See what keeps them on their hosts: others are started in their place, and they stay until they end.",
            severity=TICKET,
        )
    if pool.bottlenecks:
        add("pool_bottleneck", "; ".join(pool.bottlenecks), f"See `headway explain {name}`.", severity=TICKET)
    spent = pool.day_budget
    if spent is not None and spent.paid_worker_s >= spent.budget_worker_s:
        add(
            "pool_budget_reached",
            f"pool {name} has spent its budget of the day",
            f"Raise the budget of pool {name}, or wait for the next day.",
            severity=TICKET,
        )
    return found


def _add_lost_work(pool: PoolOut, add: Callable[..., None]) -> None:
    """Jobs that were cut, that kill their workers, and that are gone."""
    if pool.cut_jobs or pool.perhaps_cut_jobs:
        add(
            "jobs_cut",
            pool.causes[0],
            f"See `headway events --pool {pool.pool}`, and whether these jobs run again.",
            severity=PAGE if pool.cut_jobs else TICKET,
        )
    if pool.poison_jobs:
        add("job_poisonous", poison_sentence(pool.poison_jobs), REMOVE, severity=TICKET)
    if pool.lost_jobs:
        add("jobs_lost", f"{pool.lost_jobs} waiting jobs of pool {pool.pool} are gone", "See the broker's log.")
    elif pool.perhaps_lost_jobs:
        add(
            "jobs_lost",
            f"{pool.perhaps_lost_jobs} waiting jobs of pool {pool.pool} expired or were revoked, or are gone",
            "See whether its jobs expire, and the broker's log.",
            severity=TICKET,
        )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _unknown(seen: Overview, going_on: Collection[IncidentKey]) -> frozenset[IncidentKey]:
    """Of the incidents that go on, those of pools whose state does not show that they have ended."""
    unseen = {pool.pool for pool in seen.pools if pool.state not in SHOWS_ALL}
    unread = {pool.pool for pool in seen.pools if pool.state in UNKNOWN}
    return frozenset(
        key
        for key in going_on
        if (key.pool in unseen and key.rule in OF_POOL_STATE)
        or (key.pool in unread and key.rule == "pool_suspended")  # the first of all words: only unknown ones hide it
    )
