"""Pools whose workers something beside Headway keeps from taking jobs: nobody is started, and nothing is learned."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.decisions.change_detection import is_new
from headway.scaling.demands import safety_stock
from headway.scaling.explain import explained
from headway.scaling.mapping import from_mapping, to_mapping
from headway.scaling.metrics.newest_sample import LISTED_GAP_S, LISTED_WITHIN_S
from headway.scaling.model import (
    ActivitySource,
    Assignment,
    Decision,
    Inability,
    Memory,
    Mode,
    PoolDepths,
    QueueDepths,
    QueueSample,
    RunningJob,
    Sighting,
    Stoppage,
    Suspension,
    Worker,
    WorkerState,
)
from headway.scaling.reading.pool_reading import reading_of
from headway.scaling.reading.suspensions import STOPPAGE_FADES_S, STOPPAGE_KEPT_LEAST_S, suspension_of
from headway.scaling.reconcile import Drain, Start, Upkeep, reconcile
from headway.scaling.strategies import BUILT_IN
from headway.scaling.view import PoolView
from scaling.bands import parts
from support.pools import NOW_S, exposed_of, held, profile, queue, view

LIBRARY, NO_CONSUMERS, NONE = Suspension.LIBRARY, Suspension.NO_CONSUMERS, Suspension.NONE
CANCELLED = Suspension.CONSUMERS_CANCELLED
SUSPENDED = (LIBRARY, CANCELLED, NO_CONSUMERS)
LATE = queue(waiting_jobs=50, oldest_age_s=60.0)


def sample(suspension: Suspension | None) -> QueueSample:
    return QueueSample(queue="redis/mail", at_s=NOW_S, waiting_jobs=0, suspension=suspension)


def worker(number: int, inability: Inability | None = None, **values: Any) -> Worker:
    plain: dict[str, Any] = {
        "worker_id": f"w{number}",
        "pool": "mail",
        "template": "mail",
        "pid": 100 + number,
        "state": WorkerState.RUNNING,
        "started_at_s": 0.0,
        "inability": inability,
    }
    return Worker(**{**plain, **values})


REPORTING = worker(3, activity_source=ActivitySource.REPORTER)
ABLE, LOST = worker(1), worker(2, Inability.CONSUMERS_CANCELLED)


# --- who says so -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "running", "is_anybody_unseen", "found"),
    [
        ([LIBRARY], [], False, LIBRARY),
        ([LIBRARY], [ABLE], True, LIBRARY),  # the broker's word needs no worker
        ([LIBRARY, NONE], [], False, NONE),  # of two brokers one lets its workers take jobs
        ([NONE], [], False, NONE),
        ([None], [], False, None),  # a broker that cannot say, and no worker that could
        ([], [], False, None),
        ([LIBRARY, None], [], False, None),
        ([NO_CONSUMERS], [], False, None),  # a pool at zero
        ([NO_CONSUMERS], [ABLE], False, NO_CONSUMERS),
        ([NO_CONSUMERS], [ABLE], True, None),  # it may have only begun
        ([NO_CONSUMERS, NONE], [ABLE], False, NONE),
        ([NO_CONSUMERS], [LOST], False, CANCELLED),  # which says more
        ([None], [LOST, LOST], False, CANCELLED),
        ([None], [LOST, ABLE], False, None),
        ([None], [LOST, REPORTING], False, NONE),
        ([None], [LOST], True, None),  # another is starting, or may run unseen
        ([None], [worker(1, Inability.STOPPED)], False, None),
        ([None], [worker(1, Inability.STOPPED), LOST], False, None),
    ],
)
def test_who_keeps_all_workers_of_a_pool_from_taking_jobs(
    said: Sequence[Suspension | None], running: Sequence[Worker], is_anybody_unseen: bool, found: Suspension | None
) -> None:
    samples = [sample(each) for each in said]
    assert suspension_of(samples, running, is_anybody_unseen=is_anybody_unseen, now_s=NOW_S) is found


SURE_S = LISTED_GAP_S + LISTED_WITHIN_S


@pytest.mark.parametrize(
    ("ready_ago_s", "sampled_ago_s", "ahead_s", "found"),
    [
        (SURE_S, 0.0, 0.0, NO_CONSUMERS),
        (SURE_S - 0.1, 0.0, 0.0, None),  # the count may be of before it was listed
        (SURE_S + 4.9, 5.0, 0.0, None),  # and the sample is not of now
        (SURE_S + 5.0, 5.0, 0.0, NO_CONSUMERS),
        (SURE_S + 2.9, 0.0, 3.0, None),  # by a clock that is 3 s behind
        (SURE_S + 3.0, 0.0, 3.0, NO_CONSUMERS),
    ],
)
def test_a_count_of_no_consumers_from_before_a_worker_was_listed_suspends_nobody(
    ready_ago_s: float, sampled_ago_s: float, ahead_s: float, found: Suspension | None
) -> None:
    """Of many queues, RabbitMQ's consumers are counted in turn, and each count holds until the next."""
    ready = worker(1, state_since_s=NOW_S - ready_ago_s)
    counted = replace(sample(NO_CONSUMERS), at_s=NOW_S - sampled_ago_s)
    assert suspension_of([counted], [ready], is_anybody_unseen=False, now_s=NOW_S, ahead_s=ahead_s) is found


def test_cancelled_consumers_are_the_workers_own_word_and_need_no_count() -> None:
    lost = worker(2, Inability.CONSUMERS_CANCELLED, state_since_s=NOW_S - LISTED_WITHIN_S)
    assert suspension_of([], [lost], is_anybody_unseen=False, now_s=NOW_S) is CANCELLED
    fresh = replace(lost, state_since_s=NOW_S - LISTED_WITHIN_S + 0.1)  # its first beats may be of before it consumed
    assert suspension_of([], [lost, fresh], is_anybody_unseen=False, now_s=NOW_S) is None


@pytest.mark.parametrize(
    ("begun_ago_s", "name", "found"),
    [
        (LISTED_GAP_S - 1, "mail", NONE),
        (LISTED_GAP_S, "mail", NO_CONSUMERS),  # its consumers may have been cancelled since
        (LISTED_GAP_S - 1, "news", NO_CONSUMERS),  # a queue that is not the pool's
    ],
)
def test_a_job_that_a_worker_has_begun_since_refutes_a_count_of_no_consumers(
    begun_ago_s: float, name: str, found: Suspension
) -> None:
    job = RunningJob(job_id="1", queue=name, started_at_s=NOW_S - begun_ago_s)
    at_work = replace(REPORTING, is_busy=True, running=(job,))
    assert suspension_of([sample(NO_CONSUMERS)], [ABLE, at_work], is_anybody_unseen=False, now_s=NOW_S) is found


# --- what is decided -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suspension", SUSPENDED)
@pytest.mark.parametrize(("last", "left"), [(0, 0), (3, 3)])
def test_nobody_is_started_while_a_pool_is_suspended(suspension: Suspension, last: int, left: int) -> None:
    """Nor woken, nor for a floor, a schedule, an override or a pinned count."""
    seen = view(LATE, suspension=suspension, assigned_workers=last, running_workers=last)
    decision, memory = decide(seen, held(last), now_s=NOW_S)
    assert (decision.target_workers, decision.binding, decision.suspension) == (left, "suspended", suspension)
    assert decision.predicted_pickup_s is None
    assert memory.target_workers == left
    assert all(wanted.workers <= left for wanted in memory.wanted), "what could not be is not held afterwards"
    for values in ({"workers_min": 5}, {"pinned": 5}):
        bounded = replace(seen, profile=profile(**values))
        assert decide(bounded, held(last), now_s=NOW_S)[0].target_workers == left


@pytest.mark.parametrize("suspension", [None, NONE])
def test_what_is_not_known_to_be_suspended_is_started(suspension: Suspension | None) -> None:
    decision, memory = decide(view(LATE, suspension=suspension), held(0), now_s=NOW_S)
    assert decision.target_workers > 0
    assert "suspended" not in {step.name for step in decision.steps}
    assert memory.stoppage is None


def test_a_suspended_pool_that_needs_fewer_gets_fewer() -> None:
    seen = view(suspension=LIBRARY, assigned_workers=3, running_workers=3, idle_workers=3)
    assert decide(seen, held(3), now_s=NOW_S)[0].target_workers == 0


def test_busy_workers_of_a_suspended_pool_finish() -> None:
    seen = view(queue(in_flight_jobs=2), suspension=LIBRARY, assigned_workers=3, running_workers=3)
    assert decide(seen, held(3), now_s=NOW_S)[0].target_workers >= 2


def test_a_resume_asks_for_workers_at_once() -> None:
    _, memory = decide(view(LATE, suspension=LIBRARY), held(0), now_s=NOW_S)
    decision, memory = decide(view(LATE, suspension=NONE), memory, now_s=NOW_S + 0.5)
    assert decision.target_workers > 1
    assert memory.stoppage == Stoppage(since_s=NOW_S, until_s=NOW_S + 0.5)


@given(st.integers(0, 500), st.floats(0, 1e4), st.integers(0, 20), st.sampled_from(SUSPENDED))
def test_no_backlog_raises_a_suspended_pool(jobs: int, age_s: float, last: int, suspension: Suspension) -> None:
    waiting = queue(waiting_jobs=jobs, oldest_age_s=age_s if jobs else 0.0)
    seen = view(waiting, suspension=suspension, assigned_workers=last, running_workers=last)
    assert decide(seen, held(last), now_s=NOW_S)[0].target_workers <= last


@pytest.mark.parametrize(
    ("suspension", "said"),
    [
        (
            LIBRARY,
            "Suspended: the library has suspended all workers (`rq suspend`), as the broker says: none",
        ),
        (CANCELLED, "Suspended: the consumers of all its workers were cancelled, as the workers report"),
        (NO_CONSUMERS, "Suspended: no worker consumes its queues although workers run, as the broker says"),
    ],
)
def test_the_decision_says_who_suspended_it_and_what_ends_that(suspension: Suspension, said: str) -> None:
    decision, _ = decide(view(LATE, suspension=suspension), held(2), now_s=NOW_S)
    text = " ".join(explained(decision))
    assert said in text
    assert "Its workers are kept from taking jobs: none is started, and 2 stay where" in text
    assert "A job that arrives now waits until its workers take jobs again." in text
    assert "should start" not in text


def test_a_decision_is_read_back_with_what_suspended_it() -> None:
    decision, memory = decide(view(LATE, suspension=LIBRARY), held(2), now_s=NOW_S)
    assert from_mapping(Decision, to_mapping(decision)) == decision
    later, _ = decide(view(LATE, suspension=NONE), memory, now_s=NOW_S + 30.0)
    assert later.stoppage == Stoppage(since_s=NOW_S, until_s=NOW_S + 30.0)
    assert from_mapping(Decision, to_mapping(later)) == later


def test_a_resume_is_news_and_the_decision_says_that_nothing_is_learned() -> None:
    before, memory = decide(view(LATE, suspension=LIBRARY), held(2), now_s=NOW_S)
    after_it, memory = decide(view(LATE, suspension=NONE), memory, now_s=NOW_S + 30.0)
    assert is_new(after_it, before)
    assert is_new(replace(before, suspension=NO_CONSUMERS), before)
    later, _ = decide(view(LATE, suspension=NONE), memory, now_s=NOW_S + 50.0)
    said = "Its workers resumed 20 s ago: Headway learns nothing from the jobs that piled up before."
    assert said in explained(later)
    assert said not in explained(before)


# --- what it teaches -------------------------------------------------------------------------------------------------


def after(views: Sequence[tuple[float, PoolView]], memory: Memory) -> tuple[Decision, Memory]:
    for at_s, seen in views:
        queues = tuple(replace(each, sampled_at_s=NOW_S + at_s) for each in seen.queues)
        decision, memory = decide(replace(seen, queues=queues), memory, now_s=NOW_S + at_s)
    return decision, memory


def test_a_stoppage_is_remembered_while_its_jobs_are_there() -> None:
    stopped, resumed = view(LATE, suspension=LIBRARY), Stoppage(since_s=NOW_S, until_s=NOW_S + 900.0)
    until = [(0.0, stopped), (450.0, stopped)]
    old, young, none = queue(waiting_jobs=5, oldest_age_s=1_000.0), queue(waiting_jobs=5, oldest_age_s=20.0), queue()
    assert after(until, held(0))[1].stoppage == Stoppage(since_s=NOW_S)
    until.append((900.0, view(old, suspension=NONE)))
    for later_s, waiting, is_kept in (
        (STOPPAGE_FADES_S - 1, none, True),  # the rates of late starts still hold its jobs
        (STOPPAGE_FADES_S + 1, none, False),
        (STOPPAGE_FADES_S + 100, young, False),
        (STOPPAGE_FADES_S + 100, old, True),
        (STOPPAGE_FADES_S + 100, queue(waiting_jobs=5, oldest_age_s=None), True),
        (700.0, old, True),
        (901.0, old, False),  # longer than it lasted: whatever waits then is no longer its doing
    ):
        _, memory = after([*until, (900.0 + later_s, view(waiting, suspension=NONE))], held(0))
        assert memory.stoppage == (resumed if is_kept else None), (later_s, waiting)


def test_a_short_stoppage_is_remembered_for_ten_minutes_at_most() -> None:
    old = view(queue(waiting_jobs=5, oldest_age_s=5_000.0), suspension=NONE)
    begun = [(0.0, view(LATE, suspension=LIBRARY)), (10.0, old)]
    assert after([*begun, (10.0 + STOPPAGE_KEPT_LEAST_S, old)], held(0))[1].stoppage is not None
    assert after([*begun, (11.0 + STOPPAGE_KEPT_LEAST_S, old)], held(0))[1].stoppage is None


def test_a_pause_at_zero_is_a_stoppage_too() -> None:
    """Of a pool whose workers go on to run, jobs are started as ever, and teach."""
    paused = profile(mode=Mode.PAUSE)
    assert decide(view(LATE, profile=paused), held(0), now_s=NOW_S)[1].stoppage == Stoppage(since_s=NOW_S)
    assert decide(view(profile=paused), held(0), now_s=NOW_S)[1].stoppage is None
    at_work = view(LATE, profile=paused, assigned_workers=2, running_workers=2)
    assert decide(at_work, held(2), now_s=NOW_S)[1].stoppage is None


def test_what_piled_up_raises_no_guard() -> None:
    """Jobs that start late after a stoppage, and those that came in it, leave the guard as it was."""
    slow = {"start_up_s": 12.0, "profile": profile()}
    calm = queue(arrived_jobs=2, arrived_until_s=NOW_S, arrival_rate_per_s=0.4, start_rate_per_s=0.4)
    guard = safety_stock.learned(None, exposed_of(calm, view(calm, **slow), now_s=NOW_S))
    rush = replace(
        calm, arrived_jobs=400, arrived_until_s=NOW_S + 5, start_rate_per_s=20.0, late_rate_per_s=20.0, waiting_jobs=400
    )
    taught = safety_stock.learned(guard, exposed_of(rush, view(rush, **slow), now_s=NOW_S + 5))
    untaught = safety_stock.learned(guard, exposed_of(rush, view(rush, is_teaching=False, **slow), now_s=NOW_S + 5))
    assert (taught.by_rate, taught.beyond_log) != (guard.by_rate, guard.beyond_log)
    learned, kept = parts(guard), parts(untaught)
    assert (kept.by_rate, kept.by_use, kept.by_rhythm) == (learned.by_rate, learned.by_use, learned.by_rhythm)
    assert (untaught.beyond_log, untaught.periods) == (guard.beyond_log, guard.periods)
    assert untaught.seen_until_s == NOW_S + 5  # it counts at no later evaluation either


def test_what_piled_up_and_what_is_tried_again_shows_no_rhythm() -> None:
    def learned(state: dict[str, Any], *, later_s: float = 0.0, retried_jobs: int = 0, **values: Any) -> dict[str, Any]:
        rush = queue(arrived_jobs=400, retried_jobs=retried_jobs, arrived_until_s=NOW_S + later_s)
        return dict(BUILT_IN["hybrid"].advise(rush, view(rush, **values), state, NOW_S + later_s).state)

    taught = learned({})
    assert taught["periods"] is not None
    assert "periods" not in learned({}, is_teaching=False)
    assert "periods" not in learned({}, retried_jobs=400)
    assert learned(taught, later_s=60.0)["periods"] != taught["periods"]
    assert learned(taught, later_s=60.0, is_teaching=False)["periods"] == taught["periods"]


def test_depths_under_a_suspension_show_no_service_time_and_no_starts() -> None:
    """Two running workers of which nobody knows whether they have a job, and a backlog that only grows."""
    depths = PoolDepths(
        queues=(
            QueueDepths(
                queue="redis/mail",
                sampled_at_s=NOW_S - 5,
                sightings=(Sighting(at_s=NOW_S - 5, since_s=None, jobs=10),),
            ),
        ),
        cycle_s=2.0,
        ended_jobs=3.0,
        busy_slot_s=6.0,
        busy_slots=2,
    )
    unknown = dict.fromkeys(("in_flight_jobs", "arrival_rate_per_s", "completion_rate_per_s", "service_time_s"))
    grown = queue(waiting_jobs=30, oldest_age_s=None, has_unknown_rates=True, **unknown)
    seen = view(grown, running_workers=2, unknown_activity_workers=2, busy_workers=2, suspension=NO_CONSUMERS)
    read = reading_of(seen, Memory(depths=depths), now_s=NOW_S).depths
    assert read is not None
    assert (read.cycle_s, read.ended_jobs, read.busy_slot_s) == (2.0, 3.0, 6.0)
    (known,) = read.queues
    assert (known.arrived_jobs, known.start_rate_per_s) == (20, 0.0)


@pytest.mark.parametrize(
    ("since_s", "until_s", "age_s", "counted_s"),
    [
        (-100.0, None, 30.0, 0.0),  # it came amid what goes on
        (-100.0, None, 130.0, 30.0),  # and 30 s before
        (-100.0, -40.0, 130.0, 70.0),  # 60 s of its 130 were taken from it
        (-100.0, -40.0, 50.0, 40.0),
        (-100.0, -40.0, 10.0, 10.0),  # it came afterwards
    ],
)
def test_a_wait_counts_without_the_stoppage(
    since_s: float, until_s: float | None, age_s: float, counted_s: float
) -> None:
    stoppage = Stoppage(since_s=NOW_S + since_s, until_s=None if until_s is None else NOW_S + until_s)
    assert stoppage.counted_s(age_s, now_s=NOW_S) == counted_s


# --- what a host does ------------------------------------------------------------------------------------------------


def assigned(workers: int, **values: Any) -> Assignment:
    return Assignment(pool="mail", host_id="h", template="mail", base_workers=workers, **values)


def test_a_host_starts_and_replaces_nobody_of_a_suspended_pool() -> None:
    there = [worker(1), worker(2, Inability.CONSUMERS_CANCELLED), worker(3, template_hash="old")]
    upkeep = Upkeep(template_hashes={"mail": "new"}, worn=["w1"])
    assert reconcile(there, [assigned(5, is_suspended=True)], upkeep=upkeep) == ()
    assert Start(pool="mail", template="mail") in reconcile(there, [assigned(5)], upkeep=upkeep)


def test_a_host_lets_go_what_is_too_much_of_a_suspended_pool() -> None:
    there = [worker(1, is_busy=True), worker(2, is_busy=False), worker(3, is_burst=True, is_busy=False)]
    rows = [assigned(1, burst_workers=1, is_suspended=True)]
    assert reconcile(there, rows) == (Drain(worker_id="w2"),)


def test_workers_that_are_spared_are_not_replaced() -> None:
    assert reconcile([LOST], [assigned(1)], upkeep=Upkeep(spared=["w2"])) == ()
    assert reconcile([LOST], [assigned(1)]) != ()
