"""What the live loop learns of each pool: how late it sees and acts, what dispatch takes, how far predictions were off.

Kept in the leader's memory and written down once a minute, so that the next leader goes on from there.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from headway.control.scheduler.bucket_cache import BucketCache
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.measure import BUCKET_S, BucketRow
from headway.scaling.metrics.behaviour import Behaviour, spread_of
from headway.scaling.metrics.dispatch_overhead import SAMPLES_KEPT, Dispatch, Run, Seen, seen_of, with_samples
from headway.scaling.metrics.prediction_error import cohort, error_of
from headway.scaling.metrics.sampling_instant import instant_s
from headway.scaling.model import Assignment, Mode, Worker, WorkerState
from headway.store.pools.behaviours import Learned
from headway.store.pools.evaluation_io import Gathered

LEARNING_RECENT_MAX = 50  # observations that a spread is made of
ERRORS_KEPT_S = 3600.0
ERRORS_MAX = 200
WRITTEN_EACH_S = 60.0
LEARNING_WRITTEN_AT_ONCE = 500  # pools
SCORED_EACH_S = 30.0
LEARNING_GIVEN_UP_S = 240.0  # buckets are kept for longer; what has waited until then waits at least for so long
LEARNING_TAKES_EFFECT_S = 10.0  # what a host did later was asked for by a later evaluation

Recent = deque[float]


def _recent() -> Recent:
    return deque(maxlen=LEARNING_RECENT_MAX)


@dataclass(slots=True)
class PoolMemory:
    """What is known of one pool. Seconds, the newest last."""

    sample_lag_s: Recent = field(default_factory=_recent)
    worker_lag_s: Recent = field(default_factory=_recent)
    apply_delay_s: Recent = field(default_factory=_recent)
    wake_delay_s: Recent = field(default_factory=_recent)
    dispatch: Dispatch = field(default_factory=Dispatch)
    errors: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=ERRORS_MAX))
    """When a prediction was made, and predicted less observed."""
    samples: deque[Seen] = field(default_factory=lambda: deque(maxlen=SAMPLES_KEPT))
    predicted: tuple[float, float] | None = None
    """When, and how long a job that arrived then would wait; ``None`` while nothing is to be scored."""
    have_started: bool = False
    """At the last evaluation, the jobs of the prediction had started."""
    asked_at_s: float | None = None
    """By Postgres's clock, the evaluation that changed last what hosts are to run, while none has begun to."""
    took_s: float | None = None
    """How soon the first host began to, as far as the present evaluation shows."""
    is_changed: bool = False
    written_at_s: float = -math.inf

    def is_due(self, *, now_s: float) -> bool:
        """Whether there is something new to write down, and it is time; also where the clock was set back."""
        return self.is_changed and not 0 <= now_s - self.written_at_s < WRITTEN_EACH_S


SPREADS = ("sample_lag_s", "worker_lag_s", "apply_delay_s", "wake_delay_s")


class Learning:
    """What is known of every pool."""

    def __init__(self) -> None:
        self._pools: dict[str, PoolMemory] = {}
        self._evaluation_delay_s = _recent()
        self._gathered_at_s: float | None = None

    def take(self, bodies: Mapping[str, Mapping[str, Any]]) -> None:
        """Go on from what was written down."""
        for pool, body in bodies.items():
            learned = self._pools[pool] = PoolMemory()
            for name in SPREADS:
                getattr(learned, name).extend(body.get(name, ()))
            learned.dispatch = _dispatch_of(body.get("dispatch", {}))
            learned.errors.extend((at_s, error_s) for at_s, error_s in body.get("errors", ()))

    def overhead_s(self, pool: str) -> float | None:
        """What dispatch takes of a job of ``pool``."""
        known = self._pools.get(pool)
        return None if known is None else known.dispatch.overhead_s

    def learn(
        self,
        outcomes: Sequence[Outcome],
        assignments: Iterable[Assignment],
        gathered: Gathered,
        recent: BucketCache,
        *,
        now_s: float,
        is_whole: bool,
    ) -> None:
        """Take note of an evaluation: ``is_whole`` of all pools, else of those that wake."""
        self._learn_of_workers(gathered)
        self._ask(assignments, gathered)
        for outcome in outcomes:
            if is_whole or outcome.decision.at_s == now_s:
                self._learn_of_pool(outcome, recent, now_s=now_s, is_whole=is_whole)
        self._pools = {pool: known for pool, known in self._pools.items() if pool in gathered.profiles}
        self._gathered_at_s = gathered.at_s

    def began(self, *, late_s: float) -> None:
        """An evaluation of all pools began so much later than it should have."""
        self._evaluation_delay_s.append(round(max(0.0, late_s), 4))

    def due(self, *, now_s: float) -> dict[str, Learned]:
        """What is to be written down now, by pool: what has changed, each pool once a minute at most."""
        due = [pool for pool, known in self._pools.items() if known.is_due(now_s=now_s)]
        # Whose turn was longest ago, first. Of ten thousand pools at once the rows would hold up the tick that writes.
        due.sort(key=lambda pool: self._pools[pool].written_at_s)
        return {pool: self._written(self._pools[pool], now_s=now_s) for pool in due[:LEARNING_WRITTEN_AT_ONCE]}

    def _written(self, known: PoolMemory, *, now_s: float) -> Learned:
        known.is_changed, known.written_at_s = False, now_s
        return Learned(
            body=_to_json(known),
            behaviour=Behaviour(
                sample_lag=spread_of(known.sample_lag_s),
                worker_lag=spread_of(known.worker_lag_s),
                apply_delay=spread_of(known.apply_delay_s),
                wake_delay=spread_of(known.wake_delay_s),
                evaluation_delay=spread_of(self._evaluation_delay_s),
                dispatch_overhead_s=known.dispatch.overhead_s,
            ),
            prediction=error_of([error_s for at_s, error_s in known.errors if now_s - at_s <= ERRORS_KEPT_S]),
        )

    # --- workers -----------------------------------------------------------------------------------------------------

    def _learn_of_workers(self, gathered: Gathered) -> None:
        """How late states were known, and how soon hosts did what they were asked."""
        since_s = self._gathered_at_s
        if since_s is None:
            return
        for host in gathered.hosts:
            for worker in host.workers:
                if worker.state_reported_s is not None and worker.state_reported_s > since_s and worker.pool:
                    self._learn_of_state(worker, worker.state_reported_s, since_s=since_s)
        for known in self._pools.values():
            if known.took_s is not None:
                _note(known.apply_delay_s, known.took_s)
                known.asked_at_s = known.took_s = None

    def _learn_of_state(self, worker: Worker, reported_s: float, *, since_s: float) -> None:
        known = self._of(worker.pool)
        if worker.state_since_s is not None:
            _note(known.worker_lag_s, reported_s - worker.state_since_s)
            known.is_changed = True
        # Of a start and a readiness in one report the start is what was asked for; a later readiness is nobody's wish.
        acted_s = worker.state_since_s if worker.state is WorkerState.DRAINING else worker.started_at_s
        if acted_s is None or known.asked_at_s is None or acted_s < since_s:
            return
        took_s = acted_s - known.asked_at_s
        # The first counts: others wait until there is room for one more to start.
        if 0 <= took_s <= LEARNING_TAKES_EFFECT_S and (known.took_s is None or took_s < known.took_s):
            known.took_s = took_s

    def _ask(self, assignments: Iterable[Assignment], gathered: Gathered) -> None:
        before = {(row.pool, row.host_id): row.workers for row in gathered.assignments}
        after = {(row.pool, row.host_id): row.workers for row in assignments}
        for pool in {where[0] for where in before.keys() | after.keys() if before.get(where) != after.get(where)}:
            self._of(pool).asked_at_s = gathered.at_s

    # --- one pool ----------------------------------------------------------------------------------------------------

    def _learn_of_pool(self, outcome: Outcome, recent: BucketCache, *, now_s: float, is_whole: bool) -> None:
        pool, view = outcome.decision.pool, outcome.view
        is_waiting = any(queue.waiting_jobs for queue in view.queues)
        if not is_waiting and pool not in self._pools and outcome.decision.predicted_pickup_s is None:
            return
        known = self._of(pool)
        if outcome.memory.stoppage is not None:
            # What waits, waits for somebody to let the workers go on, and says nothing of how fast all else is.
            known.predicted, known.have_started = None, False
            known.samples.clear()
            return
        backlog = outcome.memory.backlog
        if backlog is not None and backlog.vanished_jobs:
            known.predicted, known.have_started = None, False
            known.samples.clear()
        at_s = instant_s(view.queues)
        if is_waiting and at_s is not None and outcome.decision.is_fresh:
            _note(known.sample_lag_s, now_s - at_s)
            _wakes(known, outcome)
            known.is_changed = True
        if is_whole and at_s is not None:
            rows = [row for queue in view.queues for row in recent.rows(queue.queue)]
            _learn_dispatch(known, outcome, rows, at_s=at_s, now_s=now_s)
            _score(known, outcome, rows, now_s=now_s)

    def _of(self, pool: str) -> PoolMemory:
        return self._pools.setdefault(pool, PoolMemory())


def _note(values: Recent, value_s: float) -> None:
    values.append(round(max(0.0, value_s), 4))


def _wakes(known: PoolMemory, outcome: Outcome) -> None:
    """From the first job of a pool at zero to the evaluation that wakes it."""
    view, decision = outcome.view, outcome.decision
    is_asleep = not (outcome.before.target_workers or view.running_workers or view.starting_workers)
    ages_s = [queue.oldest_age_s for queue in decision.metrics if queue.waiting_jobs and queue.oldest_age_s is not None]
    is_held_back = outcome.before.held_since_s is not None  # its first job was seen long before, and was no reason
    if is_asleep and not is_held_back and decision.target_workers and ages_s:
        _note(known.wake_delay_s, max(ages_s))


def _learn_dispatch(
    known: PoolMemory, outcome: Outcome, rows: Sequence[BucketRow], *, at_s: float, now_s: float
) -> None:
    known.samples.append(seen_of(outcome.view, at_s=at_s))
    after = with_samples(known.dispatch, known.samples, rows, now_s=now_s)
    known.is_changed |= after is not known.dispatch
    known.dispatch = after


def _score(known: PoolMemory, outcome: Outcome, rows: Sequence[BucketRow], *, now_s: float) -> None:
    """Score the prediction under way once its jobs have started, and begin the next."""
    if known.predicted is not None:
        made_at_s, predicted_s = known.predicted
        is_given_up = now_s - made_at_s > LEARNING_GIVEN_UP_S
        had_started, known.have_started = known.have_started, _have_started(outcome, made_at_s, now_s=now_s)
        # Starts are counted a little after they were: what had started by the last evaluation, has been by now.
        if not (is_given_up or (had_started and known.have_started)):
            return
        found = cohort(rows, at_s=made_at_s)
        known.predicted = None
        if found is not None:
            observed_s = max(found.wait_s, LEARNING_GIVEN_UP_S) if is_given_up else found.wait_s
            known.errors.append((round(made_at_s, 1), round(predicted_s - observed_s, 3)))
            known.is_changed = True
    decision = outcome.decision
    is_new = not known.errors or now_s - known.errors[-1][0] >= SCORED_EACH_S
    if is_new and decision.is_fresh and decision.mode is not Mode.RECOMMEND and decision.predicted_pickup_s is not None:
        known.predicted, known.have_started = (now_s, decision.predicted_pickup_s), False


def _have_started(outcome: Outcome, made_at_s: float, *, now_s: float) -> bool:
    """Whether every job has started that may count in the span of the prediction."""
    until_s = made_at_s + 2 * BUCKET_S
    return now_s >= until_s and all(
        not queue.waiting_jobs or (queue.oldest_age_s is not None and now_s - queue.oldest_age_s >= until_s)
        for queue in outcome.decision.metrics
    )


def _dispatch_of(body: Mapping[str, Any]) -> Dispatch:
    """What was learned of dispatch; nothing from sums of single spans, as earlier versions wrote them down."""
    return Dispatch(**{**body, "run": Run(**body["run"])}) if "run" in body else Dispatch()


def _to_json(known: PoolMemory) -> dict[str, Any]:
    return {
        **{name: list(getattr(known, name)) for name in SPREADS},
        "dispatch": asdict(known.dispatch),
        "errors": [list(each) for each in known.errors],
    }
