"""Queues that workers of several pools take from: each job counts once, and each pool is sized for its own queues."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.scaling.decide import decide
from headway.scaling.decisions.change_detection import is_new
from headway.scaling.explain import explained
from headway.scaling.metrics.dispatch_overhead import seen_of
from headway.scaling.metrics.shared_queues import (
    SharedQueues,
    helping_of,
    of_own_queues,
    shared_jobs,
    without_shared,
)
from headway.scaling.metrics.worker_evidence import SampledInstant, evidence_of
from headway.scaling.model import (
    ActivitySource,
    Decision,
    Memory,
    NoteKind,
    Objective,
    QueueMetrics,
    QueueOrder,
    RunningJob,
    SharedJobs,
    Worker,
    WorkerState,
)
from headway.scaling.view import PoolView, copied
from support.pools import NOW_S, profile, queue, view

DEFAULT = profile(pool="default", queues=("shop/default",))
IMAGES = profile(pool="images", queues=("shop/images",), helps=("shop/default",), template="images")
SHARING = SharedQueues([DEFAULT, IMAGES])
INSTANT = SampledInstant(at_s=NOW_S, service_time_s=60.0)


def worker(*queues: str, since_s: float = 30.0, **values: Any) -> Worker:
    """A worker of pool images that reports a job of each of ``queues``, begun ``since_s`` ago."""
    running = tuple(
        RunningJob(job_id=f"j{number}", queue=name, started_at_s=NOW_S - since_s) for number, name in enumerate(queues)
    )
    plain: dict[str, Any] = {
        "worker_id": "w",
        "pool": "images",
        "template": "images",
        "pid": 7,
        "state": WorkerState.RUNNING,
        "started_at_s": NOW_S - 600.0,
        "is_busy": bool(queues),
        "busy_since_s": NOW_S - since_s if queues else None,
        "running_jobs": len(queues),
        "running": running,
        "activity_source": ActivitySource.REPORTER,
        "activity_known_at_s": NOW_S - 1.0,
    }
    return Worker(**{**plain, **values})


def recorded(busy_queue: str | None) -> Worker:
    """A busy worker of pool images by the record of its broker."""
    broker: Any = {"activity_source": ActivitySource.BROKER, "running": (), "running_jobs": None}
    return worker("images", busy_queue=busy_queue, **broker)


def shared(*workers: Worker, in_flight_jobs: int | None = 9, unknown_workers: int = 0, slots: int = 1) -> SharedJobs:
    return shared_jobs(
        queue(queue="shop/default", in_flight_jobs=in_flight_jobs),
        "images",
        workers,
        SHARING.helped_by("images"),
        slots_per_worker=slots,
        unknown_workers=unknown_workers,
        instant=INSTANT,
    )


# --- who helps whom --------------------------------------------------------------------------------------------------


def test_no_order_of_pools_changes_who_helps_whom() -> None:
    bulk = profile(pool="bulk", queues=("shop/bulk",), helps=("shop/images", "shop/default", "shop/nobodys"))
    for profiles in itertools.permutations((DEFAULT, IMAGES, bulk)):
        found = SharedQueues(profiles)
        assert found.helpers_of("default") == ("bulk", "images")
        assert found.helpers_of("images") == ("bulk",)
        assert found.helped_by("bulk") == {name: f"shop/{name}" for name in ("images", "default", "nobodys")}
        assert (found.owner_of("shop/nobodys"), found.owner_of("shop/bulk")) == (None, "bulk")


def test_without_helps_nothing_is_shared() -> None:
    assert SharedQueues([DEFAULT]).is_empty
    assert not SHARING.is_empty


# --- whose job it is -------------------------------------------------------------------------------------------------


def test_a_workers_report_counts_its_jobs_by_their_queues() -> None:
    """Those of its pool's queues are evidence of its pool, and those of others of nobody's demand."""
    names = SHARING.helped_by("images")
    both, other = worker("images", "default"), worker("default", "default")
    assert of_own_queues(both, names).running_jobs == 1
    assert of_own_queues(other, names).running == ()
    assert of_own_queues(worker("images"), names).running_jobs == 1
    found = evidence_of([of_own_queues(each, names) for each in (both, other)], running_workers=2, instant=INSTANT)
    assert (found.busy_workers, found.idle_workers, found.unknown_workers) == (2, 0, 0)
    assert (found.certain_jobs, found.most_slots(2)) == (1, 1)
    helping = helping_of([both, other, worker("images"), worker()], SHARING)
    assert helping.workers == 2
    assert helping.jobs == (SharedJobs(queue="shop/default", pool="default", jobs=3, most_jobs=3),)


def test_a_brokers_record_says_of_which_queue_the_job_of_a_worker_is() -> None:
    names, other = SHARING.helped_by("images"), recorded("shop/default")
    assert of_own_queues(recorded("shop/images"), names) == recorded("shop/images")
    found = evidence_of([of_own_queues(other, names)], running_workers=1, instant=INSTANT)
    assert (found.busy_workers, found.certain_jobs, found.most_slots(1)) == (1, 0, 0)
    assert helping_of([other, recorded("shop/images"), recorded(None)], SHARING).workers == 1


def test_a_worker_is_busy_since_the_first_job_of_its_own_queues() -> None:
    mixed = worker("default", "images")
    earlier = copied(mixed.running[0], started_at_s=NOW_S - 300.0)
    mixed = copied(mixed, running=(earlier, mixed.running[1]), busy_since_s=NOW_S - 300.0)
    names = SHARING.helped_by("images")
    assert of_own_queues(mixed, names).busy_since_s == NOW_S - 30.0
    assert of_own_queues(worker("default"), names).busy_since_s is None


@pytest.mark.parametrize(
    ("workers", "jobs", "most_jobs", "is_reported"),
    [
        ([worker("default"), worker("default"), worker("images"), worker()], 2, 2, True),
        ([worker("default", since_s=-1.0)], 0, 0, True),  # it began after the sample, where it still waits
        ([worker("default", since_s=1.0, activity_known_at_s=NOW_S - 90.0)], 0, 1, True),  # it may have ended
        ([worker("default", state=WorkerState.DRAINING)], 1, 1, True),
        ([worker(state=WorkerState.STARTING, is_busy=None, activity_source=None)], 0, 0, True),
        ([worker(is_busy=None, activity_source=None)], 0, 1, False),
        ([worker(is_busy=True, running_jobs=None, activity_source=ActivitySource.CPU)], 0, 1, False),
        ([worker(is_busy=True, running_jobs=3, activity_source=ActivitySource.BROKER)], 0, 3, False),
        ([worker(is_busy=False, activity_source=ActivitySource.BROKER)], 0, 0, True),
        ([recorded("shop/default")], 1, 1, True),
        ([recorded("shop/images")], 0, 0, True),
        ([worker("default", running_jobs=4)], 1, 4, True),  # three that it cannot name
    ],
)
def test_what_is_reported_is_a_figure_and_all_else_a_bound(
    workers: list[Worker], jobs: int, most_jobs: int, is_reported: bool
) -> None:
    assert shared(*workers) == SharedJobs(
        queue="shop/default", pool="images", jobs=jobs, most_jobs=most_jobs, is_reported=is_reported
    )


def test_no_more_jobs_are_shared_than_run() -> None:
    assert shared(worker("default"), worker("default"), in_flight_jobs=1).jobs == 1
    assert shared(unknown_workers=3, slots=2, in_flight_jobs=4).most_jobs == 4
    assert shared(unknown_workers=3, slots=2, in_flight_jobs=None).most_jobs == 6
    assert not shared(unknown_workers=1).is_reported


# --- the owner -------------------------------------------------------------------------------------------------------


def owner(jobs: int, *, helped_jobs: int, most_jobs: int | None = None, **values: Any) -> PoolView:
    """Pool default, with ``jobs`` of its queue in flight, of which workers of pool images report ``helped_jobs``."""
    most_jobs = helped_jobs if most_jobs is None else most_jobs
    given = {name: values.pop(name) for name in tuple(values) if name in QueueMetrics.__slots__}
    help_ = SharedJobs(
        queue="shop/default", pool="images", jobs=helped_jobs, most_jobs=most_jobs, is_reported=most_jobs == helped_jobs
    )
    queues = without_shared([queue(queue="shop/default", in_flight_jobs=jobs, **given)], [help_])
    return view(*queues, helped=(help_,), **{"profile": DEFAULT, **values})


def decided(seen: PoolView, **memory: Any) -> Decision:
    return decide(seen, Memory(**memory), now_s=NOW_S)[0]


def test_an_owner_counts_what_its_own_workers_run() -> None:
    assert decided(owner(5, helped_jobs=0, running_workers=2)).target_workers == 5
    assert decided(owner(5, helped_jobs=3, running_workers=2)).target_workers == 2


def test_help_that_is_not_reported_takes_nothing_off() -> None:
    alone = decided(owner(5, helped_jobs=0, running_workers=2))
    decision = decided(owner(5, helped_jobs=0, most_jobs=3, running_workers=2))
    assert decision.target_workers == alone.target_workers == 5
    note = decision.note_of(NoteKind.UNREPORTED_HELP)
    assert note is not None
    assert "workers of pool images do not report their jobs" in note
    said = "Up to 3 jobs of those in flight in shop/default may run on workers of pool images, which is not reported."
    assert said in explained(decision)


def test_an_explanation_of_an_owner_says_how_many_jobs_run_elsewhere() -> None:
    sentences = explained(decided(owner(5, helped_jobs=3, running_workers=2)))
    assert "3 more jobs of shop/default run on workers of pool images." in sentences
    assert not any("of pool images" in each for each in explained(decided(owner(5, helped_jobs=0, running_workers=2))))


@given(
    helped_jobs=st.integers(0, 40),
    values=st.fixed_dictionaries(
        {
            "waiting_jobs": st.integers(0, 60),
            "oldest_age_s": st.floats(0, 30),
            "service_time_s": st.floats(0.05, 120),
            "arrival_rate_per_s": st.floats(0, 20),
            "completion_rate_per_s": st.floats(0, 20),
            "running_workers": st.integers(0, 40),
            "starting_workers": st.integers(0, 5),
            "slots_per_worker": st.integers(1, 4),
            "start_up_s": st.floats(0.1, 20),
        }
    ),
    jobs=st.integers(0, 40),
    target_s=st.floats(2, 120),
    risk=st.sampled_from([0.1, 1.0, 100.0]),
)
@example(  # where the own slots are known to be free, less is pre-warmed than jobs run elsewhere
    helped_jobs=14,
    values={
        "waiting_jobs": 10,
        "oldest_age_s": 20.0,
        "service_time_s": 2.0,
        "arrival_rate_per_s": 18.0,
        "completion_rate_per_s": 18.0,
        "running_workers": 15,
        "starting_workers": 2,
        "slots_per_worker": 2,
        "start_up_s": 6.0,
    },
    jobs=14,
    target_s=2.0,
    risk=1.0,
)
def test_an_owner_has_no_fewer_than_alone_less_the_jobs_that_helpers_report(
    helped_jobs: int, values: dict[str, Any], jobs: int, target_s: float, risk: float
) -> None:
    if not values["waiting_jobs"]:
        values = {**values, "oldest_age_s": 0.0}
    helped_jobs = min(helped_jobs, jobs)
    own = profile(pool="default", queues=("shop/default",), objective=Objective(target_s=target_s), risk=risk)
    helped = owner(jobs, helped_jobs=helped_jobs, profile=own, **values)
    alone = copied(owner(jobs, helped_jobs=0, profile=own, **values), helped=())
    helped_workers = -(-helped_jobs // values["slots_per_worker"])
    assert decided(helped).target_workers >= decided(alone).target_workers - helped_workers


def test_without_helpers_a_decision_is_as_before() -> None:
    """A pool whose queues nobody helps with has none of the new terms, steps and demands."""
    decision = decided(view(queue(waiting_jobs=9, in_flight_jobs=5, oldest_age_s=9.0), running_workers=5))
    assert {each.name for each in decision.demands}.isdisjoint({"less_help"})
    assert not any("help" in name and name != "helpful_slots" for each in decision.demands for name in each.terms)
    assert "helping" not in {step.name for step in decision.steps}


# --- the helper ------------------------------------------------------------------------------------------------------


def helper(helping_jobs: int, *, own: dict[str, Any] | None = None, service_s: float = 60.0, **values: Any) -> PoolView:
    """Pool images, whose workers run ``helping_jobs`` of shop/default, where one hundred more wait."""
    jobs = (SharedJobs(queue="shop/default", pool="default", jobs=helping_jobs, most_jobs=helping_jobs),)
    plain: dict[str, Any] = {
        "profile": IMAGES,
        "queue_order": QueueOrder.STRICT,
        "strict_queues": ("images", "default"),
        "helping": jobs if helping_jobs else (),
        "helping_workers": helping_jobs,
        "helped_queues": (queue(queue="shop/default", waiting_jobs=100, service_time_s=service_s),),
        "idle_workers": max(0, values.get("running_workers", 0) - helping_jobs),
    }
    return view(queue(queue="shop/images", **(own or {})), **{**plain, **values})


def test_jobs_of_other_pools_never_raise_a_helper_without_work_of_its_own() -> None:
    assert decided(helper(0, running_workers=3), target_workers=3).target_workers == 0
    assert decided(helper(0), target_workers=0).target_workers == 0
    for last in range(4):
        assert decided(helper(3, running_workers=3, assigned_workers=3), target_workers=last).target_workers == last


def test_a_worker_that_helps_is_kept_until_it_is_done() -> None:
    decision = decided(helper(2, running_workers=5), target_workers=5)
    assert (decision.target_workers, decision.binding) == (2, "helping")
    assert "2 of 5 workers help: they run 2 jobs of shop/default (pool default)." in explained(decision)
    assert any("finish them first: 2 stay" in each for each in explained(decision))
    done = decided(helper(0, running_workers=2), target_workers=2)
    assert done.target_workers == 0
    assert is_new(done, decision)


def test_a_job_of_the_helper_that_waits_gets_a_worker_beside_those_that_help() -> None:
    own = {"waiting_jobs": 1, "oldest_age_s": 9.0}
    assert decided(helper(2, own=own, running_workers=2), target_workers=2).target_workers == 3
    assert decided(helper(2, own=own, running_workers=3), target_workers=3).target_workers == 3


def test_short_jobs_of_others_are_soon_done_and_ask_for_no_worker() -> None:
    """By a strict order, a worker takes a job of its own queue next; in an unknown one, perhaps never."""
    own = {"waiting_jobs": 1, "oldest_age_s": 8.5}
    short = helper(4, own=own, service_s=0.1, running_workers=4)
    assert decided(short, target_workers=4).target_workers == 4
    assert decided(copied(short, queue_order=None), target_workers=4).target_workers == 5
    assert decided(copied(short, strict_queues=("default", "images")), target_workers=4).target_workers == 5


def test_pre_warmed_workers_that_help_are_not_replaced() -> None:
    """Each would soon help as well, and the pool would rise to its maximum."""
    slow = {"start_up_s": 30.0, "own": {"arrival_rate_per_s": 0.2}, "lag_s": 1.0}
    alone = decided(helper(0, running_workers=4, **slow), target_workers=4)
    assert decided(helper(4, running_workers=4, **slow), target_workers=4).target_workers <= max(
        4, alone.target_workers
    )


@given(
    helping_jobs=st.integers(0, 10),
    others=st.integers(0, 10),
    waiting_jobs=st.integers(0, 30),
    age_s=st.floats(0, 30),
    service_s=st.floats(0.05, 120),
    order=st.sampled_from([None, *QueueOrder]),
    last=st.integers(0, 20),
)
@example(helping_jobs=1, others=0, waiting_jobs=1, age_s=4.0, service_s=1.0, order=None, last=3)
@example(helping_jobs=1, others=0, waiting_jobs=1, age_s=0.0, service_s=1.0, order=None, last=0)
def test_a_helper_is_sized_for_its_own_queues(
    helping_jobs: int,
    others: int,
    waiting_jobs: int,
    age_s: float,
    service_s: float,
    order: QueueOrder | None,
    last: int,
) -> None:
    """Beside what it needs alone it has at most those that help, and without a waiting job only if they were there."""
    own = {"waiting_jobs": waiting_jobs, "oldest_age_s": age_s if waiting_jobs else 0.0}
    there = {"running_workers": helping_jobs + others, "queue_order": order, "own": own}
    helps = decided(helper(helping_jobs, service_s=service_s, **there), target_workers=last).target_workers
    nobody = decided(helper(0, service_s=service_s, running_workers=others, queue_order=order, own=own))
    alone = decided(helper(0, service_s=service_s, **there), target_workers=last).target_workers
    assert alone <= helps <= max(alone, nobody.target_workers) + helping_jobs
    if not waiting_jobs:
        assert helps <= max(alone, last)


def test_how_many_jobs_are_shared_is_news_every_half_minute() -> None:
    before = decided(helper(1, running_workers=3), target_workers=3)
    more = decided(helper(1, running_workers=3, helping_workers=2), target_workers=3)
    same_count = replace(more, target_workers=before.target_workers, steps=before.steps)
    assert not is_new(replace(same_count, at_s=before.at_s + 29.0), before)
    assert is_new(replace(same_count, at_s=before.at_s + 30.0), before)
    assert not is_new(replace(before, at_s=before.at_s + 60.0), before)


# --- what is shown and learned ---------------------------------------------------------------------------------------


def test_a_worker_that_runs_a_job_of_another_pool_is_not_free_for_the_next_own_job() -> None:
    """Two slots, both with a job of 600 s: the next is free after half of that, on average."""
    busy = decided(helper(2, service_s=600.0, running_workers=2), target_workers=2)
    assert busy.predicted_pickup_s == pytest.approx(300.0)
    free = helper(0, running_workers=2, profile=copied(IMAGES, workers_min=2))
    assert decided(free, target_workers=2).predicted_pickup_s == 0.0
    note = busy.note_of(NoteKind.LONG_HELP)
    assert note is not None
    assert "a job of shop/default takes 10 min" in note
    assert busy.note_of(NoteKind.UNREPORTED_HELP) is None


def test_waiting_jobs_of_other_pools_are_in_front_by_the_order_of_the_library() -> None:
    pinned = copied(IMAGES, workers_min=2)
    waits = {
        order: decided(helper(2, profile=pinned, service_s=10.0, running_workers=2, queue_order=order))
        for order in (QueueOrder.STRICT, QueueOrder.IN_TURN, None)
    }
    strict, in_turn, unknown = (each.predicted_pickup_s for each in waits.values())
    assert strict == pytest.approx(5.0)  # two taken, and half a round of 10 s
    assert in_turn == pytest.approx(10.0)  # one more of the other queue
    assert unknown == pytest.approx(505.0)  # all hundred of it


def test_nothing_is_learned_of_dispatch_while_slots_may_run_jobs_of_others() -> None:
    assert seen_of(helper(0, running_workers=2), at_s=NOW_S).slots is None
    assert seen_of(owner(2, helped_jobs=0, running_workers=2), at_s=NOW_S).slots is None
    assert seen_of(view(running_workers=2), at_s=NOW_S).slots == 2
