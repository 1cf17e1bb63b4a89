"""What the live loop learns of pools from one evaluation to the next."""

from dataclasses import replace
from typing import Any

import pytest

from headway.control.scheduler import learning as module
from headway.control.scheduler.bucket_cache import BucketCache
from headway.control.scheduler.learning import Learning
from headway.scaling.decide import decide
from headway.scaling.decisions.outcome import Outcome
from headway.scaling.measure import BucketRow, sketch_index
from headway.scaling.metrics.behaviour import Spread
from headway.scaling.metrics.prediction_error import PredictionError
from headway.scaling.model import Assignment, Host, Memory, Mode, Suspension, Worker, WorkerState
from headway.store.pools.behaviours import Learned
from headway.store.pools.evaluation_io import Gathered
from support.hosts import any_host
from support.pools import NOW_S, profile, queue, view

TICK_S = 5.0
POSTGRES_AHEAD_S = 1_000.0  # its clock is another one


class Loop:
    """Evaluations, one after the other, of one pool."""

    def __init__(self) -> None:
        self.learning = Learning()
        self.recent = BucketCache()
        self.now_s = NOW_S
        self.hosts: tuple[Host, ...] = ()
        self.rows: tuple[Assignment, ...] = ()
        self.memory = Memory(target_workers=1)
        self.profile: dict[str, Any] = {"workers_min": 1}

    def evaluate(
        self,
        *,
        later_s: float = TICK_S,
        is_whole: bool = True,
        after: tuple[Assignment, ...] | None = None,
        **seen: Any,
    ) -> Outcome:
        """One that finds ``seen`` of the queue, sampled a second ago, and of the pool's workers."""
        self.now_s += later_s
        pool = {key: seen.pop(key) for key in ("running_workers", "starting_workers", "suspension") if key in seen}
        found = queue(**{"sampled_at_s": self.now_s - 1.0, **seen})
        evaluated = replace(view(found, **pool), profile=profile(**self.profile))
        decision, memory = decide(evaluated, self.memory, now_s=self.now_s)
        outcome = Outcome(view=evaluated, before=self.memory, decision=decision, memory=memory)
        gathered = Gathered(
            at_s=self.now_s + POSTGRES_AHEAD_S,
            revision=0,
            buckets=(),
            profiles={"mail": {}},
            states={},
            hosts=self.hosts,
            assignments=self.rows,
            direct={},
            worker_hours_today={},
        )
        self.rows = self.rows if after is None else after
        self.learning.learn([outcome], self.rows, gathered, self.recent, now_s=self.now_s, is_whole=is_whole)
        return outcome

    def ended(self, ago_s: float, **values: Any) -> None:
        """What the pipeline counted in the span that held that moment."""
        row = BucketRow(queue="redis/mail", bucket_s=(self.now_s - ago_s) // 5 * 5, **values)
        self.recent.take([row], revision=0)

    def learned(self) -> Learned:
        return self.learning.due(now_s=self.now_s + 61.0)["mail"]


def host(*workers: Worker) -> tuple[Host, ...]:
    return (any_host("a", *workers),)


def worker(state: WorkerState, *, since_s: float, reported_s: float, started_s: float | None = None) -> Worker:
    return Worker(
        worker_id="w",
        pool="mail",
        template="mail",
        pid=1,
        state=state,
        started_at_s=(since_s if started_s is None else started_s) + POSTGRES_AHEAD_S,
        state_since_s=since_s + POSTGRES_AHEAD_S,
        state_reported_s=reported_s + POSTGRES_AHEAD_S,
    )


def test_how_old_samples_are_counts_while_jobs_wait() -> None:
    """Where nothing changes a collector is silent, and what it said last is still so."""
    loop = Loop()
    loop.evaluate(waiting_jobs=0, sampled_at_s=NOW_S - 10.0)
    for lag_s in (0.5, 1.5, 1.0):
        loop.evaluate(waiting_jobs=1, sampled_at_s=loop.now_s + TICK_S - lag_s)
    loop.evaluate(waiting_jobs=1, sampled_at_s=loop.now_s - 300.0)  # a pipeline that is away is no lag
    assert loop.learned().behaviour.sample_lag == Spread(p50_s=1.0, p95_s=1.5, count=3)


@pytest.mark.parametrize(("suspension", "is_learned"), [(Suspension.LIBRARY, False), (None, True)])
def test_the_end_of_a_suspension_is_no_slow_wake(suspension: Suspension | None, is_learned: bool) -> None:
    loop = Loop()
    loop.memory = Memory(target_workers=0)
    outcome = loop.evaluate(waiting_jobs=2, oldest_age_s=300.0, suspension=suspension, is_whole=False)
    loop.memory = replace(outcome.memory, target_workers=0)
    loop.evaluate(waiting_jobs=2, oldest_age_s=305.0)
    assert ("mail" in loop.learning.due(now_s=loop.now_s + 61.0)) is is_learned


def test_a_wake_is_as_late_as_its_oldest_job_has_waited() -> None:
    loop = Loop()
    loop.memory = Memory(target_workers=0)
    loop.evaluate(waiting_jobs=2, oldest_age_s=0.4, is_whole=False)  # a second passes from the sample on
    loop.memory = Memory(target_workers=1)
    loop.evaluate(waiting_jobs=2, oldest_age_s=3.0)
    assert loop.learned().behaviour.wake_delay == Spread(p50_s=1.4, p95_s=1.4, count=1)


def test_jobs_that_were_held_back_make_no_late_wake() -> None:
    loop = Loop()
    loop.memory = Memory(target_workers=0, held_since_s=NOW_S - 60.0)
    loop.evaluate(waiting_jobs=2, oldest_age_s=60.0, is_whole=False)
    assert loop.learned().behaviour.wake_delay is None


def test_how_soon_hosts_act_and_how_soon_that_is_known() -> None:
    loop = Loop()
    loop.evaluate(waiting_jobs=1, after=(Assignment(pool="mail", host_id="a", template="mail", base_workers=1),))
    asked_s = loop.now_s
    loop.hosts = host(worker(WorkerState.STARTING, since_s=asked_s + 0.2, reported_s=asked_s + 0.5))
    loop.evaluate(waiting_jobs=1)
    ready = worker(WorkerState.RUNNING, since_s=asked_s + 6.0, reported_s=asked_s + 6.1, started_s=asked_s + 0.2)
    loop.hosts = host(ready)
    loop.evaluate(waiting_jobs=1)
    loop.evaluate(waiting_jobs=1)  # nothing new
    learned = loop.learned().behaviour
    assert learned.apply_delay == Spread(p50_s=0.2, p95_s=0.2, count=1), "of what was asked for"
    assert learned.worker_lag == Spread(p50_s=0.1, p95_s=0.3, count=2)


@pytest.mark.parametrize(
    ("seen", "took_s"),
    [
        # ready before it was seen to start
        ({"state": WorkerState.RUNNING, "since_s": 1.3, "reported_s": 1.4, "started_s": 0.2}, 0.2),
        ({"state": WorkerState.DRAINING, "since_s": 0.3, "reported_s": 0.4, "started_s": -100.0}, 0.3),
    ],
)
def test_how_soon_hosts_act_is_measured_by_the_first_that_is_seen_of_it(seen: dict[str, Any], took_s: float) -> None:
    loop = Loop()
    loop.evaluate(waiting_jobs=1, after=(Assignment(pool="mail", host_id="a", template="mail", base_workers=1),))
    times = {key: loop.now_s + seen[key] for key in ("since_s", "reported_s", "started_s")}
    loop.hosts = host(worker(seen["state"], **times))
    loop.evaluate(waiting_jobs=1)
    assert loop.learned().behaviour.apply_delay == Spread(p50_s=took_s, p95_s=took_s, count=1)


def test_of_many_that_are_asked_for_the_first_shows_how_soon_hosts_act() -> None:
    """The others wait for their turn to start: that is the host's, and none of it the way of the orders."""
    loop = Loop()
    loop.evaluate(waiting_jobs=9, after=(Assignment(pool="mail", host_id="a", template="mail", base_workers=9),))
    asked_s = loop.now_s
    first, second, third = (
        worker(WorkerState.STARTING, since_s=asked_s + after_s, reported_s=asked_s + after_s + 0.1)
        for after_s in (0.3, 2.0, 6.0)
    )
    loop.hosts = host(second, first)
    loop.evaluate(waiting_jobs=1)
    loop.hosts = host(second, first, third)
    loop.evaluate(waiting_jobs=1)
    assert loop.learned().behaviour.apply_delay == Spread(p50_s=0.3, p95_s=0.3, count=1)


def test_what_dispatch_takes_is_learned_while_jobs_wait_and_reaches_views() -> None:
    loop = Loop()
    for _ in range(12):
        loop.evaluate(waiting_jobs=500, oldest_age_s=20.0, in_flight_jobs=1, running_workers=1)
        loop.ended(1.0, finished_jobs=100, service_sum_s=1.0, service_sketch={sketch_index(0.01): 100})
    assert loop.learning.overhead_s("mail") == pytest.approx(0.04, rel=0.01)  # 20 a second, 10 ms of service each
    assert loop.learned().behaviour.dispatch_overhead_s == loop.learning.overhead_s("mail")
    assert loop.learning.overhead_s("news") is None


@pytest.mark.parametrize(
    "seen",
    [
        {"oldest_age_s": 2.0, "running_workers": 1, "in_flight_jobs": 1},  # slots may have rested
        {"oldest_age_s": 20.0, "running_workers": 1, "in_flight_jobs": 3},  # others work as well
        {"oldest_age_s": 20.0, "running_workers": 1, "in_flight_jobs": 1, "starting_workers": 1},
    ],
)
def test_where_it_is_not_sure_that_slots_had_no_rest_nothing_is_learned_of_dispatch(seen: dict[str, Any]) -> None:
    loop = Loop()
    for _ in range(12):
        loop.evaluate(waiting_jobs=500, **seen)
        loop.ended(1.0, finished_jobs=100, service_sum_s=1.0, service_sketch={sketch_index(0.01): 100})
    assert loop.learning.overhead_s("mail") is None


def test_sums_of_single_spans_that_an_earlier_version_wrote_down_are_left_behind() -> None:
    loop = Loop()
    loop.learning.take({"mail": {"dispatch": {"slot_s": 500.0, "service_s": 50.0, "jobs": 90.0, "rounds": 12.0}}})
    assert loop.learning.overhead_s("mail") is None


def arrived_and_started(loop: Loop, wait_s: float) -> None:
    """Ten jobs that had waited so long started in the span of the last evaluation."""
    loop.ended(0.0, arrived_jobs=10, started_jobs=10, pickup_sketch={sketch_index(wait_s): 10})


def test_a_prediction_is_scored_by_what_the_jobs_of_its_moment_waited() -> None:
    loop = Loop()
    for _ in range(40):
        outcome = loop.evaluate(waiting_jobs=0, running_workers=1)
        assert outcome.decision.predicted_pickup_s == 0.0
        arrived_and_started(loop, 2.0)
    found = loop.learned().prediction
    assert found is not None
    assert found.bias_s == pytest.approx(-2.0, abs=0.05)
    assert found.p50_s == found.p95_s == pytest.approx(2.0, abs=0.05)
    assert 4 <= found.count <= 7, "one each half minute"


def test_where_nothing_arrives_or_nothing_is_predicted_nothing_is_scored() -> None:
    loop = Loop()
    for _ in range(20):
        loop.evaluate(waiting_jobs=0, running_workers=1)
    loop.profile["mode"] = Mode.RECOMMEND
    for _ in range(20):
        loop.evaluate(waiting_jobs=0, running_workers=1)
        arrived_and_started(loop, 2.0)
    assert loop.learning.due(now_s=loop.now_s + 61.0) == {}, "there is nothing to write"


def test_jobs_that_do_not_start_do_not_hide_how_wrong_a_prediction_was() -> None:
    """Of those that arrived with them a few have started. The others wait on, and wait for four minutes at least."""
    loop = Loop()
    loop.evaluate(waiting_jobs=0, running_workers=4)
    arrived_and_started(loop, 0.1)
    for number in range(60):
        loop.evaluate(waiting_jobs=50, oldest_age_s=5.0 * number, running_workers=4, in_flight_jobs=4)
    assert loop.learned().prediction == PredictionError(p50_s=240.0, p95_s=240.0, bias_s=-240.0, count=1)


def test_the_next_leader_goes_on_from_what_was_written() -> None:
    loop = Loop()
    for _ in range(12):
        loop.evaluate(waiting_jobs=500, oldest_age_s=20.0, in_flight_jobs=1, running_workers=1)
        loop.ended(1.0, finished_jobs=100, service_sum_s=1.0, service_sketch={0: 100})
        loop.learning.began(late_s=0.01)
    first = loop.learned()
    assert first.behaviour.evaluation_delay == Spread(p50_s=0.01, p95_s=0.01, count=12)
    overhead_s = loop.learning.overhead_s("mail")
    loop.learning = Learning()
    loop.learning.take({"mail": first.body})
    assert loop.learning.overhead_s("mail") == overhead_s
    assert loop.learning.due(now_s=loop.now_s) == {}, "what is written already is not written again"
    loop.evaluate(waiting_jobs=500, oldest_age_s=20.0, in_flight_jobs=1, running_workers=1)
    assert loop.learned().behaviour.sample_lag == Spread(p50_s=1.0, p95_s=1.0, count=13)


def test_what_changed_is_written_once_a_minute_and_pools_that_are_gone_are_forgotten() -> None:
    loop = Loop()
    loop.evaluate(waiting_jobs=1)
    assert set(loop.learning.due(now_s=loop.now_s)) == {"mail"}
    loop.evaluate(waiting_jobs=1)
    assert loop.learning.due(now_s=loop.now_s) == {}
    assert set(loop.learning.due(now_s=loop.now_s + 60.0)) == {"mail"}
    assert loop.learning.due(now_s=loop.now_s + 120.0) == {}


def test_of_many_pools_a_part_is_written_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEARNING_WRITTEN_AT_ONCE", 2)
    learning = Learning()
    loop = Loop()
    loop.learning = learning
    loop.evaluate(waiting_jobs=1)
    known = learning._pools["mail"]
    learning._pools = {pool: replace(known, is_changed=True) for pool in ("a", "b", "c", "d", "e")}
    written = [set(learning.due(now_s=loop.now_s + number)) for number in range(4)]
    assert written == [{"a", "b"}, {"c", "d"}, {"e"}, set()]
