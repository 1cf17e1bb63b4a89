"""The tick: gather, decide, place, apply. Only the middle thinks, and it is pure.

One task decides. The clock (every 5 s) makes every pool due; the sink's NOTIFY makes those due that stand at zero while
jobs wait. Both only set a flag, so ticks never overlap.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.control.leadership import Leadership
from headway.control.recent import KEPT_S, RecentBuckets
from headway.errors import HeadwayError
from headway.scaling.decide import decide
from headway.scaling.model import Assignment, Decision, Memory, Mode, WorkerState
from headway.scaling.profile import Profile, profile_from_mapping
from headway.scaling.room import Rooms
from headway.scaling.settle import Outcome, settled
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Strategy
from headway.scaling.view import PoolView
from headway.store.deciding import Gathered, News, PoolState, apply, gather
from headway.store.engine import Engine
from headway.store.leadership import Superseded
from headway.zones import zones_of

HEARTBEAT_S = 300.0  # a decision that does not change is stored again this often, to show that it still holds

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
    ) -> None:
        self._engine = engine
        self._leadership = leadership
        self._clock = clock
        self._strategies = strategies
        self._recent = RecentBuckets()
        self._stored: dict[str, Decision] = {}
        self._failures: dict[str, str] = {}
        self._wake = asyncio.Event()
        self._is_all_due = True

    def all_due(self) -> None:
        """Every pool is due: the clock says so, or this process has just begun to lead."""
        self._is_all_due = True
        self._wake.set()

    def metrics_written(self) -> None:
        """Spark has written: pools that stand at zero while jobs wait are due."""
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
            try:
                await self.tick(epoch=epoch, is_all_due=is_all_due)
                self._leadership.progressed()
            except Superseded as error:
                log.warning("stepping down: %s", error)
                self._leadership.step_down()
            except Exception:
                # Whatever it was, pools keep their targets, and a tick that did not end does not renew the lease.
                log.exception("tick failed")

    async def tick(self, *, epoch: int, is_all_due: bool) -> None:
        """Evaluate every pool, or only those that must wake from zero, once."""
        now_s = self._clock()
        gathered = await gather(self._engine, revision=self._recent.revision, from_s=now_s - KEPT_S)
        self._recent.forget(now_s=now_s)
        waiting = self._recent.take(gathered.buckets, revision=gathered.revision)
        due = gathered.profiles if is_all_due else _asleep(gathered, waiting)
        if not due and not is_all_due:
            return

        outcomes, assignments = await asyncio.to_thread(self._settled, due, gathered, now_s)

        news = self._news(outcomes, assignments, gathered)
        await apply(self._engine, news, gathered, epoch=epoch)
        self._tell(news.decisions, gathered)

    def _settled(
        self, due: Mapping[str, Mapping[str, Any]], gathered: Gathered, now_s: float
    ) -> tuple[tuple[Outcome, ...], tuple[Assignment, ...]]:
        """What became of each pool beside the others, and where every worker goes.

        A pool that was not decided now, or only gets advice, keeps what it has.
        """
        outcomes = self._decided(due, gathered, now_s)
        acting = {outcome.decision.pool for outcome in outcomes if outcome.decision.mode is not Mode.RECOMMEND}
        held = [row for row in gathered.assignments if row.pool in gathered.profiles and row.pool not in acting]
        left, rows = settled(outcomes, gathered.hosts, gathered.assignments, held=held)
        return left, (*held, *rows)

    def _decided(self, due: Mapping[str, Mapping[str, Any]], gathered: Gathered, now_s: float) -> tuple[Outcome, ...]:
        """What became of each pool. One whose evaluation fails is left out, keeps its target, and touches no other."""
        outcomes = []
        rooms = Rooms(gathered.hosts)
        for pool, body in due.items():
            try:
                profile = profile_from_mapping(pool, body)
                state = gathered.states.get(pool)
                before = state.memory if state else Memory()
                view = _view(profile, self._recent, gathered, rooms, now_s=now_s)
                decision, memory = decide(view, before, now_s=now_s, strategies=self._strategies)
            except Exception as error:  # noqa: BLE001 - whatever it was, it is this pool's alone (law 10)
                self._failed(pool, error)
                continue
            self._failures.pop(pool, None)
            outcomes.append(Outcome(view=view, before=before, decision=decision, memory=memory))
        return tuple(outcomes)

    def _failed(self, pool: str, error: Exception) -> None:
        """Log why ``pool`` was not decided, once a change and not once a tick."""
        if self._failures.get(pool) == str(error):
            return
        self._failures[pool] = str(error)
        is_bug = not isinstance(error, HeadwayError)
        log.error("not decided, target held: pool=%s reason=%s", pool, error, exc_info=error if is_bug else None)

    def _news(self, outcomes: Sequence[Outcome], assignments: Sequence[Assignment], gathered: Gathered) -> News:
        states = gathered.states
        return News(
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
        return (
            last is None
            or (last.target_workers, last.binding, last.notes)
            != (decision.target_workers, decision.binding, decision.notes)
            or decision.at_s - last.at_s >= HEARTBEAT_S
        )

    def _tell(self, decisions: Sequence[Decision], gathered: Gathered) -> None:
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


def _view(profile: Profile, recent: RecentBuckets, gathered: Gathered, rooms: Rooms, *, now_s: float) -> PoolView:
    known = [host for host in gathered.hosts if host.is_known]
    templates = [template for host in known for template in host.templates if template.name == profile.template]
    states = [worker.state for host in known for worker in host.workers if worker.pool == profile.pool]
    silent = [host for host in gathered.hosts if not host.is_known]
    return PoolView(
        profile=profile,
        queues=tuple(
            recent.metrics(queue, now_s=now_s, objective=profile.objective_of(queue)) for queue in profile.queues
        ),
        direct=tuple(gathered.direct[queue] for queue in profile.queues if queue in gathered.direct),
        # Hosts may differ; the fewest slots and the slowest start promise nothing that one of them cannot keep.
        slots_per_worker=min((template.slots for template in templates), default=1),
        start_up_s=max((each.start_up_s for each in templates if each.start_up_s is not None), default=None),
        capacity_workers=rooms.capacity(profile.template),
        assigned_workers=sum(row.workers for row in gathered.assignments if row.pool == profile.pool),
        running_workers=states.count(WorkerState.RUNNING),
        starting_workers=states.count(WorkerState.STARTING),
        unknown_workers=sum(worker.pool == profile.pool for host in silent for worker in host.workers),
        worker_hours_today=gathered.worker_hours_today.get(profile.pool),
        zones=zones_of(profile),
    )
