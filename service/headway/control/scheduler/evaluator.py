"""What becomes of every pool at a tick: decided where anything could have changed, then allocated beside all others."""

import logging
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from headway.control.gc_tuning import unsearched
from headway.control.scheduler.bucket_cache import BucketCache
from headway.control.scheduler.history_cache import HistoryCache
from headway.control.scheduler.learning import Learning
from headway.control.scheduler.view_builder import ViewBuilder
from headway.errors import HeadwayError, Invalid
from headway.scaling.allocation.allocate import allocate
from headway.scaling.allocation.rollout import rolled
from headway.scaling.decide import decide
from headway.scaling.decisions.finite_figures import non_finite_decided, non_finite_in
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.decisions.reuse import is_reusable
from headway.scaling.group import memberships
from headway.scaling.metrics.shared_queues import NOTHING_SHARED, SharedQueues
from headway.scaling.model import Assignment, Memory, Mode, is_suspended
from headway.scaling.profile import Profile, profile_from_mapping
from headway.scaling.strategies import BUILT_IN
from headway.scaling.strategy import Strategy
from headway.store.pools.evaluation_io import Gathered, require_storable

log = logging.getLogger(__name__)


class Evaluator:
    """Decides on what was gathered. It remembers what it made of each pool, so that what still stands is not redone."""

    def __init__(self, strategies: Mapping[str, Strategy] = BUILT_IN) -> None:
        self.recent = BucketCache()
        self.earlier = HistoryCache()
        self.learning = Learning()
        self._strategies = strategies
        self._profiles: dict[str, tuple[Mapping[str, Any], Profile]] = {}
        self._outcomes: dict[str, Outcome] = {}
        """By pool, as they were decided: before the others had their part."""
        self._failures: dict[str, str] = {}
        self._shared: tuple[Mapping[str, Mapping[str, Any]], SharedQueues] = {}, NOTHING_SHARED
        """The profiles that were read last while any pool helped another, and what they say of that."""

    def forget(self) -> None:
        """Read and decide everything anew: others may have led meanwhile, or the database is a restored one.

        That one counts its rows from an earlier revision on; those that are new in it would never be read.
        """
        self.recent = BucketCache()
        self.learning = Learning()
        self._outcomes.clear()

    @property
    def suspended(self) -> frozenset[str]:
        """The pools whose last decision knew that something keeps their workers from taking jobs."""
        return frozenset(pool for pool, outcome in self._outcomes.items() if is_suspended(outcome.decision.suspension))

    def exposed_s(self, gathered: Gathered, *, now_s: float) -> dict[str, float]:
        """Queue -> for how long from now its pool is exposed, of exposed pools only."""
        views = ViewBuilder(gathered, self.recent, learning=self.learning, now_s=now_s)
        found: dict[str, float] = {}
        for pool, body in gathered.profiles.items():
            try:
                profile = self._profile(pool, body)
                ahead_s = views.exposed_s(profile)
            except Exception:  # noqa: BLE001, S112 - deciding meets it as well, and reports it
                continue
            if ahead_s > 0:
                found.update(dict.fromkeys(profile.queues, ahead_s))
        return found

    @unsearched()
    def evaluate(
        self, gathered: Gathered, *, due: Mapping[str, Mapping[str, Any]], now_s: float
    ) -> tuple[tuple[Outcome, ...], tuple[Assignment, ...]]:
        """The outcomes beside each other, and where every worker goes. Of pools that are not ``due``, the last.

        A pool that could not be decided keeps what it has; so does one that only gets advice.
        """
        sharing = self._sharing(gathered)
        views = ViewBuilder(gathered, self.recent, self.earlier, learning=self.learning, sharing=sharing, now_s=now_s)
        outcomes: dict[str, Outcome] = {}
        for pool, body in gathered.profiles.items():
            outcome = self._decided(pool, body, gathered, views, now_s) if pool in due else self._last(pool, body)
            if outcome is not None:
                outcomes[pool] = outcome
        self._outcomes = outcomes
        self._profiles = {pool: self._profiles[pool] for pool in outcomes}
        acting = {pool for pool, outcome in outcomes.items() if outcome.decision.mode is not Mode.RECOMMEND}
        held = [row for row in gathered.assignments if row.pool in gathered.profiles and row.pool not in acting]
        left, rows = allocate(
            tuple(outcomes.values()), gathered.hosts, gathered.assignments, held=held, groups=gathered.groups
        )
        marked = self._marked((*held, *rows), outcomes, capped=memberships(gathered.groups))
        return left, rolled(tuple(marked), gathered.hosts, gathered.restarts)

    def _sharing(self, gathered: Gathered) -> SharedQueues:
        """Which pools help with whose queues; those whose profiles cannot be read help with none."""
        if not any(body.get("helps") for body in gathered.profiles.values()):
            return NOTHING_SHARED
        if gathered.profiles != self._shared[0]:
            found = []
            for pool, body in gathered.profiles.items():
                try:
                    known = self._profiles.get(pool)
                    found.append(known[1] if known and known[0] == body else profile_from_mapping(pool, body))
                except Exception:  # noqa: BLE001, S112 - deciding meets it as well, and reports it
                    continue
            self._shared = gathered.profiles, SharedQueues(found)
        return self._shared[1]

    def _marked(
        self, rows: Iterable[Assignment], outcomes: Mapping[str, Outcome], *, capped: Container[str]
    ) -> Iterator[Assignment]:
        """``rows``, those of pinned and of ``capped`` pools exclusive, and of suspended ones suspended.

        A pool is capped by its groups: while a worker is replaced, the two must not exist at once. Rows of a pool whose
        profile cannot be read stay as they are.
        """
        is_pinned = {pool: profile.pinned is not None for pool, (_, profile) in self._profiles.items()}
        are_suspended = {pool: is_suspended(outcome.decision.suspension) for pool, outcome in outcomes.items()}
        for row in rows:
            is_exclusive = row.pool in capped or is_pinned.get(row.pool, row.is_exclusive)
            suspended = are_suspended.get(row.pool, row.is_suspended)
            is_same = (row.is_exclusive, row.is_suspended) == (is_exclusive, suspended)
            yield row if is_same else replace(row, is_exclusive=is_exclusive, is_suspended=suspended)

    def _decided(
        self, pool: str, body: Mapping[str, Any], gathered: Gathered, views: ViewBuilder, now_s: float
    ) -> Outcome | None:
        """What became of a pool; ``None`` where its evaluation fails, which touches no other."""
        try:
            profile = self._profile(pool, body)
            state = gathered.states.get(pool)
            memory = state.memory if state else Memory()
            view = views.of(profile)
            last = self._outcomes.get(pool)
            strategy = self._strategies.get(profile.strategy)
            if last and strategy and is_reusable(last, view, memory, now_s=now_s, strategy=strategy):
                return last
            _require_finite(non_finite_in(view))
            decision, after = decide(view, memory, now_s=now_s, strategies=self._strategies)
            outcome = Outcome(view=view, before=memory, decision=decision, memory=after)
            _require_finite(non_finite_decided(outcome))
            if strategy is not BUILT_IN.get(profile.strategy):
                require_storable(decision, after)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is this pool's alone (law 10)
            self._failed(pool, error)
            return None
        self._failures.pop(pool, None)
        return outcome

    def _last(self, pool: str, body: Mapping[str, Any]) -> Outcome | None:
        """What was decided for a pool that is not due, while its profile is the same."""
        known = self._profiles.get(pool)
        return self._outcomes.get(pool) if known and known[0] == body else None

    def _profile(self, pool: str, body: Mapping[str, Any]) -> Profile:
        known = self._profiles.get(pool)
        if known is not None and known[0] == body:
            return known[1]
        profile = profile_from_mapping(pool, body)
        self._profiles[pool] = body, profile
        return profile

    def _failed(self, pool: str, error: Exception) -> None:
        """Log why ``pool`` was not decided, once a change and not once a tick."""
        if self._failures.get(pool) == str(error):
            return
        self._failures[pool] = str(error)
        is_bug = not isinstance(error, HeadwayError)
        log.error("not decided, target held: pool=%s reason=%s", pool, error, exc_info=error if is_bug else None)


def _require_finite(figure: str | None) -> None:
    """Raise ``Invalid`` for a figure that is not finite: all pools of a tick are compared, and stored together."""
    if figure is not None:
        raise Invalid(f"{figure} is no finite number")
