"""The leader opens and closes incidents by what the overview shows. What is not known closes none."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from headway.control.http.overview.overview_builder import OverviewBuilder
from headway.control.http.schemas.responses import Overview, PoolOut
from headway.errors import Unavailable
from headway.scaling.conditions.condition import DEGRADED, Severity
from headway.scaling.conditions.condition_table import CONDITIONS, WITH_OWN_INCIDENT
from headway.scaling.conditions.incident_rules import (
    IncidentChange,
    IncidentCondition,
    IncidentKey,
    changed,
    pending_since,
)
from headway.scaling.conditions.pool_table import ERROR_BUDGET_SPENT
from headway.store.engine import Engine, transaction
from headway.store.incidents import read_open, save_change
from headway.store.outbox.notifications import ReceiversOf, nobody
from headway.store.outbox.pool_events import Subscribers, no_subscribers

ALERTING_S = 10.0  # conditions must hold for a minute
ALERTING_BUSY_FRACTION_MAX = 0.05  # an overview of ten thousand queues takes a second
PAGE = Severity.PAGE.value
MEASURED = frozenset(each.own_rule for each in CONDITIONS.values() if each.is_measured)
UNHELD = CONDITIONS["unheld_jobs"].own_rule
UNREAD = frozenset(name for name, each in CONDITIONS.items() if each.own_rule == "pool_unknown")

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
        subscribers_of: Subscribers = no_subscribers,
    ) -> None:
        self._engine = engine
        self._receivers_of = receivers_of
        self._subscribers_of = subscribers_of
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
                await save_change(
                    conn,
                    change,
                    now_s=seen.at_s,
                    epoch=epoch,
                    receivers_of=self._receivers_of,
                    subscribers_of=self._subscribers_of,
                )
        for key in change.opened:
            log.warning("alert opened rule=%s pool=%s host=%s kind=%s", key.rule, key.pool, key.host, key.kind)
        for key in change.closed:
            log.info("alert closed rule=%s pool=%s host=%s kind=%s", key.rule, key.pool, key.host, key.kind)
        return change


def conditions_of(seen: Overview) -> Mapping[IncidentKey, IncidentCondition]:
    """What is wrong in an overview."""
    found: dict[IncidentKey, IncidentCondition] = {}
    for pool in seen.pools:
        found.update(_of_pool(pool, at_s=seen.at_s))
    away = CONDITIONS["host_unreachable"]
    for host in seen.hosts:
        if not host.is_known:
            found[IncidentKey(rule=away.own_rule, host=host.name)] = IncidentCondition(
                severity=PAGE, summary=f"host {host.name} {away.sentence}", action=away.cure_for()
            )
    for kind, reason in zip(seen.health.kinds, seen.health.reasons, strict=True):
        if kind in WITH_OWN_INCIDENT:
            continue
        found[IncidentKey(rule=DEGRADED, kind=kind)] = IncidentCondition(
            severity=PAGE, summary=reason, action=CONDITIONS[kind].cure_for()
        )
    return found


def _of_pool(pool: PoolOut, *, at_s: float) -> Mapping[IncidentKey, IncidentCondition]:
    """The incidents of a pool. Conditions that share a rule are one, as urgent as the first, which is the worst."""
    found: dict[IncidentKey, IncidentCondition] = {}
    causes = [(CONDITIONS[kind], cause) for kind, cause in zip(pool.kinds, pool.causes, strict=True)]
    others = [cause for condition, cause in causes if not condition.own_rule]
    for condition, cause in causes:
        if not condition.own_rule or condition.severity is None:
            continue
        # An incident of each day, which no quiet hour of that day ends.
        day = _day(at_s) if condition.own_rule == ERROR_BUDGET_SPENT else ""
        key = IncidentKey(rule=condition.own_rule, pool=pool.pool, kind=day)
        if key in found:
            found[key] = replace(found[key], summary=f"{found[key].summary}; {cause}")
            continue
        found[key] = IncidentCondition(
            severity=condition.severity.value,
            summary="; ".join((cause, *others) if condition.word else (cause,)),
            action=condition.cure_for(pool.pool),
        )
    ceiling, bottleneck = (IncidentKey(rule=rule, pool=pool.pool) for rule in ("pool_at_ceiling", "pool_bottleneck"))
    if ceiling in found and (cure := pool.separate_pools or "; ".join(pool.bottlenecks) or _cap_to_raise(pool)):
        found[ceiling] = replace(found[ceiling], action=f"{cure[0].upper()}{cure[1:]}.")
    if bottleneck in found:
        found[bottleneck] = replace(found[bottleneck], summary="; ".join(pool.bottlenecks))
    return found


def _cap_to_raise(pool: PoolOut) -> str:
    """What helps a pool that groups have capped; empty if none has."""
    names = [group.name for group in pool.groups if group.is_binding]
    return f"raise the cap of group {' and '.join(names)}, or the pool's priority or weight in it" if names else ""


def _unknown(seen: Overview, going_on: Collection[IncidentKey]) -> frozenset[IncidentKey]:
    """Of the incidents that go on, those that are read off queues of pools that are not read now, those about jobs of
    which nobody knows whether a worker has them, and those of today's error budgets: what is spent stays spent.
    """
    unread = {pool.pool for pool in seen.pools if UNREAD.intersection(pool.kinds)}
    pools = {pool.pool for pool in seen.pools}
    doubtful = {pool.pool for pool in seen.pools if pool.unheld_jobs is None}
    return frozenset(
        key
        for key in going_on
        if (key.pool in unread and key.rule in MEASURED)
        or (key.pool in doubtful and key.rule == UNHELD)
        or (key.rule == ERROR_BUDGET_SPENT and key.pool in pools and key.kind == _day(seen.at_s))
    )


def _day(at_s: float) -> str:
    """The day of UTC, as ``2026-11-27``."""
    return datetime.fromtimestamp(at_s, tz=UTC).date().isoformat()
