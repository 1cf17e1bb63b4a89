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
