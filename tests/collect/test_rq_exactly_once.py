"""Each job's life is reported exactly once, whatever comes between the polls: jobs, bursts, ends, restarts, kills.

Real RQ, driven by chance from a seed. What a collector has to report is known from what was done.
"""

import random
from collections import Counter

import pytest

from collect.rq_jobs import Rq, Watch, fail, work
from headway.collect import job_memory
from headway.collect.rq import queue_commands, queue_tracker
from headway.collect.rq import rq_source as module
from headway.scaling.model import EventKind

TURNS = 80


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every bound so low that a few jobs reach it."""
    for limits, names in (
        (module, {"DEEP_JOBS": 40, "RECORDS_MAX": 4}),
        (queue_commands, {"HEAD_JOBS": 1, "TAIL_JOBS": 3, "ENDED_MAX": 500}),
        (job_memory, {"WAITING_KEPT": 5, "ANCHORS_KEPT": 4}),
        (queue_tracker, {"LEFT_ASKED_MAX": 3}),
    ):
        for name, value in names.items():
            monkeypatch.setattr(limits, name, value)


class Story:
    """What is done to a queue, and what is to be reported of it."""

    def __init__(self, rq: Rq, watch: Watch, seed: int) -> None:
        self._rq = rq
        self._watch = watch
        self._chance = random.Random(seed)
        self.due: Counter[tuple[str, EventKind]] = Counter()

    def turn(self, *, may_cut_in: bool) -> None:
        match self._chance.choice(
            ["enter", "enter", "burst", "run", "run", "drain", "cancel", "look", "look", "restart"]
        ):
            case "enter":
                self._enter(at_front=may_cut_in and self._chance.random() < 0.2)
            case "burst":
                for _ in range(self._chance.randrange(12)):
                    self._enter()
            case "run":
                self._run(1)
            case "drain":
                self._run(self._chance.randrange(15))
            case "cancel":
                self._cancel()
            case "look":
                self._watch.poll_once()
            case "restart":
                self._watch.restart()

    def end(self) -> None:
        """Poll until nothing more is known to be new."""
        polls = 0
        while self._watch.poll_once().has_more or polls < 3:
            polls += 1
            assert polls < 100, "there is always more"

    def _enter(self, *, at_front: bool = False) -> None:
        job = self._rq.queue().enqueue(self._chance.choice([work, work, fail]), at_front=at_front)
        self.due[job.id, EventKind.ENQUEUED] += 1

    def _run(self, jobs: int) -> None:
        ids = self._rq.queue().get_job_ids(0, jobs) if jobs else []
        self._rq.run(jobs=jobs)
        for job_id in ids:
            ended = EventKind.FAILED if self._rq.job(job_id).is_failed else EventKind.FINISHED
            self.due[job_id, EventKind.STARTED] += 1
            self.due[job_id, ended] += 1

    def _cancel(self) -> None:
        ids = self._rq.queue().get_job_ids()
        if ids:
            self.end()  # so that its entry was seen; of what was never seen nothing can be told
            self._rq.job(self._chance.choice(ids)).cancel()


@pytest.mark.parametrize("seed", range(6))
def test_every_job_is_reported_once(rq: Rq, valkey_url: str, seed: int) -> None:
    watch = Watch(valkey_url)
    watch.poll_once()
    story = Story(rq, watch, seed)
    for _ in range(TURNS):
        story.turn(may_cut_in=True)
    story.end()
    assert Counter((event.job_id, event.kind) for event in watch.events) == story.due


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("seed", range(6))
def test_every_job_is_reported_once_when_every_bound_is_reached(rq: Rq, valkey_url: str, seed: int) -> None:
    watch = Watch(valkey_url)
    watch.poll_once()
    story = Story(rq, watch, seed)
    for _ in range(TURNS):
        story.turn(may_cut_in=False)
    story.end()
    assert Counter((event.job_id, event.kind) for event in watch.events) == story.due


@pytest.mark.usefixtures("tight")
def test_each_job_is_reported_in_the_order_of_its_life(rq: Rq, valkey_url: str) -> None:
    watch = Watch(valkey_url)
    story = Story(rq, watch, seed=99)
    for _ in range(TURNS):
        story.turn(may_cut_in=False)
    story.end()
    order = [EventKind.ENQUEUED, EventKind.STARTED, EventKind.FINISHED, EventKind.FAILED]
    for job_id in {event.job_id for event in watch.events}:
        kinds = watch.reported(job_id)
        assert kinds == sorted(kinds, key=order.index)
        times_s = [event.at_s for event in watch.events if event.job_id == job_id]
        assert times_s == sorted(times_s)


@pytest.mark.parametrize("seed", [25, 27, pytest.param(range(60), marks=pytest.mark.proof)])
def test_a_collector_whose_clock_is_set_while_it_runs_reports_each_job_once(
    rq: Rq, valkey_url: str, seed: int | range
) -> None:
    """Its machine began with a wrong time, which was set forward and back: jobs that ended lately do not end again."""
    for each in [seed] if isinstance(seed, int) else seed:
        rq.redis.flushall()
        chance, watch = random.Random(each), Watch(valkey_url, always_restarts=bool(each % 2))
        watch.poll_once()
        due, waiting, wrong_by_s = Counter[EventKind](), 0, 0.0
        for _ in range(40):
            match chance.choice(["enter", "enter", "run", "run", "set the clock", "look"]):
                case "enter":
                    rq.queue().enqueue(work)
                    due[EventKind.ENQUEUED] += 1
                    waiting += 1
                case "run" if waiting:
                    jobs = chance.randint(1, waiting)
                    rq.run(jobs=jobs)
                    due.update({EventKind.STARTED: jobs, EventKind.FINISHED: jobs})
                    waiting -= jobs
                case "set the clock":
                    wrong_by_s = chance.choice([0.0, 60.0, -60.0, -7.0])
            samples = watch.poll_once(later_s=wrong_by_s).samples
            assert [sample.waiting_jobs for sample in samples] in ([], [waiting])
        watch.poll_once(later_s=wrong_by_s)
        assert Counter(event.kind for event in watch.events) == due
