"""The tick: gather, decide, place, apply. Only the middle thinks, and it is pure.

One task decides. The clock (every 5 s) makes every pool due; the sink's NOTIFY makes those due that stand at zero while
jobs wait, and ingest's those that are suspended from now on or no longer. All only set a flag, so ticks never overlap.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from headway.control.scheduler.bucket_backfill import BucketBackfill
from headway.control.scheduler.bucket_cache import CACHED_S
from headway.control.scheduler.evaluator import Evaluator
from headway.control.scheduler.event_reasons import EventReasons
from headway.control.scheduler.leader import Leadership
from headway.control.scheduler.maintenance import prepare
from headway.control.scheduler.queue_discovery import QueueDiscovery
from headway.errors import Unavailable
from headway.scaling.allocation.host_demand import HostsWanted, hosts_wanted
from headway.scaling.decisions.change_detection import is_new
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.model import Assignment, Decision, Suspension
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Strategy
from headway.store.engine import Engine, transaction
from headway.store.hosts.host_lease import EVALUATION_PAUSE_S
from headway.store.leadership import Superseded
from headway.store.outbox.pool_events import Subscribers, no_subscribers
from headway.store.pools.behaviours import Learned, read_learned
from headway.store.pools.evaluation_io import EvaluationResult, Gathered, PoolState, apply, gather, hold_hosts

DECISION_HEARTBEAT_S = 300.0  # a decision that does not change is stored again this often, to show that it still holds

log = logging.getLogger(__name__)


class Ticker:
    """Decides for every pool while this process leads."""

    def __init__(
        self,
        *,
        engine: Engine,
        leadership: Leadership,
        clock: Callable[[], float],
        strategies: Mapping[str, Strategy] = BUILT_IN,
        recommends_only: bool = False,
        subscribers_of: Subscribers = no_subscribers,
    ) -> None:
        """Decide with ``strategies``. Receivers that ``subscribers_of`` names get the events that follow."""
        self._engine = engine
        has_subscribers = subscribers_of is not no_subscribers
        self._reasons = EventReasons(subscribers_of, strategies) if has_subscribers else None
        self._recommends_only = recommends_only
        self._leadership = leadership
        self._clock = clock
        self._evaluation = Evaluator(strategies)
        self._epoch: int | None = None
        self._evaluated_until_s: float | None = None
        """By Postgres's clock, the end of the last tick; ``None`` before the first of this lead."""
        self._filling = BucketBackfill()
        self._discovery = QueueDiscovery()
        self._stored: dict[str, Decision] = {}
        self._wake = asyncio.Event()
        self._is_all_due = True
        self._due_since_s: float | None = None
        """When all pools became due, by this process's clock; ``None`` once an evaluation has begun."""
        self._began_at_s = 0.0

    def all_due(self) -> None:
        """Every pool is due: the clock says so, or this process has just begun to lead."""
        self._is_all_due = True
        self._due_since_s = time.monotonic()
        self._wake.set()

    def metrics_written(self) -> None:
        """Spark has written: pools that stand at zero while jobs wait are due."""
        self._wake.set()

    def suspension_turned(self) -> None:
        """Workers of a queue are kept from taking jobs, or no longer: pools that go by the opposite are due."""
        self._wake.set()

    async def run(self) -> None:
        """Tick whenever something is due, until cancelled. A failed tick is logged; the next one tries again."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            epoch = self._leadership.epoch
            if epoch is None:
                continue
            is_all_due, self._is_all_due = self._is_all_due, False
            if not await self._is_through(epoch, is_all_due=is_all_due):
                # An evaluation of sleeping pools that finds none must not pass for progress while whole ticks fail.
                self._is_all_due |= is_all_due

    async def _is_through(self, epoch: int, *, is_all_due: bool) -> bool:
        """Tick. Returns whether that came to its end."""
        try:
            await self.tick(epoch=epoch, is_all_due=is_all_due)
        except Superseded as error:
            log.warning("stepping down: %s", error)
            self._leadership.step_down(epoch)
        except Unavailable as error:
            log.warning("tick missed: %s", error)  # as while Postgres restarts
        except Exception:
            # Whatever it was, pools keep their targets, and a tick that did not end does not renew the lease.
            log.exception("tick failed")
        else:
            self._leadership.progressed()
            return True
        return False

    async def tick(self, *, epoch: int, is_all_due: bool) -> None:
        """Evaluate every pool, or only those that must wake from zero, once."""
        now_s = self._clock()
        if epoch != self._epoch:
            self._evaluation.forget()
            self._epoch, self._filling = epoch, BucketBackfill()
            self._evaluated_until_s = None
            if self._reasons is not None:
                self._reasons.forget()
            self._stored.clear()  # others may have stored theirs meanwhile: ours must not pass for the last
            async with transaction(self._engine) as connection:
                self._evaluation.learning.take(await read_learned(connection))
        began_at_s = self._began_at_s = time.monotonic()
        recent = self._evaluation.recent
        # Minutes of everything may take longer than the lease to read. Later evaluations are through when they are.
        await self._filling.keep_up(self._engine, recent, now_s=now_s, on_part=self._leadership.progressed)
        if is_all_due:
            await self._discovery.keep_up(self._engine, epoch=epoch)
        now_s = self._clock()
        gathered = await self._gathered(epoch=epoch, now_s=now_s, began_at_s=began_at_s)
        recent.forget(now_s=now_s)
        waiting = recent.take(gathered.buckets, revision=gathered.revision)
        due = gathered.profiles
        if not is_all_due:
            due = {
                **_asleep(gathered, waiting | _at_least_waiting(gathered)),
                **_turned(gathered, self._evaluation.suspended),
            }
        if not due and not is_all_due:
            return

        await self._recall(gathered, now_s=now_s)
        outcomes, assignments = await asyncio.to_thread(self._evaluation.evaluate, gathered, due=due, now_s=now_s)

        wanted = await asyncio.to_thread(
            hosts_wanted, outcomes, assignments, gathered.hosts, before=gathered.wanted, now_s=now_s
        )
        _log_missing(wanted, gathered.wanted)
        learned = await self._learned(outcomes, assignments, gathered, now_s=now_s, is_whole=is_all_due)
        news = replace(self._news(outcomes, assignments, gathered), wanted=wanted, learned=learned)
        if self._reasons is not None:
            targets = {pool: state.target_workers for pool, state in gathered.states.items()}
            stored = [decision for decision, _ in news.remembered]
            events = await asyncio.to_thread(self._reasons.of, outcomes, stored, targets, now_s=now_s)
            news = replace(news, events=events)
        await apply(self._engine, news, gathered, epoch=epoch, recommends_only=self._recommends_only)
        if self._reasons is not None and news.events is not None:
            self._reasons.keep(news.events, gathered.profiles, now_s=now_s)
        self._log_decisions(news.decisions, gathered)
        self._evaluated_until_s = gathered.at_s + (time.monotonic() - began_at_s)  # a long tick is no pause

    async def _gathered(self, *, epoch: int, now_s: float, began_at_s: float) -> Gathered:
        """What is there. After a pause of evaluations, a host's silence counts up to the last evaluation only."""
        read = partial(
            gather,
            self._engine,
            recommends_only=self._recommends_only,
            revision=self._evaluation.recent.revision,
            from_s=now_s - CACHED_S,
            clock_s=now_s,
        )
        gathered = await read()
        since_s = self._evaluated_until_s
        paused_s = 0.0 if since_s is None else gathered.at_s - since_s - (time.monotonic() - began_at_s)
        if since_s is not None and paused_s > EVALUATION_PAUSE_S:
            log.warning("no evaluation for %.0f s: no host counts as silent for that time", paused_s)
            await prepare(self._engine)  # a day may have come that upkeep did not see coming
            await hold_hosts(self._engine, since_s=since_s, epoch=epoch)
            gathered = await read()
        self._evaluated_until_s = gathered.at_s
        return gathered

    async def _recall(self, gathered: Gathered, *, now_s: float) -> None:
        """Once a minute, read what earlier days had."""
        if self._evaluation.earlier.is_due(now_s=now_s):
            exposed_s = await asyncio.to_thread(self._evaluation.exposed_s, gathered, now_s=now_s)
            await self._evaluation.earlier.read(self._engine, exposed_s, now_s=now_s)

    async def _learned(
        self,
        outcomes: Sequence[Outcome],
        assignments: Sequence[Assignment],
        gathered: Gathered,
        *,
        now_s: float,
        is_whole: bool,
    ) -> Mapping[str, Learned]:
        """What is to be written down of what this tick shows of pools."""
        learning = self._evaluation.learning
        if is_whole and self._due_since_s is not None:
            learning.began(late_s=self._began_at_s - self._due_since_s)
            self._due_since_s = None
        learn = partial(learning.learn, now_s=now_s, is_whole=is_whole)
        try:
            await asyncio.to_thread(learn, outcomes, assignments, gathered, self._evaluation.recent)
            return learning.due(now_s=now_s)
        except Exception:
            log.exception("nothing learned")  # which only rehearsals and figures are the poorer for
            return {}

    def _news(
        self, outcomes: Sequence[Outcome], assignments: Sequence[Assignment], gathered: Gathered
    ) -> EvaluationResult:
        states = gathered.states
        return EvaluationResult(
            remembered=[
                (outcome.decision, outcome.memory)
                for outcome in outcomes
                if outcome.decision.pool not in states or states[outcome.decision.pool].memory != outcome.memory
            ],
            decisions=[outcome.decision for outcome in outcomes if self._is_news(outcome.decision)],
            assignments=assignments,
        )

    def _is_news(self, decision: Decision) -> bool:
        last = self._stored.get(decision.pool)
        # The heartbeat is due also when the clock was set back.
        return last is None or is_new(decision, last) or abs(decision.at_s - last.at_s) >= DECISION_HEARTBEAT_S

    def _log_decisions(self, decisions: Sequence[Decision], gathered: Gathered) -> None:
        self._stored = {pool: decision for pool, decision in self._stored.items() if pool in gathered.profiles}
        for decision in decisions:
            self._stored[decision.pool] = decision
            state: PoolState | None = gathered.states.get(decision.pool)
            was = state.target_workers if state else 0
            if was != decision.target_workers:
                log.info(
                    "scaled pool=%s from=%d to=%d binding=%s",
                    decision.pool,
                    was,
                    decision.target_workers,
                    decision.binding,
                )


def _asleep(gathered: Gathered, waiting: frozenset[str]) -> Mapping[str, Mapping[str, Any]]:
    """The pools at zero in one of whose queues jobs wait."""
    return {
        pool: body
        for pool, body in gathered.profiles.items()
        if (pool not in gathered.states or gathered.states[pool].target_workers == 0)
        and not waiting.isdisjoint(body.get("queues", ()))
    }


def _at_least_waiting(gathered: Gathered) -> frozenset[str]:
    """Queues with a new row without a number of waiting jobs, of which the newest reading has a lower bound."""
    unknown = {row.queue for row in gathered.buckets if row.waiting_jobs is None}
    return frozenset(queue for queue in unknown & gathered.direct.keys() if gathered.direct[queue].waiting_min_jobs)


def _turned(gathered: Gathered, suspended: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
    """The ``suspended`` pools of which a broker says that workers take jobs, and those where the reverse is so."""
    said = {queue: sample.suspension for queue, sample in gathered.direct.items() if sample.suspension is not None}
    turned = {}
    for pool, body in gathered.profiles.items():
        of_pool = {said[queue] for queue in body.get("queues", ()) if queue in said}
        is_over = pool in suspended and Suspension.NONE in of_pool
        if is_over or (pool not in suspended and of_pool == {Suspension.LIBRARY}):
            turned[pool] = body
    return turned


def _log_missing(wanted: Sequence[HostsWanted], before: Sequence[HostsWanted]) -> None:
    """Log what is missing now and was not before, or in another number."""
    known = {(each.templates, each.hosts) for each in before}
    for each in wanted:
        if (each.templates, each.hosts) not in known:
            log.info(
                "hosts missing=%s labels=%s templates=%s workers_without_place=%d",
                "unknown" if each.hosts is None else each.hosts,
                dict(each.labels),
                ",".join(each.templates),
                each.workers,
            )
    if before and not wanted:
        log.info("hosts are as many as it takes")
